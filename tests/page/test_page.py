"""The content of the page: figures, marks, each text once, and no text that ends its element."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_pages import SHOWN, Size, sample_comparison, write_runs

sys.path.insert(0, str(Path(__file__).parents[1]))

from msgspec import structs
from sample_records import record, verdict

from memeval.metrics.formats import figure
from memeval.records import Label, Status, Verdict
from memeval.report.page import write_page
from memeval.report.page.build import conversation_data, page_data, sentences
from memeval.report.page.questions import (
    answer_letter,
    evidence_letter,
    outcome_letter,
    question_data,
)
from memeval.report.page.runs import PageRun, questions_of
from memeval.report.page.write import render, shade
from memeval.report.plots.model import Panel
from memeval.report.plots.prices import price_panels
from memeval.results import (
    RECORDS_FILE,
    Note,
    NoteKind,
    Record,
    RetrievedChunk,
    RunSummary,
    read_records,
)
from memeval.results.judge import JudgeIdentity
from memeval.results.record import TimelineEvent

SIZE = Size(cells=2, cases=3, questions=110)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_runs(tmp_path_factory.mktemp("outputs"), SIZE)


@pytest.fixture(scope="module")
def page(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("page") / "report.html"
    write_page(folders, target)
    return target.read_text(encoding="utf-8")


def index_of(page: str) -> dict[str, Any]:
    (text,) = re.findall(r'<script type="application/json" id="index">(.*?)</script>', page)
    content: dict[str, Any] = json.loads(text)
    return content


def blocks_of(page: str) -> list[dict[str, Any]]:
    texts = re.findall(r'<script type="text/plain" class="block">(.*?)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(text))) for text in texts]


def cells_of(page: str) -> list[dict[str, str]]:
    """The rows of the table of runs, by its headers."""
    (table,) = re.findall(r'<table class="sortable cells">(.*?)</table>', page, re.DOTALL)
    head, body = table.split("<tbody>")
    names = [words(cell) for cell in re.findall(r"<th[^>]*>(.*?)</th>", head, re.DOTALL)]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    return [dict(zip(names, map(words, row), strict=True)) for row in cells]


def words(markup: str) -> str:
    return re.sub(r"<[^>]+>", "", markup).strip()


@pytest.mark.slow
def test_runs_are_compared_by_the_cost_of_a_fresh_run(page: str) -> None:
    first, second = cells_of(page)
    assert (first["cost $"], first["billed $"]) == ("0.2", "0.2")
    assert (second["cost $"], second["billed $"]) == ("0.421", "0")
    assert (second["retrieval p50"], second["p95"]) == ("3.0 ms", "6.5 ms")


def test_index_contains_every_question_with_its_outcome_in_each_run(
    page: str, folders: list[Path]
) -> None:
    index = index_of(page)
    assert len(index["ids"]) == SIZE.cases * SIZE.questions
    assert index["cells"] == ["bm25", "rag"]

    for marks, folder in zip(index["marks"], folders, strict=True):
        rows = list(read_records(folder / RECORDS_FILE))
        assert marks == "".join(map(answer_letter, rows))
        assert marks.count("r") == sum(row.score == 1.0 for row in rows) > 0


def test_block_contains_the_texts_of_its_questions_once(page: str, folders: list[Path]) -> None:
    index, blocks = index_of(page), blocks_of(page)
    assert len(blocks) > 1 and index["block"] == sorted(index["block"])

    rows = {row.question_id: row for row in read_records(folders[1] / RECORDS_FILE)}
    for name, number in zip(index["ids"], index["block"], strict=True):
        block = blocks[number]
        (answer,) = block["questions"][name]["answers"][1]
        assert answer["answer"] == rows[name].hypothesis
        turns = [block["chunks"][chunk][1] for chunk in answer["chunks"]]
        assert turns == [list(chunk.turn_ids) for chunk in rows[name].retrieved or ()]

        context = block["texts"][answer["context"]]
        assert len(context["of"]) == SHOWN
        assert [block["texts"][part] for part in context["of"]] == [
            block["texts"][block["chunks"][chunk][0]] for chunk in answer["chunks"]
        ]

    for block in blocks:
        whole = [text for text in block["texts"] if isinstance(text, str)]
        assert len(whole) == len(set(whole)) <= SIZE.cases * SIZE.turns


def test_missing_texts_are_left_out(folders: list[Path], tmp_path: Path) -> None:
    moved = tmp_path / "runs" / folders[0].name
    shutil.copytree(folders[0], moved)
    write_page([moved], tmp_path / "page.html")

    for block in blocks_of((tmp_path / "page.html").read_text(encoding="utf-8")):
        assert block["texts"] == [] and all(text is None for text, _ in block["chunks"])
        (answer,) = next(iter(block["questions"].values()))["answers"][0]
        assert answer["context"] is None and answer["answer"]


HOSTILE = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>\u202e<!--"


def hostile_run(folders: list[Path], root: Path) -> Path:
    """A run whose texts and names would be markup if they were not escaped."""
    folder = root / "runs" / folders[0].name
    shutil.copytree(folders[0], folder)
    rows = [
        structs.replace(
            row,
            question=HOSTILE,
            gold=(HOSTILE,),
            hypothesis=HOSTILE,
            case_id=HOSTILE,
            category_name=HOSTILE,
            facets={HOSTILE: HOSTILE},
            timeline=(TimelineEvent("asked", HOSTILE, HOSTILE),),
            verdict=verdict(reason=HOSTILE),
        )
        for row in list(read_records(folder / RECORDS_FILE))[:3]
    ]
    lines = "".join(json.dumps(row.to_json()) + "\n" for row in rows)
    (folder / RECORDS_FILE).write_text(lines, encoding="utf-8")

    summary = PageRun.read(folder).summary
    evil = [replace(row, name=HOSTILE) for row in summary.categories]
    replace(
        summary,
        name=HOSTILE,
        dataset=HOSTILE,
        notes=(Note(NoteKind.REMARK, HOSTILE),),
        command=HOSTILE,
        categories=tuple(evil),
        params={**summary.params, HOSTILE: HOSTILE},
    ).write(folder)

    return folder


def test_no_text_ends_its_element(folders: list[Path], tmp_path: Path) -> None:
    write_page([hostile_run(folders, tmp_path)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert page.count("<script") == page.count("</script>") == 2 + len(blocks_of(page))
    assert "<img" not in page and "\u202e" not in page
    assert index_of(page)["text"] == [HOSTILE] * 3
    assert html.escape(HOSTILE, quote=False).replace("\u202e", "\\u202e")[:40] in page


def test_policy_allows_only_the_pages_own_script_and_style(page: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
    assert html.unescape(policy).startswith("default-src 'none'; script-src 'sha256-")
    assert not re.search(r"(?:src|href)=[\"'](?!#)", page)
    assert "style=" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([record()], "r"),
        ([record(verdict=verdict(Label.WRONG))], "w"),
        ([record(verdict=verdict(Label.ABSTAINED))], "a"),
        ([record(verdict=verdict(Label.UNSCORED))], "u"),
        ([record(status=Status.UNPARSED)], "u"),
        ([record(status=Status.RETRIEVED, verdict=None)], "u"),
        ([record(status=Status.ANSWER_FAILED, verdict=None)], "f"),
        ([record(), record(repeat=1, verdict=verdict(Label.WRONG))], "m"),
        ([record(), record(repeat=1)], "r"),
        ([], "-"),
    ],
)
def test_mark_of_a_question(rows: list[Record], expected: str) -> None:
    assert outcome_letter(rows) == expected


@pytest.mark.parametrize(
    ("turns", "expected"), [(("D1", "D2"), "a"), (("D1", "D9"), "s"), (("D9",), "n")]
)
def test_share_of_the_evidence_that_the_reader_was_shown(
    turns: tuple[str, ...], expected: str
) -> None:
    row = record(evidence=("D1", "D2"), retrieved=(RetrievedChunk(turns),))
    assert evidence_letter([row]) == expected
    assert (
        evidence_letter([structs.replace(row, retrieved=None)])
        == evidence_letter([structs.replace(row, evidence=())])
        == "-"
    )


def made_run(folders: list[Path], *rows: Record) -> PageRun:
    by_question: dict[str, list[Record]] = {}
    for row in rows:
        by_question.setdefault(row.question_id, []).append(row)

    return structs.replace(PageRun.read(folders[0]), records=by_question)


def test_cost_and_tokens_of_an_imported_answer_are_unknown(folders: list[Path]) -> None:
    own = made_run(folders, record(question_id="a"))
    tags = {**own.summary.tags, "imported": "true"}
    imported = structs.replace(own, summary=replace(own.summary, tags=tags))

    (block,) = question_data([own, imported]).blocks
    details = json.loads(gzip.decompress(base64.b64decode(block)))["questions"]["a"]
    (ours,), (theirs,) = details["answers"]
    assert ours["sent"] is not None
    assert (theirs["cost"], theirs["sent"], theirs["received"]) == (None, None, None)


def test_disagreeing_verdicts_on_the_same_answer_are_marked(folders: list[Path]) -> None:
    wrong = verdict(Label.WRONG)
    first = made_run(folders, record(question_id="a"), record(question_id="b"))
    second = made_run(
        folders,
        record(question_id="a", hypothesis=" 7  May", verdict=wrong),
        record(question_id="b", hypothesis="8 May", verdict=wrong),
        record(question_id="c", verdict=verdict(votes=(Label.CORRECT, Label.WRONG))),
    )
    index = question_data([first, second]).index
    assert dict(zip(index["ids"], index["disagree"], strict=True)) == {"a": 1, "b": 0, "c": 1}
    assert index["marks"] == ["rr-", "wwr"]


def test_questions_of_one_conversation_are_adjacent(folders: list[Path]) -> None:
    first = made_run(folders, record(question_id="a1", case_id="a"), record(case_id="b"))
    second = made_run(folders, record(question_id="a2", case_id="a"))
    assert list(questions_of([first, second])) == ["a1", "a2", "q"]


def test_comparison_is_shown_in_words_and_figures(folders: list[Path], tmp_path: Path) -> None:
    sentence = "bm25 <b>50.1 %</b> is higher than rag."
    comparison = sample_comparison(folders, sentence)
    write_page(folders, tmp_path / "page.html", comparison)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert f'<p class="lead">{html.escape(sentence)}' in page
    assert "Difference from bm25" in page and "is more than chance is not tested" not in page
    mean = comparison.differences[0].result.mean
    ends = [figure(mean + reach, "points") for reach in (-0.03, 0.03)]
    shown = f'{figure(mean, "points", signed=True)} <span class="ends">[{", ".join(ends)}]</span>'
    assert shown in page


def test_columns_without_a_figure_and_invalid_runs_are_left_out(folders: list[Path]) -> None:
    runs = [PageRun.read(folder) for folder in folders]
    best, *others = sorted(runs, key=lambda run: -(run.summary.metrics["accuracy"] or 0))
    invalid = structs.replace(best, summary=replace(best.summary, valid=False))
    data = page_data([invalid, *others])
    text = render(data)
    assert "token F1 %" in text and "tool calls" not in text and ">breach<" not in text
    assert f"{data.cells[0].label} has the highest" not in text
    assert "has the highest accuracy of 1 run, " in text
    second, first = (cell.label for cell in data.cells)
    equal, _ = sentences([data.cells[1], structs.replace(data.cells[1], label=second)], runs)
    assert equal.startswith(f"{first} and {second} have the highest accuracy of 2 runs, ")
    (alone,) = sentences(data.cells[:1] * 2, runs)
    assert alone == "2 runs; none has an accuracy that can be compared."


def test_run_that_may_not_be_compared_has_no_difference_anywhere(tmp_path: Path) -> None:
    folders = write_runs(tmp_path, Size(cells=3))
    whole = sample_comparison(folders)
    runs = [PageRun.read(folder) for folder in folders]
    data = page_data(runs, structs.replace(whole, differences=whole.differences[:1]))
    for row in data.conversations:
        assert [difference is None for difference in row.differences] == [True, False, True]

    # A comparison of costs has runs of several judges, whose accuracies can't be compared.
    keyword = replace(runs[2].summary, judge=JudgeIdentity("keyword"))
    judged = page_data([*runs[:2], structs.replace(runs[2], summary=keyword)], whole)
    assert judged.conversations == data.conversations

    # When the table is sorted by the difference, it is last, and not where 0 is.
    assert render(data).count('data-value="0">–') == 1


def priced(folder: Path, cost: float, accuracy: float, system: str = "rag") -> RunSummary:
    """A run with the given cost."""
    return replace(
        PageRun.read(folder).summary,
        metrics={"accuracy": accuracy, "context_tokens": cost},
        params={"system": system},
    )


def frontier(cells: list[RunSummary]) -> Panel:
    """The panel of the only price in which the runs differ."""
    (panel,) = price_panels(cells, [cell.name for cell in cells])
    return panel


def test_frontier_equals_that_of_the_plot_files(folders: list[Path]) -> None:
    costs = [(0.2, 0.51), (26.9, 0.586), (108.3, 0.749), (177.2, 0.699), (26.9, 0.5)]
    cells = [priced(folders[0], *pair) for pair in costs]
    # The oracle is given the evidence: it does not show what is achievable for its price.
    panel = frontier([*cells, priced(folders[0], 1.0, 0.99, "oracle")])
    assert [mark.is_best for mark in panel.marks] == [True, True, True, False, False, False]
    assert panel.area == "frontier, 54.3 % on average over 0.2 to 177 tokens"


def test_run_without_cost_is_at_the_start_of_the_logarithmic_axis(
    folders: list[Path],
) -> None:
    panel = frontier([priced(folders[0], cost, 0.5) for cost in (0, 400, 450, 27_000)])
    places = [panel.across.at(mark.x) for mark in panel.marks]
    assert places[0] == 4.0 and places[1] > 20 and places[3] == 96.0
    assert list(panel.across.ticks.values()) == ["0", "300", "1,000", "3,000", "10,000"]


def test_page_draws_the_same_marks_as_the_plot_files(tmp_path: Path) -> None:
    folders = write_runs(tmp_path, Size(cells=3))
    page = page_data([PageRun.read(folder) for folder in folders])
    text = render(page)
    (panel, *_) = page.frontiers
    for drawn in panel.marks:
        assert f"<title>{drawn.name}: {drawn.text}</title>" in text
        assert f'cx="{panel.across.at(drawn.x)}%"' in text
        assert drawn.low is not None
        assert f'y1="{round(100 - panel.up.at(drawn.low), 2)}%"' in text


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.3, "plus3"), (0.11, "plus2"), (-0.04, "minus1"), (0.001, "none"), (None, "none")],
)
def test_shade_of_a_difference(value: float | None, expected: str) -> None:
    assert shade(value, 0.3) == expected


def test_accuracy_per_conversation_is_weighted_for_a_sample(folders: list[Path]) -> None:
    wrong = verdict(Label.WRONG)

    def of_sample(*verdicts: Verdict) -> PageRun:
        rows = [
            record(
                question_id=f"{case}{number}",
                case_id=case,
                category="1",
                weight=3.0 if number else 1.0,
                verdict=own,
            )
            for case in "ab"
            for number, own in enumerate(verdicts)
        ]
        return made_run(folders, *rows)

    first, second = of_sample(wrong, verdict()), of_sample(verdict(), wrong)
    (strip, _) = conversation_data([first, second], 0)
    assert strip.accuracies == (0.75, 0.25)
    assert strip.differences == (None, -0.5)

    tags = {**first.summary.tags, "stages": "retrieve"}
    retrieved = structs.replace(first, summary=replace(first.summary, tags=tags))
    assert not conversation_data([retrieved, retrieved], 0)


def test_words_on_the_page_equal_the_glossary(page: str) -> None:
    glossary = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", glossary.replace("`", ""), re.MULTILINE)
    assert re.findall(r"<dt>(\w+)</dt><dd>(.+)</dd>", page) == rows[1:]
    assert len(rows[1:]) == 12
