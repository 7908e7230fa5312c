"""A verdict as Markdown, as JUnit's XML and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from xml.etree import ElementTree

from memeval.compare.finding import FinishedRun
from memeval.compare.metric import POINTS, Metric
from memeval.compare.records import SIGNIFICANT
from memeval.compare.words import could_show, figure, probability
from memeval.gate.baseline import Baseline
from memeval.gate.verdict import FAILING, Change, GateResult, MustPass, Outcome, Rules
from memeval.report.escaping import inline
from memeval.report.figures import count, dollars
from memeval.report.tables import table
from memeval.shown import one_line
from memeval.statistics.flips import EXACT_CLUSTERS

JSON_VERSION = 1
MOST_LISTED = 20
"""Questions that Markdown lists; the JSON has all."""
SUITE = "memeval gate"
LONGEST_TEXT = 2000


def sentence(result: GateResult, metric: Metric, rules: Rules) -> str:
    """The verdict in words, which promise no more than the data show."""
    if result.outcome is Outcome.BROKEN or result.change is None:
        return f"Broken: not comparable with the baseline: {'; '.join(result.reasons)}."

    amount = f"{_points(result.change)} points of {metric.name}"
    failed = [one_line(question.question_id, 80) for question in _failed(result)]
    limit = figure(rules.non_inferior, POINTS)
    within = "the loss is within --margin" if result.change.high < 0 else "no difference is shown"
    tested = f"{amount} (p {probability(result.p)})"
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
    if result.outcome in (Outcome.INCONCLUSIVE, Outcome.INFERIOR):
        words += _mde(result.change)

    return words


def _mde(change: Change) -> str:
    """What the data could have shown."""
    mde = change.result.mde
    if mde is None:
        return " One conversation: what the data could have shown is not known."

    points = " points" if mde < 1 else ""
    return f" This data {could_show(mde, POINTS)}{points}."


def _points(change: Change) -> str:
    """`−4.1 (−6.0 to −2.2)`."""
    ends = " to ".join(figure(end, POINTS, signed=True) for end in (change.low, change.high))
    return f"{figure(change.result.mean, POINTS, signed=True)} ({ends})"


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
        (inline(metric.name), figure(result.before, POINTS), figure(result.now, POINTS)),
        ("tokens", count(baseline.tokens), count(get("tokens/total"))),
        ("cost $", dollars(baseline.cost_usd), dollars(get("cost_usd_uncached/total"))),
    ]
    lines += table(("", "baseline", "now"), rows)
    if result.change is not None:
        changes = [result.change, *result.categories]
        lines += ["", *table(("", "questions", "Δ points", "95 % interval"), map(_row, changes))]
        lines += ["", *(f"- {inline(line)}" for line in _remarks(result))]

    for title, names in (("Worse", result.lost), ("Better", result.gained)):
        if names:
            shown = ", ".join(inline(one_line(name, 80)) for name in names[:MOST_LISTED])
            more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            lines += ["", f"{title}, by question ({len(names):,}): {shown}{more}."]

    if result.must_pass:
        passed = len(result.must_pass) - len(_failed(result))
        lines += ["", f"Must pass: {passed} of {len(result.must_pass)} do."]

    lines += ["", f"- now: {inline(one_line(run.name))} ({inline(run.key)})"]
    lines += [f"- baseline: {inline(one_line(baseline.name))} ({inline(baseline.run_key)})"]
    return "\n".join(lines) + "\n"


def _row(change: Change) -> tuple[str, ...]:
    ends = [figure(end, POINTS, signed=True) for end in (change.low, change.high)]
    star = "\\*" if change.from_questions else ""
    delta = figure(change.result.mean, POINTS, signed=True)
    return (
        inline(one_line(change.name)),
        count(change.result.count),
        delta,
        " to ".join(ends) + star,
    )


def _remarks(result: GateResult) -> Iterator[str]:
    assert result.change is not None
    change = result.change
    yield (
        f"Intervals are clustered by conversation ({change.result.groups} here); p "
        f"{probability(result.p)} by flipping conversations. Categories are described, not tested."
    )
    smallest = 2 / 2**change.result.groups
    if 1 < change.result.groups <= EXACT_CLUSTERS and smallest > SIGNIFICANT:
        yield (
            f"With {change.result.groups} conversations no p is below {probability(smallest)}: the "
            "verdict goes by the interval."
        )
    if any(row.from_questions for row in (change, *result.categories)):
        yield (
            "*: takes the questions as independent, since the conversations give no interval: "
            "there is only one, or all show the same difference."
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
        "p": result.p,
        "categories": list(map(_change_json, result.categories)),
        "must_pass": [
            asdict(question) | {"passes": question.passes} for question in result.must_pass
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
        "low": change.low,
        "high": change.high,
        "se": change.result.se,
        "mde": change.result.mde,
        "from_questions": change.from_questions,
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
        problem = "failure" if is_worse and change.high < 0 else None
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
        suite, "testcase", classname="memeval.gate", name=one_line(name, LONGEST_TEXT)
    )
    if problem is not None:
        ElementTree.SubElement(case, problem, message=shown)

    ElementTree.SubElement(case, "system-out").text = shown
