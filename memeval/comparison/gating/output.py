"""A verdict as Markdown, as JUnit's XML and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from memeval.comparison.finding import FinishedRun
from memeval.comparison.gating.baseline import Baseline, settings_of
from memeval.comparison.gating.verdict import (
    FAILING,
    Change,
    GateResult,
    MustPass,
    Outcome,
    Rules,
    is_loss,
)
from memeval.comparison.sentences import limits, with_interval
from memeval.comparison.words import figure, probability
from memeval.metrics.formats import NONE, count, dollars
from memeval.metrics.metric import POINTS, Metric
from memeval.report.escaping import inline
from memeval.report.tables import table
from memeval.text.shown import one_line

JSON_VERSION = 1
MOST_LISTED = 20
"""Questions that Markdown lists; the JSON has all."""
LONGEST_VALUE = 60
"""Characters of a setting's value in the list of those that differ."""
SUITE = "memeval gate"
LONGEST_TEXT = 2000


def sentence(result: GateResult, metric: Metric, rules: Rules) -> str:
    """The verdict in words, which promise no more than the data show."""
    if result.outcome is Outcome.BROKEN or result.change is None:
        return f"Broken: not comparable with the baseline: {'; '.join(result.reasons)}."

    amount = f"{_points(result.change)} points of {metric.name}"
    failed = [one_line(question.question_id, 80) for question in _failed(result)]
    limit = figure(rules.non_inferior, POINTS.name)
    difference = result.change.result
    lost = is_loss(difference, metric)
    within = "the loss is within --margin" if lost else "no difference is shown"
    tested = f"{amount} (p {probability(difference.p)})"
    sentences = {
        Outcome.WORSE: f"Worse than the baseline: {tested}.",
        Outcome.MUST_PASS: f"Questions that must pass do not: {', '.join(failed)}. All: {amount}.",
        Outcome.INFERIOR: f"A loss of {limit} points can't be ruled out: {amount}.",
        Outcome.NON_INFERIOR: f"Non-inferior: a loss of {limit} points is ruled out: {amount}.",
        Outcome.UNCHANGED: f"Unchanged: no question has another {metric.name}.",
        Outcome.BETTER: f"Better than the baseline: {tested}.",
        Outcome.INCONCLUSIVE: f"Inconclusive, which does not prove equality: {within}: {amount}.",
    }
    words = sentences[result.outcome]
    # Of a loss that is shown, what the data could have shown says nothing.
    if result.outcome in (Outcome.INCONCLUSIVE, Outcome.INFERIOR) and not lost:
        ending = limits(difference, POINTS.name)
        words = f"{words} {ending[0].upper()}{ending[1:]}."

    return words


def _points(change: Change) -> str:
    """`−4.1 [−6.0, −2.2]`."""
    return with_interval(change.result, POINTS.name, signed=True)


def _failed(result: GateResult) -> list[MustPass]:
    return [question for question in result.must_pass if not question.passes]


def gate_markdown(
    result: GateResult, baseline: Baseline, run: FinishedRun, metric: Metric, rules: Rules
) -> str:
    """The verdict with its figures, for a terminal and for the summary of a step of CI."""
    get = run.summary.metrics.get
    mark = {Outcome.BROKEN: "BROKEN"}.get(result.outcome, "")
    mark = mark or ("FAIL" if result.outcome in FAILING else "PASS")
    lines = [f"## memeval gate: {mark}", "", inline(sentence(result, metric, rules)), ""]
    rows = [
        (
            inline(metric.name),
            *(figure(value, POINTS.name) for value in (result.before, result.now)),
        ),
        ("tokens", count(baseline.tokens), count(get("tokens/total"))),
        ("cost $", dollars(baseline.cost_usd), dollars(get("cost_usd_uncached/total"))),
    ]
    lines += table(("", "baseline", "now"), rows)
    if result.change is not None:
        changes = [result.change, *result.categories]
        lines += ["", *table(("", "questions", "Δ points [95 %]"), map(_row, changes))]
        lines += ["", *(f"- {inline(line)}" for line in _remarks(result))]

    for title, names in (("Worse", result.lost), ("Better", result.gained)):
        if names:
            shown = ", ".join(inline(one_line(name, 80)) for name in names[:MOST_LISTED])
            more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            lines += ["", f"{title}, by question ({len(names):,}): {shown}{more}."]

    if result.must_pass:
        passed = len(result.must_pass) - len(_failed(result))
        lines += ["", f"Must pass: {passed} of {len(result.must_pass)} do."]

    changed = changed_settings(baseline, run)
    if changed:
        rows = [(inline(name), inline(before), inline(now)) for name, before, now in changed]
        lines += ["", *table(("setting", "baseline", "now"), rows)]

    lines += ["", f"- now: {inline(one_line(run.name))} ({inline(run.key)})"]
    lines += [f"- baseline: {inline(one_line(baseline.name))} ({inline(baseline.run_key)})"]
    return "\n".join(lines) + "\n"


def changed_settings(baseline: Baseline, run: FinishedRun) -> list[tuple[str, str, str]]:
    """The settings that the baseline does not have, each with its value then and now."""
    now = settings_of(run)
    names = sorted(baseline.settings.keys() | now.keys())
    pairs = [(name, baseline.settings.get(name, NONE), now.get(name, NONE)) for name in names]

    return [
        (one_line(name, 80), one_line(before, LONGEST_VALUE), one_line(value, LONGEST_VALUE))
        for name, before, value in pairs
        if before != value
    ]


def _row(change: Change) -> tuple[str, ...]:
    return (
        inline(one_line(change.name)),
        count(change.result.count),
        inline(_points(change)),
    )


def _remarks(result: GateResult) -> Iterator[str]:
    assert result.change is not None
    change = result.change.result
    yield (
        f"Intervals and p ({probability(change.p)}) come from flipping the signs of whole "
        f"conversations ({change.groups} here). Categories are described, not tested."
    )


def gate_json(
    result: GateResult, baseline: Baseline, run: FinishedRun, metric: Metric, rules: Rules
) -> dict[str, Any]:
    """The verdict for programs. Shares are in [0, 1]."""
    get = run.summary.metrics.get
    return {
        "version": JSON_VERSION,
        "outcome": result.outcome.value,
        "status": result.status,
        "sentence": sentence(result, metric, rules),
        "reasons": list(result.reasons),
        "metric": metric.name,
        "rules": asdict(rules),
        "run": {"key": run.key, "name": run.name, "value": result.now},
        "baseline": {"key": baseline.run_key, "name": baseline.name, "value": result.before},
        "difference": None if result.change is None else _change_json(result.change),
        "p": None if result.change is None else result.change.result.p,
        "categories": list(map(_change_json, result.categories)),
        "must_pass": [
            asdict(question) | {"passes": question.passes} for question in result.must_pass
        ],
        "settings": [
            {"name": name, "baseline": before, "now": now}
            for name, before, now in changed_settings(baseline, run)
        ],
        "lost": list(result.lost),
        "gained": list(result.gained),
        "tokens": {"baseline": baseline.tokens, "now": get("tokens/total")},
        "cost_usd": {"baseline": baseline.cost_usd, "now": get("cost_usd_uncached/total")},
    }


def _change_json(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "questions": change.result.count,
        "conversations": change.result.groups,
        "mean": change.result.mean,
        "low": change.result.low,
        "high": change.result.high,
        "se": change.result.se,
        "mde": change.result.mde,
    }


def gate_junit(result: GateResult, metric: Metric, rules: Rules) -> str:
    """JUnit's XML: a case for all questions, one per category and one per question that must pass.

    A category fails only where the gate as a whole is worse and the category's interval is below 0:
    one by one they are not tested.
    """
    suite = ElementTree.Element("testsuite", name=SUITE)
    words = sentence(result, metric, rules)
    problem = None
    if result.outcome is Outcome.BROKEN:
        problem = "error"
    elif result.outcome in (Outcome.WORSE, Outcome.INFERIOR):
        problem = "failure"

    _add_case(suite, "all questions", words, problem)
    is_worse = result.outcome is Outcome.WORSE
    for change in result.categories:
        words = f"{_points(change)} points of {metric.name}, {change.result.count} questions"
        problem = "failure" if is_worse and is_loss(change.result, metric) else None
        _add_case(suite, f"category {change.name}", words, problem)

    for question in result.must_pass:
        words = f"{metric.name} {question.now}, in the baseline {question.before}"
        problem = None if question.passes else "failure"
        _add_case(suite, f"must pass {question.question_id}", words, problem)

    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for name in ("failure", "error"):
        suite.set(f"{name}s", str(sum(case.find(name) is not None for case in cases)))

    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'


def _add_case(suite: ElementTree.Element, name: str, words: str, problem: str | None) -> None:
    """Adds a case; `problem` is `failure`, `error` or None. XML can't hold control characters."""
    shown = one_line(words, LONGEST_TEXT)
    case = ElementTree.SubElement(
        suite, "testcase", classname="memeval.comparison.gating", name=one_line(name, LONGEST_TEXT)
    )
    if problem is not None:
        ElementTree.SubElement(case, problem, message=shown)

    ElementTree.SubElement(case, "system-out").text = shown
