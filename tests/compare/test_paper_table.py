"""The table for a paper: letters and bold figures follow the same rule, and text stays text."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from made_runs import example, in_conversations, made_run

from memeval.comparison import build, pairs
from memeval.comparison.build import compare_runs
from memeval.comparison.paper.build import paper_table
from memeval.comparison.paper.differences import difference_table
from memeval.comparison.paper.formats import FORMATS
from memeval.comparison.paper.records import PaperTable
from memeval.errors import UserError
from memeval.metrics import registry
from memeval.metrics.metric import MS, Metric, Unit
from memeval.metrics.registry import metric_named
from memeval.results import FEWEST_SESSIONS, RECORDS_FILE
from memeval.results.judge import JudgeIdentity
from memeval.results.run import Run
from memeval.results.summary import RepeatResult

HIGH, MIDDLE, LOW = [4] * 8, [3, 2, 3, 2, 3, 2, 3, 2], [1, 0, 1, 0, 1, 0, 1, 0]
HOSTILE = r"=cmd|' /C' \input{x} ${a}_b^~# 5% <script>x</script> [1](http://x.y) *b* é Ł 中 -- `x`"
PDFLATEX = shutil.which("pdflatex")


def cells(folder: Path, **scores: Any) -> list[Run]:
    return [made_run(folder, name, in_conversations(own)) for name, own in scores.items()]


def column(table: PaperTable, name: str) -> list[tuple[str, str, bool]]:
    """Text, letters and boldness of each row."""
    (found,) = [one for one in table.columns if one.name == name]
    return [(cell.text, cell.letters, cell.is_best) for cell in found.cells]


def test_differences_mark_what_their_note_explains(tmp_path: Path) -> None:
    """All conversations differ by one question: the clustered error is 0."""
    runs = cells(tmp_path, low=[2] * 8, high=[3] * 8)
    table = difference_table([compare_runs(runs, metric_named("accuracy"))])
    (mde,) = (column.cells[0].text for column in table.columns if column.name == "MDE")
    assert mde.endswith("*")
    assert any(note.startswith("*: the MDE") for note in table.notes)


def test_a_table_tests_each_pair_once_and_no_category(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Categories take most of the time of a comparison, and the table describes them."""
    runs = cells(tmp_path, high=HIGH, middle=MIDDLE, low=LOW)
    assert all(pair.categories for pair in compare_runs(runs, metric_named("accuracy")).differences)

    test, check = Mock(wraps=pairs.difference_on), Mock(wraps=build.reasons_against)
    monkeypatch.setattr(pairs, "difference_on", test)
    monkeypatch.setattr(build, "reasons_against", check)
    paper_table(runs, ["accuracy"])
    assert test.call_count == check.call_count == 3


def test_the_best_is_bold_only_if_each_difference_is_shown(tmp_path: Path) -> None:
    runs = cells(tmp_path, high=HIGH, middle=MIDDLE, low=LOW)
    table = paper_table(runs, ["accuracy"], rows=["system"])
    assert table.names == (("high",), ("middle",), ("low",))
    assert column(table, "accuracy") == [
        ("100.0", "a", True),
        ("62.5", "b", False),
        ("12.5", "c", False),
    ]
    assert "Bold" in " ".join(table.notes)

    alike = cells(tmp_path / "alike", high=[4] * 8, near=[4] * 7 + [3], low=LOW)
    table = paper_table(alike, ["accuracy"])
    assert [(letters, bold) for _, letters, bold in column(table, "accuracy")] == [
        ("a", False),
        ("a", False),
        ("b", False),
    ]
    assert "Bold" not in " ".join(table.notes)


@pytest.mark.parametrize(("unit", "best"), [(Unit("facts"), [True, False]), (MS, [False, True])])
def test_the_most_is_bold_in_a_unit_of_ones_own_and_the_least_in_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: Unit, best: list[bool]
) -> None:
    monkeypatch.setattr(registry, "_ADDED", {})
    registry.add(Metric("found", unit, of_record=lambda record: record.score))
    table = paper_table(cells(tmp_path, high=HIGH, low=LOW), ["found"], rows=["system"])
    assert [is_best for _, _, is_best in column(table, "found")] == best


@pytest.mark.parametrize("name", ("invented", "official/evidence_recall"))
def test_of_unknown_metrics_only_official_ones_are_bold(tmp_path: Path, name: str) -> None:
    runs = cells(tmp_path, high=HIGH, low=LOW)
    for run in runs:
        path = run.folder / RECORDS_FILE
        path.write_text(path.read_text().replace('"token_f1"', f'"{name}"'))

    table = paper_table(runs, [name], rows=["system"])
    assert [is_best for _, _, is_best in column(table, name)] == [name != "invented", False]


def test_five_conversations_give_no_letters_and_no_bold(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, name, example(name)) for name in "ABC"]
    table = paper_table(runs, ["accuracy"])
    assert {(letters, bold) for _, letters, bold in column(table, "accuracy")} == {("", False)}
    assert "5 conversations are too few" in " ".join(table.notes)


def test_smaller_value_is_best_for_context_tokens(tmp_path: Path) -> None:
    dear = made_run(tmp_path, "dear", in_conversations(HIGH), of_records={"context_tokens": 900})
    cheap = made_run(tmp_path, "cheap", in_conversations(HIGH), of_records={"context_tokens": 90})
    table = paper_table([dear, cheap], ["context"])
    assert [bold for _, _, bold in column(table, "context_tokens")] == [False, True]


def test_missing_figure_is_a_dash(tmp_path: Path) -> None:
    runs = cells(tmp_path, one=HIGH, two=LOW)
    runs.append(made_run(tmp_path, "none", {"conv-0/q0": [None]}, metrics={"coverage": 1.0}))
    table = paper_table(runs, ["accuracy"])
    assert [text for text, _, _ in column(table, "accuracy")] == ["100.0", "12.5", "–"]
    with pytest.raises(UserError, match="none of these runs has cost_usd"):
        paper_table(runs, ["cost"])
    with pytest.raises(UserError, match="no question of these runs has a value for recall_at_10"):
        paper_table(runs, ["recall@10"])


def test_different_judges_share_a_column_only_if_forced(tmp_path: Path) -> None:
    first, second = cells(tmp_path, one=HIGH, two=LOW)
    other = made_run(tmp_path, "other", in_conversations(HIGH), judge=JudgeIdentity("contains"))
    with pytest.raises(UserError, match=r"accuracy: not compared: .* different judges"):
        paper_table([first, second, other], ["accuracy"])

    assert paper_table([first, second, other], ["f1"]).columns
    table = paper_table([second, other], ["accuracy"], force=True)
    assert table.notes[0].startswith("FORCED, not comparable: different judges")
    assert not any(bold for _, _, bold in column(table, "accuracy"))

    elsewhere = made_run(tmp_path, "elsewhere", in_conversations(HIGH), dataset="demo")
    with pytest.raises(UserError, match="one data set, but the runs have 2"):
        paper_table([first, elsewhere])


def test_many_pairs_that_are_not_compared_are_counted(tmp_path: Path) -> None:
    keywords = cells(tmp_path, a=HIGH, b=LOW, c=LOW)
    judge = JudgeIdentity("contains")
    others = [made_run(tmp_path, name, in_conversations(LOW), judge=judge) for name in "def"]
    with pytest.raises(UserError, match=r"a with d, .*b with e, .* and 1 more: different judges"):
        paper_table([*keywords, *others], ["accuracy"])


def test_rows_must_have_different_names(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "rag", example("A"), params={"top_k": k}, run_key=f"rag{k}")
        for k in (5, 10)
    ]
    with pytest.raises(UserError, match="2 runs are named rag") as error:
        paper_table(runs, ["accuracy"], rows=["system"])

    assert error.value.hints == ("use:  --rows system,top_k (in Python: rows='system,top_k')",)
    assert paper_table(runs, ["accuracy"], rows=["system", "top_k"]).headings == ("system", "top_k")
    # The hint names as many settings as the rows need, and none that distinguishes no more of them.
    varied = [(5, 1, "turn"), (9, 2, "turn"), (9, 2, "session")]
    more = [
        made_run(
            tmp_path,
            "rag",
            example("A"),
            params={"top_k": k, "seed": seed, "granularity": granularity},
            run_key=f"more{k}{granularity}",
        )
        for k, seed, granularity in varied
    ]
    with pytest.raises(UserError, match="3 runs are named rag") as error:
        paper_table(more, ["accuracy"], rows=["system"])

    (hint,) = error.value.hints
    rows = hint.removeprefix("use:  --rows ").split(" ")[0].split(",")
    assert len(paper_table(more, ["accuracy"], rows=rows).headings) == 3
    with pytest.raises(UserError, match=r"unknown setting 'sistem'\. Did you mean: system\?"):
        paper_table(runs, ["accuracy"], rows=["sistem"])
    with pytest.raises(UserError, match="unknown setting 'qqqq'") as error:
        paper_table(runs, ["accuracy"], rows=["qqqq"])
    assert error.value.hints[0].endswith("(in Python: rows='system,top_k')")


def test_repeats_and_flags_are_said_once(tmp_path: Path) -> None:
    repeats = tuple(RepeatResult(number, number, {}) for number in range(3))
    asked = {"accuracy": 0.5, "coverage": 1.0, "n_questions": 20.0}
    sums = {**asked, "cost_usd_uncached/total": 0.3, "tokens/total": 9.0}
    runs = [
        made_run(tmp_path, system, example("A"), tags=tags, repeats=repeats, metrics=sums)
        for system, tags in (("a", {"mock": "true", "own_prompt": "true"}), ("b", {"mock": "true"}))
    ]
    table = paper_table(runs, ["accuracy"], rows=["system"])
    assert table.caption == "locomo, 20 questions, means of 3 repeats."
    assert table.notes[-2:] == ("a: own prompt.", "All rows: mock.")
    titles = [column.title for column in paper_table(runs, ["cost", "tokens"]).columns]
    assert titles == ["fresh cost of all repeats ($)", "tokens of all repeats (tokens)"]


def test_recall_that_covers_whole_conversations_is_flagged(tmp_path: Path) -> None:
    run = made_run(
        tmp_path,
        "sessions",
        in_conversations(HIGH),
        tags={FEWEST_SESSIONS: "5"},
        metrics={"accuracy": 1.0, "coverage": 1.0, "recall_at_5": 0.5, "recall_at_1": 0.2},
    )
    table = paper_table([run], ["recall@5"])
    assert table.columns[0].title == "turn recall@5 (%)"
    assert table.flags == (("R@5 of 5 sessions",),)
    assert "as few as 5: @5 can't miss anything" in " ".join(table.notes)


def hostile(folder: Path) -> PaperTable:
    runs = cells(folder, high=HIGH, middle=MIDDLE)
    runs.append(made_run(folder, HOSTILE, in_conversations(LOW), run_key="ffff"))
    return paper_table(
        runs, ["categories", "accuracy"], rows=["system"], caption=HOSTILE, label="a}b"
    )


def test_hostile_names_are_escaped_in_markdown_html_and_csv(tmp_path: Path) -> None:
    table = hostile(tmp_path)
    text = FORMATS["markdown"](table)
    assert "<script>" not in text and r"\[1\](http&#58;//" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len({row.replace("\\|", "").count("|") for row in rows}) == 1

    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(FORMATS["html"](table))
    assert set(tags) <= {"table", "caption", "tr", "th", "td", "b", "sup", "small", "ul", "li"}

    content = list(csv.DictReader(io.StringIO(FORMATS["csv"](table))))
    assert content[2]["system"].startswith("'=cmd")
    assert [row["accuracy"] for row in content] == ["1.0", "0.625", "0.125"]


def compiled(table: str, folder: Path) -> str:
    """Output of TeX for a paper with the table."""
    source = [r"\documentclass{article}", r"\usepackage{booktabs,graphicx}"]
    source += [r"\begin{document}", table, r"Table~\ref{tab:ab}", r"\end{document}", ""]
    (folder / "paper.tex").write_text("\n".join(source), encoding="utf-8")
    done = subprocess.run(
        [str(PDFLATEX), "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "paper.pdf").stat().st_size > 1000
    return done.stdout


@pytest.mark.skipif(PDFLATEX is None, reason="no TeX engine (pdflatex) on this machine")
def test_latex_compiles_whatever_the_names_are(tmp_path: Path) -> None:
    table = FORMATS["latex"](hostile(tmp_path))
    assert r"\multicolumn{2}{c}{accuracy by category (\%)}" in table
    compiled(table, tmp_path)


@pytest.mark.skipif(PDFLATEX is None, reason="no TeX engine (pdflatex) on this machine")
def test_latex_table_of_many_columns_fits_the_page(tmp_path: Path) -> None:
    table = paper_table(cells(tmp_path, high=HIGH, low=LOW), ["accuracy"])
    (column,) = table.columns
    wide = FORMATS["latex"](replace(table, columns=(column,) * 12))
    interval = column.cells[1].interval
    assert interval and f" & {{\\tiny {interval}}}" in wide
    assert "Overfull" not in compiled(wide, tmp_path)
