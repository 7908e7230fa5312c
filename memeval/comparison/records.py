"""A comparison for display, storage and pages: plain figures, no text to parse."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memeval.results import Note, NoteKind
from memeval.results.fields import as_plain
from memeval.statistics.clusters import ClusteredMean
from memeval.statistics.differences import ClusteredDifference
from memeval.text.shown import counted

JSON_VERSION = 1
MAX_T, BENJAMINI_HOCHBERG = "max-t", "bh"
ADJUSTMENTS = (MAX_T, BENJAMINI_HOCHBERG)
"""Adjustments of p: over all differences of one metric, or over those of several metrics."""


@dataclass(frozen=True)
class ComparedRun:
    """One run of a comparison, on all questions that it scored."""

    key: str
    name: str
    label: str
    """A short name that distinguishes it from the others here."""
    sweep: str | None
    dataset: str
    judge: str
    """Name, model and prompt of its judge."""
    settings: Mapping[str, str]
    """The settings that differ between the runs, by dotted name."""
    flags: tuple[str, ...]
    asked: int
    """Questions that were asked."""
    result: ClusteredMean | None
    """Mean over the scored questions, with its sampling error; None if nothing is scored."""
    rerun_std: float | None
    """Standard deviation over the repeats: re-run noise, not sampling error."""
    repeats: int
    coverage: float | None
    cost_usd: float | None
    context_tokens: float | None
    latency_ms: float | None
    """Median latency of an answer."""
    corrected: str = ""
    """Accuracy corrected for the judge's errors, in words; empty if no labels were given."""
    letters: str = ""
    """Runs that share a letter can't be told apart; empty if it was not compared."""


@dataclass(frozen=True)
class CategoryDifference:
    """The difference within one category: a description, not a test."""

    category: str
    result: ClusteredDifference


@dataclass(frozen=True)
class CaseDifference:
    """The difference within one conversation."""

    case_id: str
    count: int
    mean: float


@dataclass(frozen=True)
class Difference:
    """One run minus another, on the questions that both scored."""

    first: str
    """Run key of the higher run if the difference is above 0."""
    second: str
    """Run key of the subtracted run: the baseline, if there is one."""
    only_first: int
    """Questions that only the first one scored."""
    only_second: int
    result: ClusteredDifference
    """Mean difference of questions; interval, p and MDE from sign flips of whole conversations."""
    adjusted_p: float | None
    """p adjusted by the comparison's `adjustment`; None for one conversation."""
    first_alone: int | None
    """Questions that only the first has right; None if values are not right or wrong."""
    second_alone: int | None
    mcnemar_p: float | None
    """McNemar p of these two counts; descriptive, because it ignores conversations."""
    categories: tuple[CategoryDifference, ...]
    cases: tuple[CaseDifference, ...]
    forced: tuple[str, ...] = ()
    """Reasons against the comparison, if `--force` was used."""
    among: int = 1
    """Number of differences whose p were adjusted together, including this one."""
    sent_alike: int | None = None
    """Questions on which both sent the same to the same reader; determined only if no question has
    different values.
    """
    why_alike: str = ""
    """Explanation of equal prompts, with numbers."""

    @property
    def p(self) -> float | None:
        """p of the flip test of this pair alone; None for one conversation."""
        return self.result.p

    @property
    def most_scored(self) -> int:
        """Number of questions that the run with more scored questions has scored."""
        return self.result.count + max(self.only_first, self.only_second)

    @property
    def common_share(self) -> float:
        """Share of these questions that the other run also scored."""
        return self.result.count / self.most_scored

    @property
    def same_prompts(self) -> bool:
        """Whether both sent the same prompts for every question, so there is nothing to compare."""
        return self.sent_alike is not None and self.sent_alike == self.result.count

    @property
    def is_shown(self) -> bool:
        """Whether a difference is shown: the adjusted p is at most 5 %."""
        return is_significant(self.adjusted_p)


SIGNIFICANT = 0.05


def is_significant(p: float | None) -> bool:
    """Whether p is known and at most 5 %."""
    return p is not None and p <= SIGNIFICANT


@dataclass(frozen=True)
class Refusal:
    """Two runs that were not compared, with the reasons."""

    first: str
    second: str
    notes: tuple[Note, ...]
    """Reasons for not comparing them."""

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(note.text for note in self.notes)

    @property
    def can_be_forced(self) -> bool:
        """Whether `--force` would compare them."""
        return all(note.kind is not NoteKind.COMMON for note in self.notes)

    def to_json(self) -> dict[str, Any]:
        """The refusal as stored in `comparison.json`."""
        return {
            "first": self.first,
            "second": self.second,
            "kinds": [note.kind.value for note in self.notes],
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """A comparison of finished runs under one metric."""

    metric: str
    unit: str
    """`points` (values are shares, shown times 100), `$`, `ms` or `tokens`."""
    scale: float
    """The factor applied to values for display."""
    baseline: str | None
    """Run key; None if all pairs are compared."""
    runs: tuple[ComparedRun, ...]
    differences: tuple[Difference, ...]
    refusals: tuple[Refusal, ...]
    questions: Mapping[str, Mapping[str, Any]]
    """`case` and `category` of each question, by id."""
    values: Mapping[str, Mapping[str, float]]
    """Values of the questions, by run key and question id."""
    adjustment: str = MAX_T
    """`max-t`: step-down max-T over the differences. `bh`: Benjamini-Hochberg over `tests`."""
    left_out: int = 0
    """Questions that not all runs asked in the same words: under `common`, they do not count."""
    model_notes: tuple[str, ...] = ()
    """Sentences on runs that requested the same model and got replies of different ones."""
    tests: int | None = None
    """Under `bh`: the p-values that were adjusted together, those of other metrics included."""

    def __repr__(self) -> str:
        runs, pairs = counted(len(self.runs), "run"), len(self.differences)
        return f"<Comparison by {self.metric}: {runs}, {counted(pairs, 'difference')}>"

    def run(self, key: str) -> ComparedRun:
        return next(run for run in self.runs if run.key == key)

    @property
    def forced(self) -> tuple[str, ...]:
        """All reasons that `--force` overrode."""
        reasons: dict[str, None] = {}
        for difference in self.differences:
            reasons |= dict.fromkeys(difference.forced)

        return tuple(reasons)

    @property
    def warning(self) -> str:
        """Checks that `--force` overrode, in words; empty if nothing was forced."""
        if not self.forced:
            return ""

        return f"FORCED, not comparable: {'; '.join(self.forced)}"

    def to_json(self) -> dict[str, Any]:
        """The whole comparison as JSON.

        Questions are columns, in one order for all: `questions.id[i]` has the value
        `questions.values[run key][i]`, null if it has no value.
        """
        differences = []
        for pair in self.differences:
            test = {"p": pair.p, "is_shown": pair.is_shown, "same_prompts": pair.same_prompts}
            differences.append(as_plain(pair) | test)

        return {
            "version": JSON_VERSION,
            "metric": self.metric,
            "unit": self.unit,
            "scale": self.scale,
            "baseline": self.baseline,
            "adjustment": self.adjustment,
            "tests": self.tests,
            # Accuracies may be corrected for the judge's error; differences never are.
            "verdicts": "raw",
            "forced": list(self.forced),
            "runs": list(map(as_plain, self.runs)),
            "differences": differences,
            "refusals": [refusal.to_json() for refusal in self.refusals],
            "questions": self._question_columns(),
        }

    def _question_columns(self) -> dict[str, Any]:
        # As columns: a row per question and run would repeat every id for each of ten runs.
        cases, categories = [], []
        for question in self.questions.values():
            cases.append(question["case"])
            categories.append(question["category"])

        values = {key: list(map(scores.get, self.questions)) for key, scores in self.values.items()}
        return {"id": list(self.questions), "case": cases, "category": categories, "values": values}


def are_too_few(differences: Iterable[Difference]) -> bool:
    """Whether each difference has too few conversations to be shown."""
    return all(difference.result.has_too_few_clusters for difference in differences)


def compared_keys(comparison: Comparison) -> set[str]:
    """Keys of the runs that were compared with another one."""
    keys: set[str] = set()
    for pair in comparison.differences:
        keys |= {pair.first, pair.second}

    return keys


def pair_labels(comparison: Comparison, pair: Difference | Refusal) -> tuple[str, str]:
    return comparison.run(pair.first).label, comparison.run(pair.second).label
