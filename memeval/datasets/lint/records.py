"""Material for the checks, and their findings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import Struct

from memeval.config.identity import result_settings
from memeval.records import EvalCase
from memeval.results import Record, RunSummary


class Finding(Struct, frozen=True):
    """A problem that may make a run look better than it is."""

    kind: str
    """`gold in prompt`, `gold in settings`, `gold in memory`, `retrieves everything`, `judge saw
    more`, `tuned on test` or `above its bound`; for a remark `right in every run` or `right in no
    run`.
    """
    what: str
    where: str
    why: str
    """Why it matters."""
    questions: tuple[str, ...]


class SentPrompt(Struct, frozen=True):
    """Prompt that was sent to the reader of a question."""

    messages: tuple[str, ...]
    context: str | None


class Rival(Struct, frozen=True):
    """Another run of this home on the same data, under the same model, prompt and judge."""

    summary: RunSummary
    scores: Mapping[str, float]
    """The mean score of each question over its repeats."""


@dataclass(frozen=True)
class LintedRun:
    """A run with all information about it on this machine."""

    summary: RunSummary
    records: Sequence[Record]
    prompts: Mapping[tuple[str, int], SentPrompt] = field(default_factory=dict)
    """By question and repeat."""
    cases: Mapping[str, EvalCase] | None = None
    """The data, by case; None if it is not on this machine, or has changed."""
    memories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Texts that the memory of a case extracted or wrote."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings that are strings, and the contents of the user's own files, by name."""
    missing: Sequence[str] = ()
    """Missing material, with reasons."""
    siblings: Sequence[tuple[RunSummary, frozenset[str]]] = ()
    """Other runs of this home on the same data, with the ids of their questions."""
    rivals: Sequence[Rival] = ()
    """Comparable runs of this home on the same data."""


def differing_settings(summary: RunSummary, other: RunSummary) -> list[str]:
    """Settings that can change a result and in which two runs differ; None counts as not set."""
    settings = result_settings(summary.params, summary.identity)
    others = result_settings(other.params, other.identity)
    return [name for name in {**settings, **others} if settings.get(name) != others.get(name)]


class Lint(Struct, frozen=True):
    findings: tuple[Finding, ...]
    remarks: tuple[Finding, ...]
    """Properties of the data, not of the run: they don't make it look better."""
    unchecked: tuple[str, ...]
    """Parts that could not be checked, and why."""
