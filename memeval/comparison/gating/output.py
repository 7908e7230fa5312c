"""A verdict as Markdown, as JUnit XML and as JSON."""

from dataclasses import dataclass
from typing import Any

from msgspec.structs import asdict

from memeval.comparison.gating.baseline import Baseline, settings_of, tokens_and_usd
from memeval.comparison.gating.verdict import (
    BROKEN_STATUS,
    FINE,
    WORSE_STATUS,
    GateOutcome,
    GateResult,
    GateRules,
    is_loss,
)
from memeval.comparison.records import CategoryDifference
from memeval.comparison.sentences import detection_limit, with_interval, with_unit
from memeval.comparison.words import NO_WIDTH
from memeval.metrics.formats import NONE, count, dollars, figure, probability
from memeval.metrics.metric import POINTS, Metric
from memeval.metrics.registry import metric_named
from memeval.report.escaping import inline
from memeval.report.junit import JunitCase, as_junit
from memeval.report.tables import table
from memeval.results.run import Run
from memeval.statistics.differences import ClusteredDifference
from memeval.text.redaction import redacted_in
from memeval.text.shown import counted, one_line, some_of

JSON_VERSION = 1
ALL = "all questions"
"""Name of the difference over all questions, next to those of the categories."""
MARKS = {FINE: "PASS", WORSE_STATUS: "FAIL", BROKEN_STATUS: "BROKEN"}
MAX_LISTED = 20
"""Maximum questions that Markdown lists; the JSON has all."""
LONGEST_VALUE = 60
"""Maximum characters of a setting's value in the list of differences."""


@dataclass(frozen=True, repr=False)
class Gate:
    """A run, compared with its baseline."""

    run: Run
    baseline: Baseline
    metric: Metric
    rules: GateRules
    result: GateResult

    def __repr__(self) -> str:
        return self.sentence

    def __reduce__(self) -> tuple[Any, ...]:
        # By the metric's name: its functions can't be pickled.
        return _gate_of, (self.run, self.baseline, self.metric.name, self.rules, self.result)

    @property
    def status(self) -> int:
        """The exit status of the command: 0 fine, 1 worse, 3 broken or not comparable."""
        return self.result.status

    @property
    def sentence(self) -> str:
        """The verdict in words that claim no more than the data show."""
        result, metric, rules = self.result, self.metric, self.rules
        if result.outcome is GateOutcome.BROKEN or result.change is None:
            return f"Broken: not comparable with the baseline: {'; '.join(result.reasons)}."

        amount = f"{_points(result.change)} points of {metric.name}"
        failed = _failed_questions(result)
        # As the user wrote it: .04 points must not become 0.0.
        limit = f"{100 * (rules.non_inferior or 0):g}"
        difference = result.change
        tested = f"{amount} (p {probability(difference.p)})"
        inconclusive = (
            f"Inconclusive, which does not prove equality: no difference is shown: {amount}."
        )
        lost = is_loss(difference, metric)
        if lost:
            margin = 100 * rules.margin
            inconclusive = f"A loss is shown, but smaller than the margin {margin:g}: {tested}."

        sentences = {
            GateOutcome.WORSE: f"Worse than the baseline: {tested}.",
            GateOutcome.MUST_PASS: (
                f"Required questions do not pass: {', '.join(failed)}. All: {amount}."
            ),
            GateOutcome.INFERIOR: f"A loss of {limit} points can't be ruled out: {amount}.",
            GateOutcome.NON_INFERIOR: (
                f"Non-inferior: a loss of {limit} points is ruled out: {amount}."
            ),
            GateOutcome.UNCHANGED: f"Unchanged: {metric.name} is the same on every question.",
            GateOutcome.BETTER: f"Better than the baseline: {tested}.",
            GateOutcome.INCONCLUSIVE: inconclusive,
        }
        words = sentences[result.outcome]
        # If a loss is shown, the smallest detectable difference is irrelevant.
        if result.outcome in (GateOutcome.INCONCLUSIVE, GateOutcome.INFERIOR) and not lost:
            ending = detection_limit(difference, POINTS.name)
            words = f"{words} {ending[0].upper()}{ending[1:]}."

        return words

    @property
    def markdown(self) -> str:
        """The verdict with its tables, as in `gate.md`."""
        result, baseline, run = self.result, self.baseline, self.run
        tokens, cost_usd = tokens_and_usd(run.summary)
        lines = [f"## memeval gate: {MARKS[result.status]}", ""]
        for words in filter(None, [headline(result, baseline), self.sentence]):
            lines += [inline(words), ""]

        before, now = figure(result.before, POINTS.name), figure(result.now, POINTS.name)
        rows = [
            (inline(self.metric.name), before, now),
            ("tokens", count(baseline.tokens), count(tokens)),
            ("cost $", dollars(baseline.cost_usd), dollars(cost_usd)),
        ]
        lines += table(("", "baseline", "now"), rows)
        if result.change is not None:
            changes = [CategoryDifference(ALL, result.change), *result.categories]
            lines += ["", *table(("", "questions", "Δ points [95 %]"), map(_row, changes))]
            lines += ["", f"- {inline(_remark(result.change))}"]

        for title, names in (("Worse", result.lost), ("Better", result.gained)):
            if names:
                listed = some_of([inline(one_line(name, 80)) for name in names], MAX_LISTED)
                lines += ["", f"{title}, by question ({len(names):,}): {listed}."]

        if result.must_pass:
            passed = len(result.must_pass) - len(_failed_questions(result))
            lines += ["", f"Must pass: {passed} of {len(result.must_pass)} pass."]

        changed = changed_settings(baseline, run)
        if changed:
            shown = [tuple(map(inline, row)) for row in changed]
            lines += ["", *table(("setting", "baseline", "now"), shown)]

        lines += ["", f"- now: {inline(one_line(run.name))} ({inline(run.key)})"]
        lines += [f"- baseline: {inline(one_line(baseline.name))} ({inline(baseline.run_key)})"]
        return "\n".join(lines) + "\n"

    @property
    def junit(self) -> str:
        """The verdict as JUnit's XML: one case for all questions, one per category and one per
        question that must pass.

        A category fails only if the run as a whole is worse and the category's whole interval is a
        loss: categories are not tested one by one.
        """
        result, metric, problem = self.result, self.metric, None
        if result.outcome is GateOutcome.BROKEN:
            problem = "error"
        elif result.outcome in (GateOutcome.WORSE, GateOutcome.INFERIOR):
            problem = "failure"

        cases = [JunitCase(ALL, self.sentence, problem)]
        is_worse, unit = result.outcome is GateOutcome.WORSE, POINTS.name
        for row in result.categories:
            questions = counted(row.result.count, "question")
            words = f"{_points(row.result)} points of {metric.name}, {questions}"
            problem = "failure" if is_worse and is_loss(row.result, metric) else None
            cases.append(JunitCase(f"category {row.category}", words, problem))

        for question in result.must_pass:
            now, before = with_unit(question.now, unit), with_unit(question.before, unit)
            words = f"{metric.name} {now}, in the baseline {before}"
            problem = None if question.passes else "failure"
            cases.append(JunitCase(f"must pass {question.question_id}", words, problem))

        return as_junit("memeval gate", "memeval.comparison.gating", cases)

    def to_json(self) -> dict[str, Any]:
        """The verdict as in `gate.json`. Shares are in [0, 1]."""
        result, baseline, run = self.result, self.baseline, self.run
        tokens, cost_usd = tokens_and_usd(run.summary)
        difference = p = None
        if result.change is not None:
            difference = _change_json(CategoryDifference(ALL, result.change))
            p = result.change.p

        settings = changed_settings(baseline, run)
        members = ("name", "baseline", "now")
        content = {
            "version": JSON_VERSION,
            "outcome": result.outcome.value,
            "status": result.status,
            "sentence": self.sentence,
            "reasons": list(result.reasons),
            "metric": self.metric.name,
            "rules": asdict(self.rules),
            "run": {"key": run.key, "name": run.name, "value": result.now},
            "baseline": {"key": baseline.run_key, "name": baseline.name, "value": result.before},
            "difference": difference,
            "p": p,
            "categories": list(map(_change_json, result.categories)),
            "must_pass": list(map(asdict, result.must_pass)),
            "settings": [dict(zip(members, row, strict=True)) for row in settings],
            "lost": list(result.lost),
            "gained": list(result.gained),
            "tokens": {"baseline": baseline.tokens, "now": tokens},
            "cost_usd": {"baseline": baseline.cost_usd, "now": cost_usd},
        }
        redacted: dict[str, Any] = redacted_in(content)
        return redacted


def _gate_of(
    run: Run, baseline: Baseline, metric: str, rules: GateRules, result: GateResult
) -> Gate:
    return Gate(run, baseline, metric_named(metric), rules, result)


def headline(result: GateResult, baseline: Baseline) -> str:
    """Both figures, without statistics; empty if they can't be compared."""
    if result.change is None:
        return ""

    now, before = with_unit(result.now, POINTS.name), with_unit(result.before, POINTS.name)
    text = f"now {now}, baseline {before}"
    if result.change.count < len(baseline.values):
        text += f", on the {result.change.count:,} questions that both scored"

    return f"{text}."


def _points(change: ClusteredDifference) -> str:
    """`−4.1 [−6.0, −2.2]`."""
    return with_interval(change, POINTS.name, signed=True)


def _failed_questions(result: GateResult) -> list[str]:
    failed = [question for question in result.must_pass if not question.passes]
    return [one_line(question.question_id, 80) for question in failed]


def changed_settings(baseline: Baseline, run: Run) -> list[tuple[str, str, str]]:
    """The settings that differ from the baseline's, each with the old and the new value."""
    settings = settings_of(run)
    changed = []
    for name in sorted(baseline.settings.keys() | settings.keys()):
        before, now = baseline.settings.get(name, NONE), settings.get(name, NONE)
        if before != now:
            shown = one_line(before, LONGEST_VALUE), one_line(now, LONGEST_VALUE)
            changed.append((one_line(name, 80), *shown))

    return changed


def _remark(change: ClusteredDifference) -> str:
    remark = (
        f"Intervals and p ({probability(change.p)}) come from flipping the signs of whole "
        f"conversations ({change.groups} here). Categories are described, not tested."
    )
    return f"{remark} {NO_WIDTH}" if change.is_uniform else remark


def _row(change: CategoryDifference) -> tuple[str, ...]:
    name, points = inline(one_line(change.category)), inline(_points(change.result))
    return name, count(change.result.count), points


def _change_json(category: CategoryDifference) -> dict[str, Any]:
    change = category.result
    return {
        "name": category.category,
        "questions": change.count,
        "conversations": change.groups,
        "mean": change.mean,
        "low": change.low,
        "high": change.high,
        "se": change.se,
        "mde": change.mde,
    }
