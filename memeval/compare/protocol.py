"""What must be the same before two runs are compared: data, questions, labels, judge, coverage.

A difference in one of them is another experiment. It is refused with its reason, and only
`--force` compares all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memeval.compare.metric import Metric
from memeval.compare.scores import RunScores
from memeval.report.figures import percent
from memeval.results import RunSummary
from memeval.shown import one_line

MIN_COVERAGE = 0.99
MIN_COMMON = 2
"""Questions in common, below which nothing can be said."""
_LABELS = "dataset.labels"
_OF_JUDGE = (
    "judge.class",
    "judge.threshold",
    "judge.repeats",
    "judge.reading",
    "judge.scoring",
    "judge.fence",
)
"""Settings that change what a judge calls right."""
_JUDGE_MODELS = ("llm.judge.model", "llm.judge_model")
"""Settings that name the judge's own model; the second is that of earlier versions."""


@dataclass(frozen=True)
class JudgeIdentity:
    """Who judged: accuracies of two judges differ by more than those of two systems."""

    name: str
    prompt_sha256: str | None
    model: str | None
    """Of a judge that is a model."""
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def shown(self) -> str:
        """In a table: `llm (gpt-4o-mini, prompt 1f2e3d4c)`."""
        parts = [self.model] if self.model else []
        if self.prompt_sha256:
            parts.append(f"prompt {self.prompt_sha256[:8]}")

        parts += [f"{name.removeprefix('judge.')}={value}" for name, value in self.settings]
        return f"{self.name} ({', '.join(parts)})" if parts else self.name


def judge_identity(summary: RunSummary) -> JudgeIdentity:
    """The judge of a run, as far as the run says."""
    return identity_of(summary.params, summary.tags)


def identity_of(params: Mapping[str, Any], tags: Mapping[str, str]) -> JudgeIdentity:
    """The judge that settings and tags of a run name."""
    prompt = tags.get("judge_prompt_sha256")
    model = None
    if prompt is not None:
        names = (*_JUDGE_MODELS, "llm.model")
        known = [params[name] for name in names if params.get(name) is not None]
        model = str(known[0]) if known else None

    # The model is whoever gave the verdicts in the file.
    if tags.get("recorded") == "true":
        model = str(params.get("system.judged_by"))

    own = [(name, params[name]) for name in _OF_JUDGE if params.get(name) is not None]
    return JudgeIdentity(
        name=str(params.get("judge", "")),
        prompt_sha256=prompt,
        model=model,
        settings=tuple((name, str(value)) for name, value in own if (name, value) not in _USUAL),
    )


# Runs from before these settings have none of them: the usual values must read the same.
_USUAL = (("judge.repeats", 1), ("judge.reading", "first_word"), ("judge.scoring", "v2"))


@dataclass(frozen=True)
class Reason:
    """Why two runs are not compared."""

    kind: str
    """`dataset`, `data`, `labels`, `questions`, `judge`, `coverage` or `common`."""
    text: str
    forcible: bool = True
    """Whether `--force` compares all the same."""


def reasons_against(
    first: tuple[RunSummary, RunScores], second: tuple[RunSummary, RunScores], metric: Metric
) -> list[Reason]:
    """All reasons not to compare two runs; empty where they may be."""
    return list(_reasons(*first, *second, metric))


def _reasons(
    summary: RunSummary,
    scores: RunScores,
    other: RunSummary,
    other_scores: RunScores,
    metric: Metric,
) -> Iterator[Reason]:
    common = sum(question in other_scores.values for question in scores.values)
    if common < MIN_COMMON:
        how_many = "one question" if common else "no question"
        yield Reason("common", f"{how_many} in common has a value in both", forcible=False)

    if summary.dataset != other.dataset:
        yield Reason(
            "dataset", f"other data set: {one_line(summary.dataset)}, {one_line(other.dataset)}"
        )

    digests = [run.tags.get("data_sha256", "") for run in (summary, other)]
    if digests[0] != digests[1]:
        shown = ", ".join(one_line(digest[:8]) or "not known" for digest in digests)
        yield Reason("data", f"other data: sha256 {shown}")

    yield from _other_questions(scores, other_scores)

    labels = [str(run.params.get(_LABELS, "")) for run in (summary, other)]
    relabelled = sum(
        question.gold != other_scores.questions[question_id].gold
        for question_id, question in scores.questions.items()
        if question_id in other_scores.questions
    )
    # Another setting changes many golds: to name it says more than to count them.
    if labels[0] != labels[1]:
        yield Reason("labels", f"other labels: {', '.join(map(one_line, labels))}")
    elif relabelled:
        yield Reason("labels", f"other labels: {relabelled:,} questions have another gold answer")

    judges = [judge_identity(run) for run in (summary, other)]
    if metric.judged and judges[0] != judges[1]:
        shown = ", ".join(one_line(judge.shown) or "none" for judge in judges)
        hint = _same_model(judges, (summary, other))
        yield Reason("judge", f"other judge: {shown}{hint}")

    for run in (summary, other):
        coverage = run.metrics.get("coverage")
        if coverage is None or coverage < MIN_COVERAGE:
            shown = "not known" if coverage is None else f"{percent(coverage)} %"
            yield Reason(
                "coverage",
                f"coverage of {one_line(run.name)} is {shown}, below {percent(MIN_COVERAGE)} %",
            )


def _same_model(judges: Sequence[JudgeIdentity], runs: Sequence[RunSummary]) -> str:
    """A hint if two runs differ in their judge only because each was judged by its own model."""
    first, second = judges
    if first.model == second.model or replace(first, model=second.model) != second:
        return ""
    if any(run.params.get(name) is not None for run in runs for name in _JUDGE_MODELS):
        return ""

    return "; each run was judged by the model that answered: set llm.judge.model for both"


def _other_questions(scores: RunScores, other: RunScores) -> Iterator[Reason]:
    asked, asked_other = scores.questions.keys(), other.questions.keys()
    if asked != asked_other:
        yield Reason(
            "questions",
            f"other questions: {len(asked):,} and {len(asked_other):,}, "
            f"{len(asked & asked_other):,} in common",
        )
