"""A custom metric: one object that every view, comparison and gate includes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import memeval
from memeval.cli.compare import compare
from memeval.cli.gate import gate
from memeval.cli.show import show
from memeval.errors import UserError
from memeval.metrics import registry
from memeval.metrics.metric import (
    MS,
    PAGE,
    POINTS,
    REPORT,
    SHOW,
    TABLE,
    TAGS,
    TILE,
    Metric,
    Unit,
)
from memeval.metrics.registry import metric_named
from memeval.packages.levels import Checks, verify_package
from memeval.packages.write import pack
from memeval.pipeline.open.code import OtherMetrics
from memeval.pipeline.verify.sound import verify_run
from memeval.records import EvalQuestion
from memeval.report.comparison import cells, comparison_csv, comparison_markdown
from memeval.report.page.build import page_data
from memeval.report.page.runs import PageRun
from memeval.report.page.write import render
from memeval.results import Record, RunSummary
from memeval.tracking.payload import metrics as logged_metrics
from memeval.tracking.payload import rounded_figures

SMALL = ("dataset.limit_cases=2", "tracking=none", "judge=keyword")


def invents(answer: str, gold: str) -> float:
    """Share of the words of an answer that the gold answer lacks."""
    words = answer.lower().split()
    known = gold.lower().split()
    return sum(word not in known for word in words) / len(words) if words else 0.0


def letters(record: Record) -> float | None:
    return None if record.hypothesis is None else float(len(record.hypothesis))


INVENTED = Metric(
    "invented_words",
    aliases=("invented",),
    of_answer=invents,
    more_is_better=False,
    columns={TABLE: "inv", PAGE: "invented %"},
    lines={SHOW: "invented words", REPORT: "invented", TILE: "Invented", TAGS: "invented"},
    hint="words that the gold does not have",
)
LETTERS = Metric(
    "letters", Unit("letters"), of_record=letters, columns={TABLE: "abc"}, all_categories=True
)


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMEVAL_HOME", str(folder))
        patch.setenv("MEMEVAL_PLOTS", "false")
        patch.delenv("MEMEVAL_DATA_DIR", raising=False)
        patch.setattr(registry, "_ADDED", {})
        registry.add(INVENTED)
        registry.add(LETTERS)
        yield folder


@pytest.fixture(scope="module")
def runs(home: Path) -> list[memeval.Run]:
    return [memeval.run(*SMALL, system=name, progress=False) for name in ("bm25", "no_memory")]


@pytest.fixture
def summaries(runs: list[memeval.Run]) -> list[RunSummary]:
    return [RunSummary.read(run.folder) for run in runs]


def test_run_has_the_mean_overall_and_per_category(summaries: list[RunSummary]) -> None:
    for summary in summaries:
        value = summary.metrics["invented_words"]
        assert value is not None and 0 < value <= 1
        assert summary.metrics["invented_words/temporal"] is not None
        letters_of_run = summary.metrics["letters"]
        assert letters_of_run is not None and letters_of_run > 1


def test_tables_show_and_report_include_the_metric(
    runs: list[memeval.Run], summaries: list[RunSummary], capsys: pytest.CaptureFixture[str]
) -> None:
    value = summaries[0].metrics["invented_words"]
    assert value is not None
    shown = f"{100 * value:.1f}"

    _, header, rows = cells(summaries)
    assert rows[0][header.index("inv")] == shown
    assert "abc" in header
    assert "| inv |" in comparison_markdown(summaries)
    columns = comparison_csv(summaries).split("\n")[0].split(",")
    assert {"invented_words", "invented_words/temporal", "letters"} <= set(columns)

    report = (runs[0].folder / "report.md").read_text(encoding="utf-8")
    assert f"| invented | {shown} % |" in report
    assert show([runs[0].key]) == 0
    assert f"invented words:          {shown}\n" in capsys.readouterr().out


@pytest.mark.usefixtures("home")
def test_report_and_page_of_a_run_that_is_drawn_include_the_metric() -> None:
    run = memeval.run(*SMALL, "plots=true", "top_k=3", system="bm25", progress=False)
    assert "| invented | " in (run.folder / "report.md").read_text(encoding="utf-8")
    assert "<dt>Invented</dt>" in (run.folder / "report.html").read_text(encoding="utf-8")


def test_page_includes_the_metric(runs: list[memeval.Run], summaries: list[RunSummary]) -> None:
    several = render(page_data([PageRun.read(run.folder) for run in runs]))
    assert 'title="words that the gold does not have"' in several
    assert f'data-value="{summaries[0].metrics["invented_words"]}"' in several
    assert "<dt>Invented</dt>" in render(page_data([PageRun.read(runs[0].folder)]))


def test_mlflow_gets_the_metric(summaries: list[RunSummary]) -> None:
    value = summaries[0].metrics["invented_words"]
    assert logged_metrics(summaries[0].metrics)["invented_words"] == value
    assert value is not None
    assert f"{100 * value:.1f}" in rounded_figures(summaries[0]).values()


@pytest.mark.parametrize(("word", "unit"), [("invented", "points"), ("letters", "letters")])
def test_runs_are_compared_by_the_metric(
    runs: list[memeval.Run], word: str, unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare([*(run.key for run in runs), "--metric", word, "--json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert (comparison["metric"], comparison["unit"]) == (metric_named(word).name, unit)
    assert comparison["differences"][0]["result"]["mean"] != 0


def test_gate_counts_an_increase_as_a_loss_if_less_is_better(
    runs: list[memeval.Run], tmp_path: Path
) -> None:
    low, high = sorted(runs, key=lambda run: run.metrics["invented_words"] or 0.0)
    baseline, folder = tmp_path / "baseline.json", tmp_path / "gate"
    words = ["--baseline", str(baseline), "--metric", "invented"]
    assert gate([low.key, *words, "--bless"]) == 0

    gate([high.key, *words, "--out", str(folder)])
    verdict = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
    assert verdict["metric"] == "invented_words"
    assert verdict["difference"]["mean"] > 0
    assert len(verdict["lost"]) > len(verdict["gained"])


def test_finished_run_is_measured_again_for_a_new_metric(
    runs: list[memeval.Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_ADDED", {})
    registry.add(replace(INVENTED, name="fabricated", aliases=()))
    again = memeval.run(*SMALL, system="bm25", progress=False)
    assert again.key == runs[0].key
    assert again.metrics["fabricated"] == runs[0].metrics["invented_words"]
    assert "invented_words" not in again.metrics


@pytest.mark.parametrize("is_here", [True, False])
def test_run_is_sound_where_other_metrics_are_added(
    is_here: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    added = {INVENTED.name: INVENTED, LETTERS.name: LETTERS}
    monkeypatch.setattr(registry, "_ADDED", {} if is_here else added)
    run = memeval.run(*SMALL, system="bm25", progress=False)
    package = pack([run], tmp_path / "own.memeval").path

    monkeypatch.setattr(registry, "_ADDED", added if is_here else {})
    verified = verify_run(run.folder)
    assert verified.problems == []
    lacking = "added metrics (invented_words, letters): they are not installed here"
    assert (lacking in verified.unchecked) is not is_here
    assert not any(level.problems for level in verify_package(package, Checks(data=True)))


def test_run_cannot_hide_a_figure_as_that_of_an_added_metric() -> None:
    others = OtherMetrics.of("0123abcd accuracy=my_metrics:right@45 letters=my_metrics:letters@45")
    assert not others.include("accuracy/temporal", {"accuracy/temporal"})
    assert others.include("letters/temporal", {"accuracy/temporal"})


def test_failing_metric_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def divide(answer: str, gold: str) -> float:
        return len(answer) / 0

    monkeypatch.setattr(registry, "_ADDED", {})
    registry.add(Metric("broken", of_answer=divide))
    where = rf"{Path(__file__).name}:\d+"
    with pytest.raises(UserError, match=rf"'broken' failed: {where}: ZeroDivisionError: div"):
        memeval.run(*SMALL, system="bm25", progress=False)


@pytest.mark.parametrize(
    ("value", "unit", "error"),
    [
        (math.nan, MS, "ValueError: its value must be a finite number, but is nan"),
        (42.0, POINTS, r"ValueError: its value must be in \[0, 1\], but is 42"),
    ],
)
def test_metric_with_a_value_that_no_mean_can_have_is_refused(
    value: float, unit: Unit, error: str
) -> None:
    odd = Metric("odd", unit, of_answer=lambda *_: value, of_record=lambda _: value)
    with pytest.raises(UserError, match=f"metric 'odd' failed: {error}"):
        odd.compare("an answer", "a gold")
    with pytest.raises(UserError, match=f"metric 'odd' failed: {error}"):
        odd.of_question(Record("q"))


def test_best_gold_gives_the_lowest_value_if_less_is_better() -> None:
    from memeval.metrics.answer import answer_metrics

    question = EvalQuestion("q", "c", "Which?", ("red", "a red car"), 1, "one")
    assert answer_metrics("a red car", question)["invented_words"] == 0.0


def test_duplicate_name_or_heading_is_refused() -> None:
    with pytest.raises(UserError, match="metric 'token_f1' is defined twice"):
        registry.add(Metric("token_f1"))
    with pytest.raises(UserError, match="'f1' and 'token_f1' have the same heading at 'table': F1"):
        registry.add(Metric("f1", columns={TABLE: "F1"}))


def test_without_a_gold_only_metrics_that_need_none_are_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from memeval.metrics.answer import answer_metrics

    monkeypatch.setattr(registry, "_ADDED", {})
    registry.add(Metric("words", of_answer=lambda answer, _: float(len(answer.split()))))
    registry.add(Metric("free", of_answer=lambda answer, gold: 1.0 + len(gold), needs_gold=False))
    question = EvalQuestion("q", "c", "Who?", (), 1, "one", answerable=False)
    measured = answer_metrics("two words", question)
    assert (measured["words"], measured["free"], measured["token_f1"]) == (None, 1.0, None)
