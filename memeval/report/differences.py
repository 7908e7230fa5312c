"""Which settings tell the cells of a table apart, and short names for them."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.results import RunSummary
from memeval.shown import one_line

GROUPS = (
    "dataset",
    "system",
    "granularity",
    "top_k",
    "compression_turn",
    "judge",
    "prompt",
    "llm",
    "embedder",
)
"""Groups of settings in the order in which tables show them."""


LONGEST_LABEL = 120
"""Characters of a label in a picture."""
UNNAMED = {"num_runs", "seed"}
"""Settings that labels pass over: they tell how often a cell was measured, not what was."""


def differing(summaries: Sequence[RunSummary]) -> dict[str, str]:
    """The settings that take more than one value over the cells, and the short header of each.

    A setting that only some cells have counts by its values there: one system's own settings don't become columns for all. Within a
    group, a setting that follows from one already taken (a system's class, beside its name) is left out.
    """
    keys = sorted({key: None for summary in summaries for key in summary.params}, key=rank)
    taken: list[str] = []
    for key in keys:
        values = {summary.params[key] for summary in summaries if key in summary.params}
        if len(values) > 1 and not any(
            group(other) == group(key) and follows(key, other, summaries) for other in taken
        ):
            taken.append(key)
    return {key: header(key, taken) for key in taken}


def labels(summaries: Sequence[RunSummary], limit: int | None = None) -> list[str]:
    """A short name a cell: the system, then what else differs; the run's own name where nothing does."""
    columns = [
        (key, short.removeprefix("top_"))
        for key, short in differing(summaries).items()
        if key not in UNNAMED
    ][:limit]
    names = [
        " ".join(named(summary, key, short) for key, short in columns if key in summary.params)
        or summary.name
        for summary in summaries
    ]
    return [one_line(name, LONGEST_LABEL) for name in names]


def shown(summary: RunSummary, key: str) -> str:
    """A setting's value in a table: a dash where the cell has no such setting."""
    value = summary.params.get(key, "–")
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )


def named(summary: RunSummary, key: str, short: str) -> str:
    """A setting in a label: names speak for themselves, figures say what they are."""
    value = shown(summary, key)
    return (
        value
        if key.endswith("name") or (key in GROUPS and not value[:1].isdigit())
        else f"{short}={value}"
    )


def rank(key: str) -> tuple[int, bool, str]:
    """Where a setting stands: by group, the group's name before its other settings."""
    place = GROUPS.index(group(key)) if group(key) in GROUPS else len(GROUPS)
    return place, key != group(key) and not key.endswith(".name"), key


def group(key: str) -> str:
    """The first part of a dotted setting."""
    return key.split(".", maxsplit=1)[0]


def follows(key: str, other: str, summaries: Sequence[RunSummary]) -> bool:
    """Whether one setting's value can be told from another's in each of the cells."""
    pairs = {(summary.params.get(other), summary.params.get(key)) for summary in summaries}
    return len(pairs) == len({first for first, _ in pairs})


def header(key: str, keys: Sequence[str]) -> str:
    """The shortest ending of a dotted setting that no other setting in the table shares."""
    parts = key.removesuffix(".name").split(".")
    if len(parts) == 1:
        return parts[0]
    shares = sum(other.split(".")[-1] == parts[-1] for other in keys) > 1 or parts[-1] in GROUPS
    return ".".join(parts[-2:]) if shares else parts[-1]
