"""Reads the built-in claims: one YAML file per source, in this folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memeval.comparison.claims.records import Claim, ClaimedFigure
from memeval.errors import UserError, unknown
from memeval.results.fields import read_as
from memeval.results.summary import as_yaml
from memeval.text.shown import one_line
from memeval.text.yaml_files import load_yaml

FOLDER = Path(__file__).parent


def load_claims(folder: Path = FOLDER) -> list[Claim]:
    """All claims, in the order of their files.

    Raises `ValueError`, naming file and claim, for an invalid claim or two claims with one name.
    """
    claims: dict[str, Claim] = {}
    for path in sorted(folder.glob("*.yaml")):
        for claim in read_claims(path):
            if claim.name in claims:
                raise ValueError(f"{path}: claim {claim.name} is already defined")

            claims[claim.name] = claim

    return list(claims.values())


def find_figure(word: str, claims: Sequence[Claim]) -> tuple[Claim, ClaimedFigure]:
    """The claim and figure of `NAME`, `NAME/SYSTEM` or, in a claim of one system, `NAME/METRIC`.

    Raises `UserError` for an unknown name, and if the word leaves a choice of figures.
    """
    name, _, system = word.partition("/")
    by_name = {claim.name: claim for claim in claims}
    if name not in by_name:
        raise unknown("claim", one_line(name), by_name)

    claim = by_name[name]
    by_system = {figure.system: figure for figure in claim.figures}
    if len(by_system) == 1:
        # All figures are of one system, each with another metric.
        by_system = {figure.metric: figure for figure in claim.figures}

    if system:
        if system not in by_system:
            raise unknown("figure", one_line(system), by_system)

        return claim, by_system[system]
    if len(by_system) > 1:
        raise UserError(
            f"claim {name} has {len(by_system)} figures: {', '.join(by_system)}",
            f"use:  '{name}/{next(iter(by_system))}'",
        )

    return claim, claim.figures[0]


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file. Raises `ValueError` naming file and claim for an invalid one."""
    content = load_yaml(path)
    if not isinstance(content, dict):
        raise ValueError(f"{path} does not map names to claims")

    claims = []
    for name, members in content.items():
        try:
            claims.append(_claim(str(name), members))
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path}, claim {name}: {error}") from error

    return claims


def _claim(name: str, members: dict[str, Any]) -> Claim:
    for part in (members.get("protocol", {}), *members.get("figures", ())):
        # YAML reads `false` and 7 as boolean and number; settings and category names are strings.
        for member in ("settings", "reader_settings"):
            if part.get(member) is not None:
                part[member] = {str(key): as_yaml(value) for key, value in part[member].items()}
        if part.get("by_category") is not None:
            part["by_category"] = {str(key): share for key, share in part["by_category"].items()}

    claim = read_as({"name": name, **members}, Claim)
    _check(claim)
    return claim


def _check(claim: Claim) -> None:
    """Raises `ValueError` for members that contradict each other."""
    protocol = claim.protocol
    if protocol.judge is None and (protocol.judge_model or protocol.judge_like):
        raise ValueError("it names a judge model or protocol, but no judge")

    categories = set(map(str, protocol.categories or ()))
    for figure in claim.figures:
        unasked = set(figure.by_category or ()) - categories
        if unasked:
            raise ValueError(
                f"{figure.system} has categories that the protocol does not ask: {unasked}"
            )

    figures = {(figure.system, figure.metric) for figure in claim.figures}
    if len(figures) < len(claim.figures):
        raise ValueError("two figures have the same system and metric")
