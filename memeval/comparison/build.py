"""Compares finished runs: pairs, refusals, differences, adjusted p and letters."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from memeval.comparison.pairs import difference_between, same_values
from memeval.comparison.protocol import reasons_against
from memeval.comparison.records import ComparedRun, Comparison, Difference, Refusal
from memeval.comparison.scores import RunScores, cases_of, read_scores, shared_scores, weights_of
from memeval.comparison.sent import SentReader
from memeval.comparison.significance import Pair, adjusted, letters_of
from memeval.errors import UserError
from memeval.metrics.accuracy import corrected_text
from memeval.metrics.metric import DOLLARS, POINTS, Metric
from memeval.metrics.registry import unknown_metric
from memeval.records import Role
from memeval.report.categories import category_titles
from memeval.report.differences import differing_settings, labels, setting_value, unique_labels
from memeval.report.flags import flags
from memeval.results import NoteKind, RunSummary, judge_shown, run_cost_usd
from memeval.results.prices import has_other_prices
from memeval.results.run import Run
from memeval.statistics.clusters import clustered_mean
from memeval.text.shown import one_line, some_of

ALL_KINDS = frozenset(NoteKind) - {NoteKind.COMMON}
"""Notes that `force` overrides. Without questions in common there is nothing to compare."""
COMMON_KINDS = frozenset({NoteKind.DATA})
"""Notes that `common` overrides: other versions of the data. Only shared questions count."""
LARGEST = 1e100
"""Largest value of a metric; the sums of squares of larger ones may be beyond a float."""
MAX_NAMED = 8
"""Maximum runs that a note names for each model."""


def compare_runs(
    runs: Sequence[Run],
    metric: Metric,
    *,
    baseline: int = 0,
    all_pairs: bool = False,
    steps: bool = False,
    force: bool = False,
    common: bool = False,
    categories: bool = True,
    scores: Sequence[RunScores] = (),
) -> Comparison:
    """Compares each run with the one at position `baseline`, with all others (`all_pairs`), or with
    the one before it (`steps`).

    `scores` are the runs' scores, if they were read before: then no file of a run is opened.
    `common` compares versions of a data set, on the questions that all runs asked in the same
    words. Without `categories`, the differences are not split by category, which takes most of the
    time. Runs that may not be compared become a `Refusal`, unless `force`. Raises `UserError` if
    records can't be read, and for a metric that no run has.
    """
    sent = None
    if not scores:
        sent, scores = SentReader(), scores_of(runs, metric)

    asked, left_out = max((len(run_scores.questions) for run_scores in scores), default=0), 0
    if common:
        scores = shared_scores(scores)
        left_out = asked - len(scores[0].questions)

    allowed = _overridden_kinds(force=force, common=common)
    pairs = _pairs(len(runs), baseline, all_pairs=all_pairs, steps=steps)
    kept, refusals = _comparable_pairs(pairs, runs, scores, metric, allowed)
    if left_out:
        only = f"only the {asked - left_out:,} of {asked:,} questions with the same wording"
        kept = {pair: (*reasons, only) for pair, reasons in kept.items()}

    def may_be_compared(first: int, second: int) -> bool:
        if (first, second) in kept or (second, first) in kept:
            return True

        return not _comparable_pairs([(first, second)], runs, scores, metric, allowed)[1]

    titles = _category_titles(scores) if categories else {}
    differences = adjusted(_differences(kept, runs, scores, metric, sent, titles=titles), scores)
    letters = letters_of(differences, scores, may_be_compared)
    compared = tuple(_compared_runs([run.summary for run in runs], scores, metric, letters))
    has_baseline = bool(runs) and not (all_pairs or steps)
    return Comparison(
        metric=metric.name,
        unit=metric.unit.name,
        scale=metric.unit.scale,
        baseline=runs[baseline].key if has_baseline else None,
        runs=compared,
        differences=tuple(differences.values()),
        refusals=tuple(refusals),
        questions=_questions(scores),
        values={run.key: scored.values for run, scored in zip(runs, scores, strict=True)},
        left_out=left_out,
        model_notes=tuple(_model_notes(scores, [run.label for run in compared])),
    )


def scores_of(runs: Sequence[Run], metric: Metric) -> list[RunScores]:
    """Each run's scores. Raises `UserError` if there are none, if shares are not in [0, 1], and for
    values beyond `LARGEST`.
    """
    scores = []
    names: set[str] = set()
    figures: set[str] = set()
    for run in runs:
        run_scores = read_scores(run, metric)
        # A declared share is checked when it is measured. This one may not be declared here.
        values = run_scores.values.values()
        lowest, highest = min(values, default=0), max(values, default=1)
        if metric.unit == POINTS and (round(lowest, 9) < 0 or round(highest, 9) > 1):
            raise UserError(
                f"{one_line(metric.name)} is not a share, and its metric is not installed here",
                "for its unit, install its package, or add the metric and compare from Python",
            )
        if max(-lowest, highest) > LARGEST:
            raise UserError(
                f"{one_line(metric.name)} has values beyond {LARGEST:g}, which can't be squared",
                "let the metric return values in a larger unit, then repeat the runs' commands",
            )

        scores.append(run_scores)
        names |= run_scores.metrics
        figures |= run.summary.metrics.keys()

    # Runs with other prices are refused, with a hint.
    is_refused = metric.unit is DOLLARS and any(has_other_prices(run.summary.tags) for run in runs)
    if runs and not is_refused and not any(run_scores.values for run_scores in scores):
        raise unknown_metric(metric.name, names, figures)

    return scores


def _overridden_kinds(*, force: bool, common: bool) -> frozenset[NoteKind]:
    """The kinds of reasons against a comparison that are overridden."""
    if force:
        return ALL_KINDS
    if common:
        return COMMON_KINDS

    return frozenset()


def _pairs(count: int, baseline: int, *, all_pairs: bool, steps: bool) -> list[Pair]:
    """The pairs of runs to compare, by position."""
    if steps:
        return [(number, number - 1) for number in range(1, count)]
    if all_pairs:
        return list(combinations(range(count), 2))

    return [(number, baseline) for number in range(count) if number != baseline]


def _comparable_pairs(
    pairs: Sequence[Pair],
    runs: Sequence[Run],
    scores: Sequence[RunScores],
    metric: Metric,
    allowed: frozenset[NoteKind],
) -> tuple[dict[Pair, tuple[str, ...]], list[Refusal]]:
    """The pairs to compare, each with its overridden reasons, and the refusals of the others."""
    kept: dict[Pair, tuple[str, ...]] = {}
    refusals = []

    for first, second in pairs:
        notes = reasons_against(
            (runs[first].summary, scores[first]), (runs[second].summary, scores[second]), metric
        )
        refusal = Refusal(runs[first].key, runs[second].key, tuple(notes))
        if all(note.kind in allowed for note in refusal.notes):
            kept[first, second] = refusal.reasons
        else:
            refusals.append(refusal)

    return kept, refusals


def _differences(
    kept: Mapping[Pair, tuple[str, ...]],
    runs: Sequence[Run],
    scores: Sequence[RunScores],
    metric: Metric,
    sent: SentReader | None,
    *,
    titles: Mapping[str, str],
) -> dict[Pair, Difference]:
    """Each pair's difference, p not adjusted yet. `kept` has the pairs' overridden reasons, and
    `titles` the names of the categories to compare.
    """
    differences = {}
    for (first, second), forced in kept.items():
        run_scores, other = scores[first], scores[second]
        difference = difference_between(
            (runs[first].key, runs[second].key),
            run_scores,
            other,
            titles=titles,
            most=metric.unit.most,
            forced=forced,
        )
        if sent is not None and same_values(run_scores, other):
            shared = run_scores.common(other)
            alike = sent.count_alike(runs[first], runs[second], shared)
            why = sent.describe_edges(runs[first], runs[second]) if alike else ""
            difference = replace(difference, sent_alike=alike, why_alike=why)

        differences[first, second] = difference

    return differences


def _model_notes(scores: Sequence[RunScores], names: Sequence[str]) -> Iterator[str]:
    """A sentence on each requested model that is another one in the replies of some runs, as far as
    their rows say so: older runs noted no model, and some endpoints name none.
    """
    named: dict[tuple[Role, str], dict[str, list[str]]] = {}
    for run_scores, name in zip(scores, names, strict=True):
        for called, models in run_scores.models.items():
            if models:
                answering = " and ".join(sorted(models))
                if models == {called[1]}:
                    answering += " or none"
                named.setdefault(called, {}).setdefault(one_line(answering, 200), []).append(name)

    for (role, requested), runs in named.items():
        if len(runs) > 1:
            shown = [f"{models} in {some_of(own, MAX_NAMED)}" for models, own in runs.items()]
            yield (
                f"As far as is noted, the replies to {role} calls named different models for "
                f"{one_line(requested, 80)}: {'; '.join(shown)}."
            )


def _category_titles(scores: Sequence[RunScores]) -> dict[str, str]:
    """The titles of the categories by id: runs may name a category differently."""
    named: dict[tuple[str, str, str], None] = {}
    for run_scores in scores:
        for asked in run_scores.questions.values():
            named["", asked.category, asked.category_name] = None

    return {category: title for (_, category), title in category_titles(named).items()}


def _questions(scores: Sequence[RunScores]) -> dict[str, dict[str, str]]:
    """Conversation and category of each question, in the order in which runs asked them."""
    questions: dict[str, dict[str, str]] = {}
    for run_scores in scores:
        for name, asked in run_scores.questions.items():
            questions.setdefault(name, {"case": asked.case_id, "category": asked.category_name})

    return questions


def _compared_runs(
    summaries: Sequence[RunSummary],
    scores: Sequence[RunScores],
    metric: Metric,
    letters: Mapping[int, str],
) -> Iterator[ComparedRun]:
    columns, names = differing_settings(summaries), unique_labels(labels(summaries), summaries)
    for number, (summary, run_scores) in enumerate(zip(summaries, scores, strict=True)):
        get = summary.metrics.get
        yield ComparedRun(
            key=summary.run_key,
            name=one_line(summary.name),
            label=names[number],
            sweep=summary.sweep,
            dataset=summary.dataset,
            judge=one_line(judge_shown(summary.judge)),
            settings={name: one_line(setting_value(summary, name)) for name in columns},
            flags=tuple(flags(summary)),
            asked=len(run_scores.questions),
            result=clustered_mean(
                list(run_scores.values.values()),
                cases_of(run_scores, run_scores.values),
                weights_of(run_scores, run_scores.values),
                is_share=metric.unit == POINTS,
            ),
            rerun_std=run_scores.std,
            repeats=run_scores.repeats,
            coverage=get("coverage"),
            cost_usd=run_cost_usd(summary),
            context_tokens=get("context_tokens"),
            latency_ms=get("latency_ms/answer/p50"),
            corrected=_corrected_words(summary),
            letters=letters.get(number, ""),
        )


def _corrected_words(summary: RunSummary) -> str:
    """The corrected accuracy and its labels; empty if not corrected."""
    text = corrected_text(summary)
    if not text:
        return ""

    for note in summary.notes_of(NoteKind.CORRECTED):
        text += f" ({note.text.rstrip('.')})"

    return text
