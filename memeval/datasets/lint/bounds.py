"""Compares a run with the others on its data. Controls are bounds for other systems: a run above
its bound did not measure memory. A question with the same result in all runs measures nothing.
"""

from collections.abc import Iterable, Iterator, Mapping

from memeval.datasets.grouping import group
from memeval.datasets.lint.records import Finding, LintedRun, differing_settings
from memeval.results import Record, RunSummary
from memeval.text.shown import counted

RANKS: Mapping[str, int] = {
    "constant": 0,
    "no_memory": 1,
    "random_k": 2,
    "long_context": 4,
    "full_history": 4,
    "oracle": 5,
}
"""Controls, from the one with least of the conversation to the one with most."""
BETWEEN = 3
"""Rank of all other systems: they have a part of the conversation, chosen by the question."""
MIN_RUNS = 3
"""Minimum number of runs that must agree on a question to be reported."""
SAME = ("dataset", "judge", "llm", "prompt", "stages", "compression_turn", "compression_unit")
"""Settings that must be equal, besides the data, for one run to bound another."""


def check_bounds(material: LintedRun) -> Iterator[Finding]:
    """Runs above a control that bounds them, and controls above the runs that they bound."""
    # A control that refuses everything is right on the questions that are not in the accuracy.
    headline = material.summary.headline
    own = scores(row for row in material.records if not headline or str(row.category) in headline)
    for rival in material.rivals:
        if rank_of(material.summary) == rank_of(rival.summary):
            continue

        common = sorted(own.keys() & rival.scores.keys())
        if not common or not is_comparable(material.summary, rival.summary):
            continue

        differences = {name: own[name] - rival.scores[name] for name in common}
        ahead = sum(differences.values()) / len(common)
        if rank_of(material.summary) > rank_of(rival.summary):
            ahead = -ahead
        if ahead <= 0:
            continue

        lower, upper = sorted((material.summary, rival.summary), key=rank_of)
        yield Finding(
            kind="above its bound",
            what=f"{system_of(lower)} is {100 * ahead:.1f} points above {system_of(upper)} "
            f"on {counted(len(common), 'question')}",
            where=f"run {rival.summary.run_key}",
            why=f"{system_of(upper)} has at least everything that {system_of(lower)} has. "
            "Possible causes: chance on so few questions, a context that is too long to "
            "read, a lenient judge, or questions that need no memory",
            questions=tuple(name for name in common if differences[name]),
        )


def same_everywhere(material: LintedRun) -> Iterator[Finding]:
    """Questions that three or more comparable runs all get right, or all get wrong."""
    runs = [scores(material.records), *(rival.scores for rival in material.rivals)]
    if len(runs) < MIN_RUNS:
        return

    common = sorted(set(runs[0]).intersection(*runs[1:]))
    agreed: dict[float, list[str]] = {1.0: [], 0.0: []}
    for name in common:
        given = {run[name] for run in runs}
        if given in ({1.0}, {0.0}):
            agreed[given.pop()].append(name)

    for score, kind, why in (
        (1.0, "right in every run", "they do not distinguish systems"),
        (0.0, "right in no run", "they do not distinguish systems; the gold answer may be wrong"),
    ):
        if agreed[score]:
            yield Finding(
                kind=kind,
                what=f"{len(agreed[score]):,} of {len(common):,} questions",
                where=f"{len(runs):,} comparable runs of this home",
                why=why,
                questions=tuple(agreed[score]),
            )


def scores(records: Iterable[Record]) -> dict[str, float]:
    """The mean score of each question over its repeats; questions without a score are left out."""
    columns = group((row.question_id, row.score) for row in records if row.score is not None)
    return {name: sum(column) / len(column) for name, column in columns.items()}


def rank_of(summary: RunSummary) -> int:
    """Rank of a run's system by its share of the conversation."""
    return RANKS.get(system_of(summary), BETWEEN)


def system_of(summary: RunSummary) -> str:
    return str(summary.params.get("system"))


def is_comparable(summary: RunSummary, other: RunSummary) -> bool:
    """Whether two runs have the same model, prompt and judge; the ingest model may differ."""
    for name in differing_settings(summary, other):
        is_of_ingest = name.startswith("llm.ingest")
        if name.split(".")[0] in SAME and not is_of_ingest:
            return False

    return True
