"""One run of a comparison, on all questions that it scored."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.comparison.records import ComparedRun
from memeval.comparison.scores import RunScores, cases_of, weights_of
from memeval.metrics.accuracy import corrected
from memeval.metrics.metric import POINTS, Metric
from memeval.report.differences import differing, labels, shown
from memeval.report.flags import flags
from memeval.results import NoteKind, RunSummary, fresh_cost_usd, judge_shown
from memeval.statistics.clusters import clustered_mean
from memeval.text.shown import one_line


def compared_runs(
    summaries: Sequence[RunSummary], scores: Sequence[RunScores], metric: Metric
) -> list[ComparedRun]:
    columns, names = differing(summaries), distinct(labels(summaries), summaries)
    compared = []
    for summary, own, label in zip(summaries, scores, names, strict=True):
        get = summary.metrics.get
        run = ComparedRun(
            key=summary.run_key,
            name=one_line(summary.name),
            label=label,
            sweep=summary.sweep,
            dataset=summary.dataset,
            judge=one_line(judge_shown(summary.judge)),
            settings={name: one_line(shown(summary, name)) for name in columns},
            flags=tuple(flags(summary)),
            asked=len(own.questions),
            result=clustered_mean(
                list(own.values.values()),
                cases_of(own, own.values),
                weights_of(own, own.values),
                is_share=metric.unit == POINTS,
            ),
            rerun_std=own.std,
            repeats=own.repeats,
            coverage=get("coverage"),
            cost_usd=fresh_cost_usd(summary.metrics),
            context_tokens=get("context_tokens"),
            latency_ms=get("latency_ms/answer/p50"),
            corrected=corrected_words(summary),
        )
        compared.append(run)

    return compared


def corrected_words(summary: RunSummary) -> str:
    """The corrected accuracy and the labels it rests on; empty if not corrected."""
    text = corrected(summary)
    if not text:
        return ""

    for note in summary.notes_of(NoteKind.CORRECTED):
        text += f" ({note.text.rstrip('.')})"

    return text


def distinct(names: Sequence[str], summaries: Sequence[RunSummary]) -> list[str]:
    """Labels that name one run each: a key is added if two runs ended in the same second."""
    return [
        f"{name} {summary.run_key[:6]}" if names.count(name) > 1 else name
        for name, summary in zip(names, summaries, strict=True)
    ]
