"""One figure from end to end: it is the same wherever it is shown, and nothing contradicts it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from made_runs import Scores, in_conversations, made_run
from msgspec.structs import replace as replace_member

from memeval import api
from memeval.cli.show import run_lines
from memeval.comparison.build import compare_runs
from memeval.comparison.files import comparison_markdown as differences_markdown
from memeval.comparison.files import comparison_tex, differences_csv
from memeval.comparison.gating.baseline import baseline_of
from memeval.comparison.gating.output import Gate
from memeval.comparison.gating.verdict import GateOutcome, GateResult, GateRules, judge_run
from memeval.comparison.page import difference_row, write_page_of
from memeval.comparison.records import Comparison, Difference
from memeval.comparison.scores import read_scores
from memeval.comparison.sentences import sentence
from memeval.comparison.tables import comparison_text
from memeval.metrics.registry import metric_named
from memeval.pipeline.measure.figures import measure_categories, measure_cell, measure_repeat
from memeval.report.comparison import comparison_csv, comparison_markdown
from memeval.report.markdown import report
from memeval.report.page import write_page
from memeval.results import RECORDS_FILE, Record, read_records
from memeval.results.run import Run
from memeval.results.steps import AgentStep, StepCall
from memeval.runs.forecast.outlook import outlook_for
from memeval.statistics.differences import ClusteredDifference
from memeval.tracking import payload

ACCURACY = metric_named("accuracy")
CALL = StepCall(name="search", arguments="a", result="r", tokens=1)


def measured_run(runs: Path, name: str, scores: Scores) -> Run:
    """A run with the metrics that the pipeline computes from its records."""
    run = made_run(runs, name, scores)
    records = list(read_records(run.folder / RECORDS_FILE))
    repeats = []
    for number in sorted({record.repeat for record in records}):
        own = [record for record in records if record.repeat == number]
        repeats.append(measure_repeat(own, [], None))

    metrics = {**measure_cell(repeats, records), "coverage": 1.0}
    summary = replace(run.summary, metrics=metrics, categories=measure_categories(records, repeats))
    summary.write(run.folder)
    return Run(run.folder, summary)


def write_rows(run: Run, rows: Iterable[Record]) -> None:
    lines = [json.dumps(row.to_json()) + "\n" for row in rows]
    (run.folder / RECORDS_FILE).write_text("".join(lines), encoding="utf-8")


def two_repeats(draw: Random, share: float) -> dict[str, list[float | None]]:
    """Eight conversations of unequal sizes, asked twice. Some verdicts can't be read."""
    scores: dict[str, list[float | None]] = {}
    for case, size in enumerate((6, 9, 4, 12, 7, 5, 8, 10)):
        for question in range(size):
            pair: list[float | None] = [float(draw.random() < share) for _ in range(2)]
            if draw.random() < 0.1:
                pair[draw.randint(0, 1)] = None

            scores[f"conv-{case}/q{question}"] = pair

    return scores


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """A weak run, and a better one."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    draw = Random(8)
    runs = tmp_path / "outputs" / "runs"
    return [
        measured_run(runs, "weak", two_repeats(draw, 0.25)),
        measured_run(runs, "good", two_repeats(draw, 0.75)),
    ]


def judged(runs: list[Run]) -> GateResult:
    """The gate's verdict on the second run against the first."""
    before, now = (read_scores(run, ACCURACY) for run in runs)
    baseline = baseline_of(runs[0], ACCURACY, before, ())
    return judge_run(baseline, runs[1], now, ACCURACY, rules=GateRules())


def test_run_with_unreadable_verdicts_has_one_accuracy(pair: list[Run]) -> None:
    comparison = compare_runs(pair, ACCURACY)
    for run in pair:
        result, metrics = comparison.run(run.key).result, run.summary.metrics
        assert result is not None and result.mean == pytest.approx(metrics["accuracy"], abs=1e-15)
        assert (result.low, result.high) == pytest.approx(
            (metrics["accuracy_ci95_low"], metrics["accuracy_ci95_high"])
        )
        assert comparison.run(run.key).rerun_std == pytest.approx(metrics["accuracy_std"])
        # Averaging over all scored repeats would give another figure, because some verdicts can't
        # be read.
        repeats = [record.score for record in read_records(run.folder / RECORDS_FILE)]
        scored = [score for score in repeats if score is not None]
        assert sum(scored) / len(scored) != pytest.approx(metrics["accuracy"], abs=1e-6)
        f1 = compare_runs(pair, metric_named("f1")).run(run.key).result
        assert f1 is not None and f1.mean == pytest.approx(metrics["token_f1"])


@pytest.mark.parametrize("name", ["breach_rate", "tool_calls"])
def test_metric_of_all_categories_has_one_figure(name: str, tmp_path: Path) -> None:
    draw, runs, headline = Random(3), tmp_path / "runs", frozenset({1})
    run = measured_run(runs, "weak", two_repeats(draw, 0.25))
    rows = []
    for record in read_records(run.folder / RECORDS_FILE):
        # In one of two repeats only, so that the interval depends on how these are averaged.
        rate, steps = float(draw.random() < 0.3), (AgentStep(calls=(CALL,) * draw.randint(0, 3)),)
        rows.append(replace_member(record, metrics={"breach_rate": rate}, steps=steps))

    write_rows(run, rows)
    own = [[row for row in rows if row.repeat == number] for number in range(2)]
    repeats = [measure_repeat(rows_of_repeat, [], headline) for rows_of_repeat in own]
    metrics = measure_cell(repeats, rows, headline)
    categories = measure_categories(rows, repeats, headline)
    summary = replace(run.summary, metrics=metrics, categories=categories)

    result = compare_runs([Run(run.folder, summary)], metric_named(name)).runs[0].result
    assert result is not None and result.count == len(own[0])
    assert result.mean == pytest.approx(metrics[name])
    if name == "breach_rate":
        ends = metrics[f"{name}_ci95_low"], metrics[f"{name}_ci95_high"]
        assert (result.low, result.high) == pytest.approx(ends)


def test_the_figure_of_a_run_is_the_same_everywhere(pair: list[Run], tmp_path: Path) -> None:
    run = pair[1]
    metrics = run.summary.metrics
    value, low, high = (
        metrics[name] for name in ("accuracy", "accuracy_ci95_low", "accuracy_ci95_high")
    )
    assert value is not None and low is not None and high is not None
    ends = f"[{100 * low:.1f}, {100 * high:.1f}]"
    shown = f"{100 * value:.1f} {ends}"

    comparison = compare_runs(pair, ACCURACY)
    write_page([run.folder], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"{100 * value:.1f} % of " in page, "the sentence of the page"
    assert f'{100 * value:.1f} <span class="ends">{ends}</span>' in page
    assert shown in comparison_markdown([pair[0].summary, run.summary])
    assert shown in "\n".join(run_lines(run))
    assert ends in report(run.summary) and f"{100 * value:.1f} %" in report(run.summary)
    assert shown in differences_markdown(comparison) and shown in comparison_tex(comparison)
    text = comparison_text(comparison)
    assert ends in text and f"{100 * value:.1f}" in text

    # Unrounded in formats that programs read.
    logged = payload.metrics(run.summary.metrics)
    assert (logged["accuracy_ci95_low"], logged["accuracy_ci95_high"]) == (low, high)
    assert payload.rounded_figures(run.summary)["rounded.accuracy"] == shown
    (row,) = csv.DictReader(io.StringIO(comparison_csv([run.summary])))
    assert (float(row["accuracy"]), float(row["accuracy_ci95_low"])) == (value, low)
    assert api.load_run(run.key).metrics["accuracy_ci95_high"] == high
    member = comparison.to_json()["runs"][1]["result"]
    assert (member["mean"], member["low"], member["high"]) == pytest.approx((value, low, high))
    gate = judged(pair)
    assert gate.now == pytest.approx(value)


def test_a_difference_is_the_same_everywhere(pair: list[Run], tmp_path: Path) -> None:
    comparison = compare_runs(pair, ACCURACY)
    (difference,) = comparison.differences
    result = difference.result
    assert result.low is not None and result.high is not None and difference.is_shown
    low, high = 100 * result.low, 100 * result.high
    ends = f"[{low:.1f}, {high:.1f}]"
    shown = f"+{100 * result.mean:.1f} {ends}"

    assert f"by {100 * result.mean:.1f} points {ends}" in sentence(comparison, difference)
    for text in (differences_markdown(comparison), comparison_tex(comparison).replace("$", "")):
        assert shown in text
    assert ends in comparison_text(comparison)
    target = tmp_path / "comparison.html"
    write_page_of(comparison, [run.folder for run in pair], target)
    page = target.read_text(encoding="utf-8")
    assert f'+{100 * result.mean:.1f} <span class="ends">{ends}</span>' in page

    drawn = difference_row(comparison, difference)
    assert (drawn.delta, drawn.low, drawn.high) == pytest.approx((100 * result.mean, low, high))
    assert drawn.text == shown
    cents = replace_member(result, mean=-0.0000937, low=-0.000101, high=-0.0000861)
    of_cents = replace(difference, result=cents)
    drawn = difference_row(replace(comparison, unit="$", scale=1.0), of_cents)
    assert drawn.text == "−0.0000937 [−0.000101, −0.0000861]"
    row = next(csv.DictReader(io.StringIO(differences_csv([comparison]))))
    exact = [float(row[name]) for name in ("delta", "low", "high", "mde", "p")]
    assert exact == [result.mean, result.low, result.high, result.mde, result.p]

    gate = judged(pair)
    assert gate.change is not None and gate.change == result
    assert gate.outcome is GateOutcome.BETTER
    before = baseline_of(pair[0], ACCURACY, read_scores(pair[0], ACCURACY), ())
    verdict = Gate(pair[1], before, ACCURACY, GateRules(), gate)
    assert shown in verdict.markdown
    content = verdict.to_json()
    assert (content["difference"]["low"], content["p"]) == (result.low, result.p)


@pytest.mark.parametrize("is_even", [False, True], ids=["sample", "one in each conversation"])
def test_a_plan_expects_the_smallest_difference_of_a_comparison(
    is_even: bool, tmp_path: Path
) -> None:
    draw, made = Random(4), []
    for name, share in (("weak", 0.3), ("good", 0.5)):
        scores: Scores = {asked: pair[:1] for asked, pair in two_repeats(draw, share).items()}
        if is_even:
            scores = in_conversations([2 + (name == "good")] * 8)

        run = made_run(tmp_path, name, scores)
        rows = []
        for record in read_records(run.folder / RECORDS_FILE):
            weight = 1.0 if is_even else 9.0 * int(record.category)
            rows.append(replace_member(record, weight=weight))

        write_rows(run, rows)
        made.append(run)

    # A run that lost nearly all of its answers says nothing about the spread.
    few = {asked: [float(at % 2)] for at, asked in enumerate(list(scores)[3::4])}
    made_run(tmp_path, "invalid", few, valid=False)
    # Nor do runs that only retrieved.
    for name in ("first", "second", "third", "fourth"):
        made_run(tmp_path, name, few, metrics={"accuracy": None}, finished_at="2031-01-01T00:00:00")

    result = compare_runs(made, ACCURACY).differences[0].result
    outlook = outlook_for("locomo", questions=result.count, cases=result.groups, runs=tmp_path)
    assert outlook.difference == pytest.approx(result.mde)
    assert result.mde is not None and result.mde < 1


def small_data(draw: Random, folder: Path) -> list[Run]:
    """Two to four runs over one to nine conversations of unequal sizes."""
    sizes = [draw.choice((1, 2, 4, 9, 20)) for _ in range(draw.randint(1, 9))]
    sizes[0] += sum(sizes) < 2
    hardness = [draw.random() for _ in range(sum(sizes))]
    runs = []
    for name in "ABCD"[: draw.randint(2, 4)]:
        skill = draw.choice((0.2, 0.4, 0.4, 0.9))
        marks = [float(draw.random() < skill * (0.5 + hard)) for hard in hardness]
        scores, asked = {}, iter(marks)
        for case, size in enumerate(sizes):
            for question in range(size):
                scores[f"conv-{case}/q{question}"] = [next(asked)]

        runs.append(made_run(folder, name, scores))

    return runs


def test_statements_about_small_data_are_consistent(tmp_path: Path) -> None:
    draw, said = Random(18), set()
    for number in range(80):
        runs = small_data(draw, tmp_path / str(number))
        for comparison in (
            compare_runs(runs, ACCURACY),
            compare_runs(runs, ACCURACY, all_pairs=True),
        ):
            for pair in comparison.differences:
                check_difference(comparison, pair)
                said.add(kind_of(sentence(comparison, pair)))

        gate, (alone,) = judged(runs[:2]), compare_runs(runs[:2], ACCURACY).differences
        assert (gate.outcome is GateOutcome.WORSE) is (alone.is_shown and alone.result.mean < 0)
        assert (gate.outcome is GateOutcome.BETTER) is (alone.is_shown and alone.result.mean > 0)

    assert said == {"higher", "lower", "alone", "not shown", "too few", "same"}


def check_difference(comparison: Comparison, pair: Difference) -> None:
    """Asserts that interval, p, sentence, letters and MDE agree."""
    result, words = pair.result, sentence(comparison, pair)
    assert (result.mde is None) is (result.has_too_few_clusters or is_same(result))
    if result.low is not None and result.high is not None:
        assert result.p is not None
        assert (result.low <= 0 <= result.high) is (result.p > 0.05)
        assert result.low <= result.mean + 1e-12 and result.mean <= result.high + 1e-12
    else:
        assert result.groups < 6 and (result.p is None or result.p > 0.05)
        assert kind_of(words) in ("too few", "same")

    if pair.is_shown:
        assert pair.p is not None and pair.p <= 0.05
        assert kind_of(words) == ("higher" if result.mean > 0 else "lower")
    if kind_of(words) == "not shown":
        assert pair.p is not None and pair.p > 0.05
        if "reliably" in words and result.mde is not None and result.mde < 1:
            assert abs(result.mean) < result.mde
    if kind_of(words) == "alone":
        assert pair.p is not None and pair.adjusted_p is not None
        assert pair.p <= 0.05 < pair.adjusted_p

    assert result.mde is None or 0 < result.mde <= 1
    letters = [set(comparison.run(key).letters) for key in (pair.first, pair.second)]
    if letters[0] and letters[1]:
        assert letters[0].isdisjoint(letters[1]) is pair.is_shown
    else:
        assert result.has_too_few_clusters and not (letters[0] or letters[1])


def is_same(result: ClusteredDifference) -> bool:
    """Whether all questions have the same value in both runs."""
    return result.largest_error is None and result.mean == 0


def kind_of(words: str) -> str:
    """The kind of statement that a sentence makes."""
    kinds = {
        "same value": "same",
        "too few": "too few",
        "No difference shown": "not shown",
        "on its own (p": "alone",
        "is higher": "higher",
        "is lower": "lower",
    }
    return next(kind for part, kind in kinds.items() if part in words)
