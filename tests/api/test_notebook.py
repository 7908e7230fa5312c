"""Results in a notebook: short tables and plots, safe against hostile names."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import memeval
from memeval.api.comparing import Comparisons
from memeval.api.notebook import Table
from memeval.comparison.paper.records import PaperTable
from memeval.comparison.records import Comparison
from memeval.errors import UserError
from memeval.runs.forecast.forecast import Forecast
from memeval.runs.forecast.totals import Estimate

SMALL = ("dataset.limit_questions=3", "tracking=none")
HOSTILE = "<script>alert(1)</script><img src=x onerror=y>\x1b[31m"
SHORT, SMALL_PAGE = 600, 20_000


class Elements(HTMLParser):
    """Names of the elements of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)


@pytest.fixture(scope="module")
def swept(home: object) -> memeval.Sweep:
    return memeval.sweep(*SMALL, system="bm25,rag,no_memory", progress=False)


@pytest.fixture(scope="module")
def hostile(swept: memeval.Sweep) -> memeval.Sweep:
    """A sweep of 60 runs in which every name is a script."""
    runs = []
    for number in range(60):
        summary = swept.runs[number % 3].summary
        changed = replace(
            summary,
            name=HOSTILE * 20,
            dataset=HOSTILE * 20,
            params={**summary.params, "system": f"{number} {HOSTILE * 20}"},
            tags={**summary.tags, "system_flags": HOSTILE * 20},
        )
        runs.append(memeval.FinishedRun(swept.folder, changed))

    compared = swept.comparisons[0]
    named = [replace(run, label=HOSTILE * 20) for run in compared.runs]
    many = replace(compared, runs=tuple(named), differences=compared.differences * 50)
    return replace(swept, runs=runs, comparisons=Comparisons([many]))


def test_repr_of_one_run_or_row_uses_the_singular() -> None:
    assert repr(Forecast(1, 0, {}, Estimate((), ()), ())) == (
        "<Forecast of 1 run, 0 finished: 0 calls, 0 tokens>"
    )
    table = Table(PaperTable(("run",), (("bm25",),), (), ((),), ()))
    assert repr(table) == "<Table of 1 row, 0 columns>"


@pytest.mark.slow
def test_repr_is_short(swept: memeval.Sweep, tmp_path: Path) -> None:
    run = swept.runs[0]
    assert repr(run).startswith(f"<Run {run.key}: bm25 ")
    assert "accuracy [95%]" in repr(run)
    assert repr(swept).startswith("<Sweep of 3 runs: ")
    plan = memeval.plan(*SMALL, system="bm25,oracle")
    assert repr(plan) == "<Forecast of 2 runs, 1 finished: 0 calls, 0 tokens>"
    baseline = memeval.bless(run, tmp_path / "baseline.json")
    probed = memeval.judge_probe(judge="keyword", progress=False)
    for shown in (run, swept, swept.comparisons, swept.comparisons[0], plan, baseline, probed):
        assert len(repr(shown)) <= SHORT


def test_a_page_of_hostile_names_is_short_and_plain(hostile: memeval.Sweep) -> None:
    for shown in (hostile, hostile.runs[0], hostile.comparisons):
        page = shown._repr_html_()
        assert len(page.encode()) <= SMALL_PAGE
        assert Elements(page).names <= {"table", "caption", "tr", "th", "td", "ul", "li"}
        assert "\x1b" not in page + repr(shown)
        assert len(repr(shown)) <= SHORT

    assert "more rows: to_pandas()" in hostile._repr_html_()


def test_a_page_has_the_figures_and_the_sentences(swept: memeval.Sweep) -> None:
    page = swept._repr_html_()
    assert "<td>no_memory</td>" in page
    assert "<li>no_memory is lower than bm25 by " in page
    assert "accuracy [95%]" in swept.runs[0]._repr_html_()


def test_results_can_be_rendered_as_paper_tables(swept: memeval.Sweep) -> None:
    whole = swept.table()
    assert isinstance(whole, Table)
    assert whole.content.names == (("bm25",), ("rag",), ("no_memory",))
    assert swept.runs[0].table(["accuracy"]).content.columns[0].name == "accuracy"
    differences = swept.comparisons.table()
    found = swept.comparisons[0].differences
    assert [cell.value for cell in differences.content.columns[1].cells] == [
        difference.result.mean for difference in found
    ]
    assert r"\toprule" in differences.text("latex")


def test_results_can_be_converted_to_data_frames(swept: memeval.Sweep) -> None:
    frame = swept.to_pandas()
    assert list(frame["system"]) == ["bm25", "rag", "no_memory"]
    assert list(frame["accuracy"]) == [run.metrics["accuracy"] for run in swept.runs]
    assert frame["accuracy_std"].isna().all(), "there is one repeat"
    assert frame["accuracy_std"].dtype == frame["accuracy"].dtype == float
    run = swept.runs[0]
    assert run.to_pandas().equals(run.records())


def test_plots_are_figures_that_write_no_file(swept: memeval.Sweep) -> None:
    before = sorted(swept.folder.rglob("*"))
    for shown in (swept, swept.runs[0], swept.comparisons):
        figure = shown.plot()
        assert figure.axes
        assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]

    assert sorted(swept.folder.rglob("*")) == before


def test_impossible_plots_and_tables_are_refused(swept: memeval.Sweep, home: object) -> None:
    with pytest.raises(UserError, match="no differences to plot"):
        Comparisons([]).plot()
    with pytest.raises(UserError, match="unknown dataset 'locomo'"):
        swept.plot("locomo")

    other = replace(swept.runs[0].summary, dataset="other")
    both = replace(swept, runs=[*swept.runs, memeval.FinishedRun(swept.folder, other)])
    with pytest.raises(UserError, match="the sweep has 2 data sets"):
        both.table()

    retrieved = memeval.run(*SMALL, "stages=retrieve", system="bm25", progress=False)
    with pytest.raises(UserError, match="nothing was judged"):
        retrieved.plot()
    with pytest.raises(UserError, match="nothing was judged"):
        replace(swept, runs=[retrieved]).plot()
    with pytest.raises(UserError, match="no finished run"):
        replace(swept, runs=[]).table()


def test_each_of_several_comparisons_can_be_plotted(swept: memeval.Sweep) -> None:
    compared = memeval.compare(*swept.runs, metric=["accuracy", "f1"])
    assert [type(comparison) for comparison in compared] == [Comparison] * 2
    titles = [compared.plot(number).get_suptitle() for number in (0, 1)]
    assert [title.split(" ")[0] for title in titles] == ["accuracy", "token_f1"]


@pytest.mark.parametrize("word", ["-m", "--multirun"])
def test_run_refuses_several_runs_and_suggests_sweep(home: object, word: str) -> None:
    with pytest.raises(UserError, match="run makes one run") as caught:
        memeval.run(word, system="bm25,rag", progress=False)
    assert caught.value.hints == ('use:  memeval.sweep(system="bm25,rag")',)

    for settings in ({"system": "bm25,rag"}, {"top_k": "5,10"}):
        with pytest.raises(UserError, match=r"run makes one run, but .* makes several"):
            memeval.run(progress=False, **settings)

    async def awaited() -> memeval.Run:
        return await memeval.arun(word, system="bm25", progress=False)

    with pytest.raises(UserError, match="run makes one run"):
        asyncio.run(awaited())
    with pytest.raises(UserError, match="hydra/launcher=ray is for sweeps"):
        memeval.run("hydra/launcher=ray", progress=False)
