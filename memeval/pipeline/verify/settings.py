"""Facts that `run.json` states twice: settings, flags and tags, compared with their sources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memeval.config.identity import Keys, join_digests
from memeval.config.leaves import fields_of
from memeval.config.plugins import own_file
from memeval.config.schema import RunConfig
from memeval.config.settings import own_settings
from memeval.datasets.registry import adapter_class
from memeval.pipeline.measure.provenance import (
    BIASED_CUT,
    DETERMINISTIC,
    NAMED,
    ONLY,
    OWN_PROMPT,
    PROTOCOL,
    SAMPLE,
    STAGES,
    has_offline_reader,
    protocol,
    setting_tags,
    shown_settings,
)
from memeval.pipeline.open.cell import run_name
from memeval.pipeline.open.opening import stages_of
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.pipeline.verify.figures import same_figure
from memeval.results import FOUND_NOTHING, RunSummary
from memeval.results.summary import FINISHED, STOPPED
from memeval.systems.base import MemorySystem
from memeval.systems.registry import system_class
from memeval.text.shown import counted, one_line
from memeval.witness.figures import figures

Row = Mapping[str, Any]
_REPEAT_MEMBERS = {"seed", *Keys.__struct_fields__}


def setting_problems(summary: RunSummary, config: RunConfig) -> Iterator[str]:
    """Settings, and facts derived from them, that differ between `run.json` and the config."""
    inputs, recorded = summary.identity["inputs"], dict(summary.params)
    shown = shown_settings(
        config,
        own_settings(config.system, "system"),
        uses_llm_at_ingest=inputs["uses_llm_at_ingest"],
        judge_uses_llm=inputs["judge_uses_llm"],
    )
    # A custom class has its code's version as its label, unless a label is set.
    label = recorded.pop("label", None)
    if config.label not in (label, None):
        yield f"run.json: the label is {one_line(label, 60)}, but different in config.yaml"

    for name in sorted(shown.keys() ^ recorded.keys()):
        # The fields of a package's option are known only if the package is installed.
        if name not in shown or _is_ours(name, config):
            shorter = one_line(name, 60)
            yield f"run.json: the setting {shorter} is missing here or in config.yaml"

    for name in sorted(shown.keys() & recorded.keys()):
        if recorded[name] != shown[name]:
            yield (
                f"run.json: the setting {name} is {one_line(recorded[name], 60)}, but "
                f"{one_line(shown[name], 60)} in config.yaml"
            )

    yield from _derived_problems(summary, config)
    stages = _stages(config)
    if stages is not None and inputs["stages"] != stages:
        yield "run.json: the stages of its settings don't match its system and data set"


def _derived_problems(summary: RunSummary, config: RunConfig) -> Iterator[str]:
    sha256 = summary.data_sha256
    # None for a tag that must be missing.
    expected: dict[str, str | None] = dict.fromkeys(
        ("recorded", "partial", "mock", STAGES, SAMPLE, BIASED_CUT, ONLY, NAMED)
    )
    expected |= setting_tags(config)
    expected[PROTOCOL] = protocol(config, sha256, summary.judge)
    for name, value in expected.items():
        if summary.tags.get(name) != value:
            yield f"run.json: the tag {name} differs from config.yaml"

    if summary.name != run_name(config):
        yield "run.json: the name differs from config.yaml"
    if not _fits_reader(summary.tags, config):
        yield f"run.json: the tags {DETERMINISTIC} and {OWN_PROMPT} don't match its reader"


def _is_ours(name: str, config: RunConfig) -> bool:
    """Whether a setting belongs to all runs, or to a built-in option."""
    group, dot, _ = name.partition(".")
    if not dot or group in ("dataset", "system"):
        return True

    return bool(fields_of(group, getattr(config, group).name))


def _fits_reader(tags: Mapping[str, str], config: RunConfig) -> bool:
    has_own, deterministic = tags.get(OWN_PROMPT), tags.get(DETERMINISTIC)
    if not {has_own, deterministic} <= {"true", "false"}:
        return False

    system = _shipped_system(config)
    # The system's own style may equal the cell's style: only the cell can tell.
    if system is not None and "answer_style" not in vars(system) and has_own == "true":
        own_prompt = system.own_prompt or config.system.get("own_prompt", False)
        return bool(own_prompt) and not retrieves_only(config)

    is_offline = has_offline_reader(config)
    return (deterministic == "true") == is_offline or (has_own == "true" and is_offline)


def _stages(config: RunConfig) -> dict[str, str] | None:
    """Stages of the settings; None if data set or system are not memeval's own."""
    name, system = config.dataset["name"], _shipped_system(config)
    if system is None or config.dataset.get("class") or own_file("dataset", name) is None:
        return None

    return stages_of(
        adapter_class(name), system.settings_type, wants_evidence=system.wants_evidence
    )


def _shipped_system(config: RunConfig) -> type[MemorySystem] | None:
    name = config.system["name"]
    if config.system.get("class") or own_file("system", name) is None:
        return None

    return system_class(name)


def tag_problems(summary: RunSummary) -> Iterator[str]:
    """Tags and flags of `run.json` that contradict its other members, if its identity is sound."""
    tags, params = summary.tags, summary.params
    identity, judge = summary.identity, summary.judge
    inputs = identity["inputs"]["digests"]
    expected = {
        "run_key": summary.run_key,
        "command": summary.command,
        "data_sha256": inputs.get("prepare", {}).get("data"),
        "prompt_sha256": inputs.get("answer", {}).get("prompt"),
        "judge_key": judge and judge.digest,
        "judge_prompt_sha256": judge and judge.prompt_sha256,
    }
    for name, value in expected.items():
        if tags.get(name) != value:
            yield f"run.json: the tag {name} does not match the run"

    if summary.status not in (FINISHED, STOPPED):
        yield f"run.json: unknown status {one_line(summary.status, 40)}"

    stages = join_digests().keys()
    if identity.keys() != {"version", "inputs", "keys"} or inputs.keys() != stages:
        yield "run.json: its identity has unexpected or missing members"
    if identity["version"] != tags.get("version.memeval"):
        yield "run.json: its identity and its tags name different versions of memeval"

    if any(repeat.keys() != _REPEAT_MEMBERS for repeat in identity["keys"]):
        yield "run.json: the keys of a repeat differ from those of its stages"

    seeds = [(repeat["seed"], number) for number, repeat in enumerate(identity["keys"])]
    if summary.repeats and [(repeat.seed, repeat.repeat) for repeat in summary.repeats] != seeds:
        yield "run.json: the seeds of the repeats differ from those in the keys"

    least, coverage = params.get("min_coverage"), summary.metrics.get("coverage")
    if isinstance(least, int | float):
        is_covered = coverage is not None and coverage >= least
        valid = is_covered and not summary.is_stopped and tags.get(FOUND_NOTHING) != "true"
        if summary.valid != valid:
            claim = "valid" if summary.valid else "invalid"
            yield f"run.json: it says {claim}, but is not"


def witness_problems(summary: RunSummary, rows: Sequence[Row]) -> Iterator[str]:
    """Figures that a second implementation computes differently; see `memeval.witness`."""
    if summary.params.get("dataset.only") is not None:
        return  # questions chosen by verdicts have no accuracy

    get = summary.metrics.get
    recorded: dict[str, float | None] = {
        "accuracy": get("accuracy"),
        "accuracy:low": get("accuracy_ci95_low"),
        "accuracy:high": get("accuracy_ci95_high"),
        "coverage": get("coverage"),
    }
    for row in summary.categories:
        begin = f"category:{row.category}"
        recorded |= {
            begin: row.accuracy,
            f"{begin}:low": row.ci95_low,
            f"{begin}:high": row.ci95_high,
        }
        recorded |= {f"{begin}:n": row.n, f"{begin}:scored": row.scored}

    expected = figures(rows, summary.headline)
    differing = [
        name
        for name in {**recorded, **expected}
        if not same_figure(recorded.get(name), expected.get(name))
    ]
    if differing:
        names = ", ".join(one_line(name, 60) for name in differing[:3])
        figures_differing = counted(len(differing), "figure")
        yield f"run.json: the second implementation differs in {figures_differing}: {names}"
