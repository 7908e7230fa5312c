"""Provenance of a run: its settings, its tags, and the protocol that it followed."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

from memeval.config.filing import read_filing
from memeval.config.identity import digest
from memeval.config.leaves import as_yaml, fields_of, flatten
from memeval.config.roles import DRAFTING, INGEST, JUDGE, with_roles_filled
from memeval.config.schema import ANSWER, RunConfig
from memeval.config.settings import SHARED_SETTINGS, TENANTS
from memeval.datasets.contract import DatasetSettings
from memeval.datasets.info import LoadedDataset
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.judge_identity import judge_identity
from memeval.pipeline.open.opening import system_settings
from memeval.pipeline.open.retrieving import RETRIEVE, retrieves_only
from memeval.pipeline.open.system_source import IMPORTED, SystemSource
from memeval.pipeline.open.versions import code_version, git_state, versions
from memeval.results import JudgeIdentity
from memeval.results.judge import RECORDED
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.summary import OWN_TAG
from memeval.text.redaction import redacted_in

Param = str | int | float | bool | None

_COMMON = frozenset(
    {
        "name",
        *(field.name for field in fields(DatasetSettings) if field.name != "split"),
        "category_names",
        "evidence_recall",
    }
)
"""Settings of a data set that are not in its protocol, or that `protocol` has elsewhere."""

SYSTEM_FLAGS = "system_flags"
"""Tag with the words that a system adds to the column `flags`, joined by commas."""

SAMPLE, BIASED_CUT, ONLY, NAMED = "sample", "biased_cut", "only", "named_questions"
"""Tags that describe the asked questions, if not all were asked."""

PROTOCOL = "protocol"
"""Tag with the choices that must be equal in comparable figures, in one line."""

DETERMINISTIC, OWN_PROMPT = "deterministic", "own_prompt"
"""Tags: the offline reader answered; a prompt other than the cell's was used."""

DATA = "data_"
"""Prefix of the tags of the data."""

STAGES = "stages"
"""Tag of a cell that ended after its retrieval."""

UNPUBLISHED = frozenset(
    {
        "tracking",
        "store",
        "budget",
        "confirm_above_usd",
        "stop_after_failures",
        "prices",
        "fresh",
        "plots",
        "tags",
        "note",
        "objective",
    }
)
"""Groups and fields that determine how a run is stored or shown, but not its results."""

IMPORTED_SETTINGS = ("dataset", "system", "judge", "llm", "seed", "min_coverage")
"""Groups and fields that apply to the answers of another program."""


def params(cell: Cell) -> dict[str, Param]:
    """The resolved config as `run.json` and MLflow show it."""
    shown = shown_settings(
        cell.config,
        system_settings(cell.source),
        uses_llm_at_ingest=cell.identity.uses_llm_at_ingest,
        judge_uses_llm=cell.identity.judge_uses_llm,
    )
    label = cell.config.label
    # A custom system has the version of its code as its label.
    if not label and isinstance(cell.source, SystemSource) and not cell.has_built_in_system:
        label = code_version(cell.source.system_class)
    if label:
        shown["label"] = label

    return shown


def shown_settings(
    config: RunConfig,
    system_values: Mapping[str, Any],
    *,
    uses_llm_at_ingest: bool,
    judge_uses_llm: bool,
) -> dict[str, Param]:
    """A resolved config, flattened; the name of a group's option is stored under the group itself.

    Two kinds of fields are left out: those that the chosen options do not have, such as the
    temperature of the offline reader, and those of a model that nothing calls. The settings of a
    role are complete: a missing one is taken from the answers' model. `system_values` are the
    system's settings as its class resolved them: those of the YAML are left out.
    """
    uncalled = [f"{role}." for role in DRAFTING]
    if not uses_llm_at_ingest:
        uncalled.append(f"{INGEST}.")
    if not judge_uses_llm:
        uncalled.append(f"{JUDGE}.")

    skipped, shown = tuple(uncalled), {}
    for leaf, value in flatten(replace(config, llm=with_roles_filled(config.llm))).items():
        path = leaf.removesuffix(".name")
        if _is_shown(config, path) and not path.startswith(skipped):
            shown[path] = value

    shown |= flatten(system_values, "system.")
    if config.system.get(TENANTS) is not None:
        shown[f"system.{TENANTS}"] = config.system[TENANTS]

    for path, value in shown.items():
        if isinstance(value, list | tuple):
            shown[path] = ",".join(map(str, value))

    return shown


def _is_shown(config: RunConfig, path: str) -> bool:
    """Whether a field is shown: it belongs to the chosen option of its group."""
    group, dot, field = path.partition(".")
    is_imported = config.system["name"] == IMPORTED
    is_unused = retrieves_only(config) and group in ("judge", "prompt")
    if is_unused or (is_imported and group not in IMPORTED_SETTINGS):
        return False
    if not dot:
        return group not in (*UNPUBLISHED, "sweep_name", "label")
    if group == "system" or group in UNPUBLISHED:
        return False
    if group == "dataset":
        return True
    if path == "judge.class":
        return config.judge.class_ is not None

    known = fields_of(group, getattr(config, group).name)
    # Settings passed to the provider unchanged have their own fields, which are in none of
    # memeval's YAML files.
    is_parameter = "extra_body" in field.split(".")
    return not known or field in known or is_parameter


def tags(cell: Cell) -> dict[str, str]:
    """Provenance of a run, and its comparability."""
    judge = judge_identity(cell)
    labels = {
        "run_key": cell.run_key,
        PROTOCOL: protocol(cell.config, cell.loaded.sha256, judge),
        "prompt_sha256": cell.identity.digests[ANSWER]["prompt"],
        DETERMINISTIC: str(reads_offline(cell)).lower(),
        OWN_PROMPT: str(_has_own_prompt(cell)).lower(),
        "command": cell.command,
        FIGURES_CODE: cell.figures_code,
        **git_state(),
        **{f"version.{package}": number for package, number in versions().items()},
    }
    if judge is not None:
        labels["judge_key"] = judge.digest
    if judge is not None and judge.prompt_sha256:
        labels["judge_prompt_sha256"] = judge.prompt_sha256
    if cell.dataset.side:
        labels["split"] = cell.dataset.side
    if cell.source.flags:
        labels[SYSTEM_FLAGS] = ", ".join(cell.source.flags)
    if cell.source.ranks_part:
        labels["ranks_part"] = "true"
    if cell.config.sweep_name:
        labels["sweep"] = cell.config.sweep_name

    return labels | setting_tags(cell.config) | data_tags(cell.loaded) | own_tags(cell.config)


def data_tags(loaded: LoadedDataset) -> dict[str, str]:
    """Tags of the data; their names begin with `DATA`."""
    labels = {f"{DATA}sha256": loaded.sha256, f"{DATA}pinned": str(loaded.pinned).lower()}
    if loaded.excerpt:
        labels[f"{DATA}excerpt"] = "true"
    if loaded.derived:
        labels[f"{DATA}derived"] = "true"
    if loaded.drafted:
        labels[f"{DATA}drafted"] = "true"
    if loaded.version is not None:
        labels[f"{DATA}version"] = loaded.version

    return labels


def own_tags(config: RunConfig) -> dict[str, str]:
    """The user's tags as stored in a summary: `tags.version`."""
    return {f"{OWN_TAG}{name}": value for name, value in read_filing(config).tags.items()}


def _has_own_prompt(cell: Cell) -> bool:
    """Whether the answers were given with a prompt other than the cell's."""
    if retrieves_only(cell.config):
        return False

    return cell.source.own_prompt or cell.style != cell.config.prompt.name


def setting_tags(config: RunConfig) -> dict[str, str]:
    """Tags that follow from the settings alone, such as how the questions were chosen."""
    dataset = config.dataset
    labels = {"imported": str(config.system["name"] == IMPORTED).lower()}
    if config.judge.name == RECORDED:
        labels["recorded"] = "true"
    if config.system.get("only_listed"):
        labels["partial"] = "true"
    if retrieves_only(config):
        labels[STAGES] = RETRIEVE
    if config.llm.name == "mock":
        labels["mock"] = "true"

    if dataset["sample"] is not None:
        labels[SAMPLE] = str(dataset["sample"])
    if dataset["limit_questions"] is not None:
        labels[BIASED_CUT] = f"first {dataset['limit_questions']} of each conversation"
    if dataset["only"] is not None:
        labels[ONLY] = str(dataset["only"])
    elif dataset["question_ids"] is not None:
        labels[NAMED] = str(len(dataset["question_ids"]))

    return labels


def reads_offline(cell: Cell) -> bool:
    """Whether the answers come from the offline reader."""
    return has_offline_reader(cell.config) and not cell.source.own_prompt


def has_offline_reader(config: RunConfig) -> bool:
    """Whether systems that use the shared reader get the offline one."""
    return config.llm.name == "extractive" and config.system["name"] != IMPORTED


def protocol(config: RunConfig, sha256: str, judge: JudgeIdentity | None) -> str:
    """The choices that must be equal in comparable figures, in one line. `sha256` is the digest of
    the data; `judge` is None for a run that only retrieves.
    """
    dataset = config.dataset
    limits = [
        f"{name}={dataset[name]}" for name in ("limit_cases", "limit_questions") if dataset[name]
    ]
    if dataset["sample"] is not None:
        limits.append(f"sample={dataset['sample']} seed={dataset['sample_seed']}")
    if dataset["only"] is not None:
        limits.append(f"only={dataset['only']}")
    elif dataset["question_ids"] is not None:
        # Distinguishes sets of named questions.
        named = digest({"question_ids": sorted(dataset["question_ids"])})[:8]
        limits.append(f"question_ids={len(dataset['question_ids'])} {named}")

    asked = "all"
    if dataset["categories"]:
        asked = ",".join(map(str, dataset["categories"]))

    changed = [
        f"{name}={value}"
        for name, value in dataset.items()
        # The default value is left out, as in protocols from before there were splits.
        if name not in _COMMON and (name, value) != ("split", "all")
    ]
    parts = [dataset["name"], sha256[:8], *changed, f"categories={asked}"]
    if judge is None:
        return " ".join([*parts, f"stages={RETRIEVE}", *limits])

    return " ".join([*parts, f"prompt={config.prompt.name}", f"judge={judge.shown}", *limits])


def config_yaml(cell: Cell) -> str:
    """The resolved config as YAML, without settings that only affect storage or display."""
    system = {"name": cell.config.system["name"], **system_settings(cell.source)}
    for name in ("class", *sorted(SHARED_SETTINGS)):
        if name in cell.config.system:
            system[name] = cell.config.system[name]

    settings = asdict(cell.config)
    for name in UNPUBLISHED:
        settings.pop(name, None)

    # `class` is a keyword of Python: the field of the record is called `class_`.
    settings["judge"] = {name.removesuffix("_"): value for name, value in settings["judge"].items()}
    return as_yaml(redacted_in({**settings, "system": system}))
