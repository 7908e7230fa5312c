"""The environment of a package's runs, `environment.json`, and the prices in it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memeval.errors import UserError
from memeval.packages.cleaning import KINDS
from memeval.packages.facts import machine_class
from memeval.packages.form import ENVIRONMENT, is_package_id
from memeval.packages.read import Package
from memeval.results.own_prices import FIELDS, FIGURES_CODE, at_provider, prices_from
from memeval.text.shown import one_line

OFFLINE = "offline"
"""Provider of models that cost nothing."""
ANY_PRICE_DAY = "2000-01-01"


def environment_problems(package: Package) -> Iterator[str]:
    """Problems with `environment.json` and the manifest, such as members that no package has."""
    environment, manifest = package.environment, package.manifest
    machine = environment.get("packed_on")
    keys, codes = [], set()
    for run in package.runs:
        keys.append(run.key)
        codes.add(run.summary.tags.get(FIGURES_CODE, ""))

    if list(environment) != ["packed_on", "runs"] or list(environment["runs"]) != keys:
        yield "environment.json does not describe each run and the machine that packed them"
    if not isinstance(machine, dict) or list(machine) != list(machine_class()):
        yield "environment.json has unexpected details about the machine"

    if manifest.code not in codes:
        yield "the manifest and the runs name different code"
    if not manifest.replaced.keys() <= set(KINDS):
        yield "the manifest counts replacements of an unknown kind"
    if manifest.supersedes and not is_package_id(manifest.supersedes):
        yield "the manifest supersedes something that is not a package id"


def same_environment(packed: Any, recomputed: Mapping[str, Any]) -> bool:
    """Whether two are equal except for the prices of models that cost something: figures are
    recomputed with the package's prices.
    """

    def without_prices(content: Any) -> Any:
        models = []
        for model in content["models"]:
            known = dict(model.items())
            prices = known["usd_per_million"]
            is_form = prices is None or list(prices) == list(FIELDS)
            if is_form and known["provider"] != OFFLINE:
                known["usd_per_million"] = None

            models.append(known)

        return {**content, "models": models}

    try:
        return bool(without_prices(packed) == without_prices(recomputed))
    except (TypeError, KeyError, AttributeError):
        return False


@contextmanager
def prices_of(package: Package) -> Iterator[None]:
    """Applies the package's prices, as its figures in dollars depend on them."""
    models = packed_prices(package)
    if not models:
        yield
        return

    path = package.folder / "prices.yaml"
    # YAML contains JSON, except for dates, which are unquoted.
    path.write_text(f"date: {ANY_PRICE_DAY}\nmodels: {json.dumps(models)}\n", encoding="utf-8")
    with prices_from(str(path)):
        yield


def packed_prices(package: Package) -> dict[str, Any]:
    """The prices of the models that cost something, by model and provider."""
    models: dict[str, Any] = {}
    packed = package.environment.get("runs")
    if not isinstance(packed, dict) or not all(isinstance(run, dict) for run in packed.values()):
        raise UserError(f"{ENVIRONMENT} does not describe each run")

    for run in packed.values():
        for model in run.get("models", ()):
            if not isinstance(model, dict):
                raise UserError(f"{ENVIRONMENT} lists a model that is not an object")

            prices = model.get("usd_per_million")
            if not isinstance(prices, dict) or model.get("provider") == OFFLINE:
                continue

            name = at_provider(str(model.get("model")), str(model.get("provider")))
            known = {field: prices.get(field) for field in FIELDS}
            if models.setdefault(name, known) != known:
                shown = one_line(model.get("model"), 80)
                raise UserError(f"{ENVIRONMENT} lists two prices of {shown}")

    return models
