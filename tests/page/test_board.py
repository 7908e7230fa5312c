"""The board: tables by protocol, reproducible bytes, pages in a browser, and `board check`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from posixpath import normpath
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import yaml
from msgspec import structs
from msgspec.structs import replace as replace_members
from test_page_in_browser import AXE, CHROMIUM, Seen, started_chromium

import memeval
from memeval.cli.main import run_command
from memeval.comparison.build import compare_runs
from memeval.comparison.claims.reading import load_claims
from memeval.comparison.scores import RunScores
from memeval.errors import UserError
from memeval.metrics.registry import metrics
from memeval.packages.board.check import check_package
from memeval.packages.board.collect import collect
from memeval.packages.board.entries import entries_of, kind_of
from memeval.packages.board.pictures import pictures
from memeval.packages.board.questions import question_of, questions_of
from memeval.packages.board.records import (
    Board,
    BoardAnswer,
    BoardQuestion,
    BoardRow,
    DisputeNote,
    PackageDifference,
    PublishedFigure,
    Setting,
)
from memeval.packages.board.tables import distinguish_tables, published_figures
from memeval.packages.board.write import site_files, write_board
from memeval.packages.read import open_package
from memeval.packages.write import Packed, pack
from memeval.results import Record

HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>\u202e{{7*7}}\x00"
)
"""Runs a script wherever it is not shown as text; its last character is not allowed in XML."""


COLLISIONS = """[...document.querySelectorAll('.scatter')].flatMap((plot) => {
  const boxes = [...plot.querySelectorAll('.name text, circle')].map((one) =>
    [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([text, own], at) => boxes.slice(at + 1).filter(([other, box]) =>
    text + other !== '' && own.left < box.right && box.left < own.right &&
    own.top + 2 < box.bottom && box.top + 2 < own.bottom).map(([other]) => [text, other]));
})"""
"""Names in a plot that overlap each other or a point."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMEVAL_HOME", str(folder))
        patch.setenv("MEMEVAL_PLOTS", "false")
        patch.delenv("MEMEVAL_DATA_DIR", raising=False)
        yield folder


def run_of(system: str, *words: str) -> memeval.FinishedRun:
    return memeval.run(
        "dataset=demo",
        f"system={system}",
        "dataset.limit_questions=3",
        "tracking=none",
        *words,
        progress=False,
    )


@pytest.fixture(scope="module")
def packages(home: Path) -> dict[str, Packed]:
    """Packages of baselines, of a system, and of the system under another judge."""
    folder = home / "packages"
    folder.mkdir()
    runs = {name: run_of(name) for name in ("bm25", "no_memory", "oracle", "random_k")}
    other = run_of("random_k", "judge=exact_match")

    def packed(name: str, *own: memeval.FinishedRun) -> Packed:
        return pack(list(own), folder / f"{name}.memeval", who="the tests", licence="CC0 1.0")

    return {
        "baselines": packed("baselines", runs["bm25"], runs["no_memory"], runs["oracle"]),
        "own": packed("own", runs["random_k"]),
        "strict": packed("strict", other),
    }


@pytest.fixture(scope="module")
def board(packages: dict[str, Packed], home: Path) -> Board:
    return collect(home / "packages")


@pytest.mark.slow
def test_table_has_one_protocol_and_the_figures_of_its_comparison(
    board: Board, packages: dict[str, Packed]
) -> None:
    assert sorted(len(table.rows) for table in board.tables) == [1, 4]
    (table,) = [table for table in board.tables if len(table.rows) == 4]
    rows = {row.system: row for row in table.rows}
    kinds = {name: row.kind for name, row in rows.items()}
    assert kinds == {
        "bm25": "baseline",
        "no_memory": "baseline",
        "oracle": "oracle",
        "random_k": "system",
    }
    assert table.best_baseline == rows["bm25"].key

    with (
        open_package(packages["baselines"].path) as baselines,
        open_package(packages["own"].path) as own,
    ):
        runs = [*baselines.runs, *own.runs]
        expected = compare_runs(runs, metrics()["accuracy"], all_pairs=True)
        for run in runs:
            row = rows[str(run.params["system"])]
            assert row.letters == expected.run(run.key).letters != ""
            assert (row.accuracy, row.low) == (
                run.metrics["accuracy"],
                run.metrics["accuracy_ci95_low"],
            )
            assert row.accuracy is not None and rows["bm25"].accuracy is not None
            if run.params["system"] != "bm25":
                assert row.difference == pytest.approx(row.accuracy - rows["bm25"].accuracy)
                assert row.difference_low is not None and row.difference_high is not None
                assert row.difference_low <= row.difference <= row.difference_high

    marks = {mark.level: mark.state for mark in board.packages[0].marks}
    assert marks == {
        "intact": "passed",
        "figures": "passed",
        "verdicts": "passed",
        "answers": "not done",
        "who": "not done",
        "registered": "not done",
    }


def test_published_figures_are_matched_to_runs_with_their_differences(
    home: Path, board: Board
) -> None:
    assert not any(row.published for table in board.tables for row in table.rows)

    summary = memeval.load_runs()[0].summary
    summary = replace(summary, dataset="locomo", params={**summary.params, "system": "mem0"})
    found = list(published_figures(summary, load_claims()))
    paper = next(one for one in found if one.value == 66.9)
    assert paper.verdict == "not comparable"
    assert any("1,540 there" in reason for reason in paper.differs)
    assert "41.6" in paper.disputes[0]
    assert {one.system for one in found} >= {"mem0", "mem0 platform"}


def test_protocols_with_equal_words_get_distinguishing_words(board: Board) -> None:
    tables = [board.tables[0], board.tables[0]]
    tables[1] = structs.replace(tables[1], protocol={**tables[1].protocol, "labels": "corrected"})
    first, second = distinguish_tables(tables)
    assert (first.words.split(" · ")[-1], second.words.split(" · ")[-1]) == (
        "labels original",
        "labels corrected",
    )
    assert distinguish_tables(board.tables) == board.tables

    # A reader's prompts are a list of digests, which may only differ after hundreds of characters.
    shared = " ".join("0123456789abcdef"[number] * 64 for number in range(4))
    for at, digest in enumerate(("a" * 64, "b" * 64)):
        reader = {**tables[0].protocol["reader"], "prompt_sha256": f"{shared} {digest}"}
        protocol = {**tables[0].protocol, "reader": reader}
        tables[at] = structs.replace(tables[0], protocol=protocol)

    last = [table.words.split(" · ")[-1] for table in distinguish_tables(tables)]
    assert last == ["prompt_sha256 aaaaaaaaaaaa", "prompt_sha256 bbbbbbbbbbbb"]


@pytest.mark.slow
def test_tables_of_tools_and_of_retrieval_say_so(home: Path) -> None:
    """The words of a table tell tools from chunks; a run without verdicts is not refused for its
    judge.
    """
    folder = home / "more"
    folder.mkdir()
    runs = [run_of("bm25", "reader=tools"), run_of("bm25"), run_of("bm25", "stages=retrieve")]
    pack(runs, folder / "more.memeval", who="the tests", licence="CC0 1.0")
    tables = collect(folder).tables
    words = [table.words for table in tables]
    assert len(set(words)) == 3 and sum(" with tools" in text for text in words) == 1
    assert [table.remarks for table in tables] == [()] * 3


def test_plot_marks_the_frontier_and_names_most_points(board: Board) -> None:
    row = structs.replace(board.tables[0].rows[0], kind="system", low=0.3, high=0.8)
    row = structs.replace(row, context_tokens=9.0, latency_p50_ms=None)
    rows = [
        structs.replace(row, label=f"memory 記憶 {n}", accuracy=a / 100, usd_per_1000=u)
        for n, (a, u) in enumerate([(40, 1.0), (50, 2.0), (45, 3.0), (50, 4.0), (70, 9.0)])
    ]
    (cost,) = pictures([*rows, structs.replace(row, kind="oracle", usd_per_1000=0.5, accuracy=1.0)])
    assert cost.panel.across.title == "US dollars per 1,000 questions"
    assert [mark.x for mark in cost.panel.marks if mark.is_best] == [1.0, 2.0, 9.0]
    assert {name.text for name in cost.names} >= {f"memory 記憶 {n}" for n in range(5)}
    versions = [
        structs.replace(one, label=f"our own memory service 1.{n}") for n, one in enumerate(rows)
    ]
    (cost,) = pictures(versions)
    assert len({name.text for name in cost.names}) >= 4
    assert {name.text for name in cost.names} <= {f"our own mem…ervice 1.{n}" for n in range(5)}
    many = [structs.replace(row, label=f"{n}", usd_per_1000=n % 9) for n in range(200)]
    crowd = pictures(many)[0]
    assert len(crowd.panel.marks) == 200 and len(crowd.names) <= 30
    assert pictures([structs.replace(row, usd_per_1000=1.0)] * 2) == []


def test_questions_show_which_systems_are_right(board: Board, packages: dict[str, Packed]) -> None:
    (table,) = [table for table in board.tables if len(table.rows) == 4]
    questions = {one.id: one for one in board.questions[table.id]}
    with open_package(packages["own"].path) as own:
        records = own.runs[0].read_records()
        assert list(questions) == [record.question_id for record in records]
        for record in records:
            question = questions[record.question_id]
            (answer,) = [one for one in question.answers if "random_k" in one.systems]
            assert (answer.text, question.gold) == (record.hypothesis, record.gold)
            assert (answer.outcome == "right") == record.is_right
            assert sum(len(one.systems) for one in question.answers) == 4

    # Questions with withheld texts are always left out.
    with open_package(packages["own"].path) as own:
        scores = {own.runs[0].key: RunScores({}, {}, None, 1)}
        (entries,) = entries_of([(own, scores)]).values()
        data = [replace_members(one, texts=False) for one in own.manifest.data]
        bare = structs.replace(own, manifest=replace_members(own.manifest, data=tuple(data)))
        assert len(questions_of(entries, table.rows)) == 30
        assert questions_of([structs.replace(entries[0], package=bare)], table.rows) == ()


@pytest.mark.parametrize(
    ("outcomes", "kind"),
    [
        ({"wrong": {"The cat.": 2, "cat": 1, "dog": 3}}, "suspect"),
        ({"wrong": {"cat": 1, "dog": 1, "hen": 1}}, "nobody"),
        ({"wrong": {"cat": 2}, "abstained": {"": 9}}, "nobody"),
        ({"wrong": {"cat": 8}, "right": {"dog": 1}}, "some"),
        ({"right": {"cat": 8, "dog": 1}, "not scored": {"": 1}}, "everybody"),
        ({"not scored": {"": 1}}, "not scored"),
    ],
)
def test_a_gold_is_suspect_if_wrong_answers_agree(
    outcomes: dict[str, dict[str, int]], kind: str
) -> None:
    given = {
        (outcome, text): Counter(f"{text} {n}" for n in range(count))
        for outcome, texts in outcomes.items()
        for text, count in texts.items()
    }
    assert question_of(Record("q"), given).kind == kind


def test_answers_of_repeats_and_of_runs_with_one_label_all_count() -> None:
    given = {("right", "cat"): Counter(bm25=2), ("wrong", "dog"): Counter(bm25=1, rag=3)}
    question = question_of(Record("q"), given)
    assert (question.right, question.scored, question.kind) == (2, 6, "some")

    # Repeats say the same anyway: three of one run are no sign of a wrong gold.
    assert question_of(Record("q"), {("wrong", "dog"): Counter(rag=3)}).kind == "nobody"


@pytest.mark.slow
def test_differing_packages_of_one_system_and_disputes_are_listed(
    packages: dict[str, Packed], home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "packages"
    shutil.copytree(home / "packages", folder)
    pack([run_of("bm25", "top_k=1")], folder / "low.memeval", licence="CC0 1.0")
    pack([run_of("bm25", "seed=1")], folder / "same.memeval", licence="CC0 1.0")
    notes = tmp_path / "disputes"
    notes.mkdir()
    (notes / "one.md").write_text("# bm25 is too low\n\nSee <b>here</b>.\n")
    board = collect(folder)
    assert [(note.title, note.text) for note in board.disputes] == [
        ("bm25 is too low", "See <b>here</b>.")
    ]
    (apart,) = board.apart
    files = [board.package(id).file for id in (apart.first, apart.second)]
    assert apart.system == "bm25" and files[1] == "low.memeval" != files[0]
    assert ("top_k", "10", "1") in [(one.name, one.first, one.second) for one in apart.settings]
    assert apart.low is not None and 0 < apart.low < apart.difference

    (notes / "link.md").symlink_to("/etc/hostname")
    with pytest.raises(UserError, match=r"link\.md: a symbolic link"):
        collect(folder)


def test_imported_answers_have_the_name_of_their_file_and_no_cost(
    packages: dict[str, Packed], tmp_path: Path
) -> None:
    ids = [record.question_id for record in memeval.load_runs()[0].read_records()]
    folder = tmp_path / "packages"
    folder.mkdir()
    for name in ("acme", "zeta"):
        file = tmp_path / f"{name}.jsonl"
        rows = [json.dumps({"question_id": one, "hypothesis": name}) for one in ids]
        file.write_text("\n".join(rows))
        words = ["dataset=demo", "dataset.limit_questions=3", "tracking=none"]
        run = memeval.evaluate(file, *words, progress=False)
        pack([run], folder / f"{name}.memeval", licence="CC0 1.0")
        assert check_package(folder / f"{name}.memeval", most_bytes=10**8) == []

    runs = [run for run in memeval.load_runs() if run.summary.tags["imported"] == "true"]
    compared = compare_runs(runs, metrics()["accuracy"])
    assert [run.cost_usd for run in compared.runs] == [None, None]

    (table,) = collect(folder).tables
    assert [row.system for row in table.rows] == [row.label for row in table.rows]
    assert {row.system for row in table.rows} == {"acme", "zeta"}
    assert [row.usd_per_1000 for row in table.rows] == [None, None]


def test_run_that_only_has_a_baselines_name_is_a_system(board: Board, home: Path) -> None:
    """`evaluate` and custom classes may use any name."""
    base = memeval.load_runs()[0].summary
    for change in ({"tags": {"imported": "true"}}, {"params": {"system.class": "x:Y"}}):
        params = {"system": "bm25"} | change.get("params", {})
        summary = replace(base, params=params, tags=change.get("tags", {}))
        assert kind_of(summary) == "system"

    summary = replace(base, params={"system": "bm25"}, tags={})
    assert kind_of(summary) == "baseline"


def test_board_and_board_check_commands(
    packages: dict[str, Packed],
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder, site = tmp_path / "packages", tmp_path / "site"
    shutil.copytree(home / "packages", folder)
    shutil.copy(folder / "own.memeval", folder / "twice.memeval")
    damaged = bytearray((folder / "strict.memeval").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / "strict.memeval").write_bytes(damaged)

    assert run_command(["board", str(folder), "-o", str(site)]) == 0
    output = capsys.readouterr().out
    assert "2 packages, 4 runs, 1 protocol\n" in output
    assert "twice.memeval: the same as own.memeval" in output
    assert "strict.memeval: level 1 (intact)" in output
    first = {path: path.read_bytes() for path in site.rglob("*.*")}
    assert str(tmp_path).encode() not in b"".join(first.values())
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in first)

    # Sound packages are remembered, which does not change the site.
    (site / "tables" / "0123456789ab.html").write_text("of an earlier board")
    assert run_command(["board", str(folder), "-o", str(site)]) == 0
    assert "checked:  3 of them earlier" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in site.rglob("*.*")} == first

    # Several processes give the same result.
    monkeypatch.setattr("memeval.packages.board.checking.FEW", 1)
    assert run_command(["board", str(folder), "-o", str(site), "--again"]) == 0
    assert "checked:" not in capsys.readouterr().out
    assert {path: path.read_bytes() for path in site.rglob("*.*")} == first

    assert run_command(["board", "check", str(folder / "own.memeval")]) == 1
    assert "twice.memeval is the same package" in capsys.readouterr().out
    assert run_command(["board", "check", str(folder / "baselines.memeval")]) == 0
    assert run_command(["board", "check", str(folder / "strict.memeval")]) == 1
    assert run_command(["board", "check", "no.memeval"]) == 2
    assert run_command(["board", str(site), "-o", str(tmp_path / "other")]) == 2
    assert run_command(["board", str(folder), "-o", str(folder)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_board_without_a_sound_package_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "cut.memeval").write_bytes(b"PK")
    assert run_command(["board", str(tmp_path), "-o", str(tmp_path / "site")]) == 2
    assert not (tmp_path / "site").exists()


def test_board_check_requires_a_replacement_to_supersede_the_package(
    packages: dict[str, Packed], home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "packages"
    shutil.copytree(home / "packages", folder)
    run = run_of("random_k", "seed=1")
    own = packages["own"].id

    def problems(**options: Any) -> list[str]:
        path = folder / "new.memeval"
        pack([run], path, **({"who": "the tests", "licence": "CC0 1.0"} | options))
        return check_package(path, most_bytes=10**8)

    (line,) = problems()
    assert line.startswith("own.memeval has random_k under the same protocol")
    assert problems(supersedes=own) == []
    assert [one.file for one in collect(folder).left_out] == ["own.memeval"]
    assert len(problems(supersedes="0" * 16)) == 2
    assert any("no licence" in line for line in problems(supersedes=own, licence=""))
    (line,) = problems(supersedes=packages["baselines"].id)[:1]
    assert "lacks its runs of bm25, no_memory, oracle" in line
    assert "more than 10" in check_package(folder / "new.memeval", most_bytes=10)[0]


def test_init_writes_a_board_with_a_working_check(
    packages: dict[str, Packed],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command(["init", "my-board", "--kind", "board"]) == 0
    (pack,) = [line for line in capsys.readouterr().out.splitlines() if " pack " in line]
    assert "--licence 'CC0 1.0'" in pack  # `board check` refuses a package without a licence

    assert run_command(["init", "board", "my-board"]) == 2
    assert "my-board exists already" in capsys.readouterr().err

    monkeypatch.chdir("my-board")
    workflow = yaml.safe_load(Path(".github/workflows/board.yml").read_text())
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    (check,) = [step for step in steps if "env" in step]
    assert check["env"] == {"BASE": "${{ github.event.pull_request.base.sha }}"}
    assert workflow["permissions"] == {"contents": "read"}

    # The workflow's command, for a pull request with one file.
    def git(*words: str) -> str:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        return subprocess.run(
            ["git", *who, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "A board")
    base = git("rev-parse", "HEAD")
    shutil.copy(packages["own"].path, "packages/a b.memeval")
    git("add", "-f", ".")
    git("commit", "-qm", "A package")
    command = check["run"].replace("python -m memeval", "printf '%s\\n'")
    said = subprocess.run(
        ["bash", "-c", command],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "BASE": base},
    )
    assert said.stdout.splitlines() == ["board", "check", "packages/a b.memeval"]


def test_a_board_that_was_not_written_to_its_end_is_continued(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "write_text", stop)
        write_board(board, site)

    write_board(board, site)
    assert (site / "board.json").read_text(encoding="utf-8") == dict(site_files(board))[
        "board.json"
    ]


def many(board: Board, count: int) -> Board:
    """The board with a table of many rows, and with as many protocols."""
    tables = []
    for number, table in enumerate([board.tables[0]] * count):
        rows = tuple(
            structs.replace(
                row, key=f"{number:08x}{place:08x}", system=f"system {place}", label=f"{place}"
            )
            for place, row in enumerate([*table.rows] * (count // len(table.rows)))
        )
        tables.append(structs.replace(table, id=f"{number:012x}", rows=rows))

    return replace(board, tables=tuple(tables))


def test_the_first_page_stays_small(board: Board) -> None:
    large = many(board, 100)
    pages = dict(_first_pages(large))
    assert len(pages["index.html"].encode()) < 150_000
    assert pages["index.html"].count('class="baseline"') > 30

    # Names of the greatest length, with three bytes per letter.
    names: dict[str, Any] = {"label": "記" * 80, "flags": ("憶" * 80,) * 3}
    long = [structs.replace(row, **names) for row in large.tables[0].rows]
    tables = [structs.replace(table, rows=tuple(long), words="憶" * 120) for table in large.tables]
    page = dict(_first_pages(replace(large, tables=tuple(tables))))["index.html"]
    assert len(page.encode()) < 150_000 and page.count("<tr ") >= 10


def _first_pages(board: Board) -> Iterator[tuple[str, str]]:
    for name, text in site_files(board):
        if "/" in name:
            return

        yield name, text


def hostile(board: Board) -> Board:
    """The board with a hostile string in every field of a package that may hold one."""
    tables = []
    for table in board.tables:
        rows: list[BoardRow] = []
        for row in table.rows[:2]:
            categories = tuple(replace(one, name=HOSTILE) for one in row.categories)
            words: dict[str, Any] = {"system": HOSTILE, "label": HOSTILE, "flags": (HOSTILE,)}
            claim = dict.fromkeys(("title", "source", "system", "metric", "verdict"), HOSTILE)
            words["published"] = (
                PublishedFigure(
                    **claim,
                    value=1.0,
                    own=None,
                    differs=(HOSTILE,),
                    untold=(HOSTILE,),
                    disputes=(HOSTILE,),
                ),
            )
            rows.append(structs.replace(row, categories=categories, **words))

        protocol = {HOSTILE: {"judge": HOSTILE}}
        words = {"dataset": HOSTILE, "words": HOSTILE, "remarks": (HOSTILE,)}
        tables.append(structs.replace(table, rows=tuple(rows), protocol=protocol, **words))

    packages = [
        structs.replace(
            one,
            file=HOSTILE,
            who=HOSTILE,
            licence=HOSTILE,
            said=HOSTILE,
            marks=tuple(structs.replace(mark, words=HOSTILE) for mark in one.marks),
        )
        for one in board.packages
    ]
    left_out = tuple(replace(one, file=HOSTILE) for one in board.left_out)
    question = BoardQuestion(
        id=HOSTILE,
        category=HOSTILE,
        text=HOSTILE,
        gold=(HOSTILE,),
        right=0,
        scored=9,
        is_suspect=True,
        answers=(
            BoardAnswer("wrong", HOSTILE, {HOSTILE: 2}),
            BoardAnswer("not scored", "", {HOSTILE: 1}),
        ),
    )
    return replace(
        board,
        tables=tuple(tables),
        packages=tuple(packages),
        left_out=left_out,
        questions={tables[0].id: (question,)},
        disputes=(DisputeNote(HOSTILE, HOSTILE, HOSTILE),),
        apart=(
            PackageDifference(
                table=tables[0].id,
                dataset=HOSTILE,
                system=HOSTILE,
                first=packages[0].id,
                second=packages[1].id,
                difference=0.1,
                low=None,
                high=None,
                settings=(Setting(HOSTILE, HOSTILE, HOSTILE),),
            ),
        ),
    )


def test_an_invalid_figure_is_marked_or_left_out(board: Board) -> None:
    table = board.tables[0]
    invalid: dict[str, Any] = {"valid": False, "flags": ("INVALID",), "accuracy": 0.987}
    rows = [structs.replace(row, **invalid) for row in table.rows]
    files = dict(site_files(replace(board, tables=(structs.replace(table, rows=tuple(rows)),))))
    assert "98.7" in files["index.html"] and "98.7" not in files["matrix.html"]
    assert files["feed.xml"].count("accuracy 98.7 %; INVALID; ") == len(rows)


def test_feed_json_and_links_are_valid_with_hostile_texts(board: Board) -> None:
    board = hostile(board)
    files = dict(site_files(board))
    feed = ElementTree.fromstring(files["feed.xml"])
    atom = "{http://www.w3.org/2005/Atom}"
    entries = feed.findall(f"{atom}entry")
    assert len(entries) == sum(len(table.rows) for table in board.tables)
    assert len({entry.findtext(f"{atom}id") for entry in entries}) == len(entries)
    content = json.loads(files["board.json"])
    assert content["tables"][0]["rows"][0]["system"] == HOSTILE
    schema = json.loads(files["board.schema.json"])
    jsonschema.validate(content, schema)
    del content["tables"][0]["rows"][0]["accuracy"]
    with pytest.raises(jsonschema.ValidationError, match="accuracy"):
        jsonschema.validate(content, schema)

    for name, text in files.items():
        if name.endswith(".html"):
            links = re.findall(r'href="([^"#]+)"', text)
            assert {normpath(f"{name}/../{link}") for link in links} <= set(files)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no Chromium at {CHROMIUM}")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_pages_in_a_browser_are_safe_accessible_and_sortable(board: Board, tmp_path: Path) -> None:
    for name, one in (("plain", board), ("hostile", hostile(board))):
        write_board(one, tmp_path / name)

    with started_chromium() as chromium:
        walks = [(1280, "light"), (380, "dark")]
        for width, scheme in walks:
            seen = Seen(chromium, viewport={"width": width, "height": 800}, color_scheme=scheme)
            pages = [*sorted((tmp_path / "hostile").rglob("*.html")), tmp_path / "plain/index.html"]
            for page in pages:
                seen.page.goto(page.as_uri())
                assert seen.page.evaluate("window.hit") is None
                assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
                assert seen.page.evaluate(COLLISIONS) == []
                seen.page.evaluate(AXE.read_text(encoding="utf-8"))
                found = seen.page.evaluate("axe.run().then((result) => result.violations)")
                assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []

            assert seen.requests == [page.as_uri() for page in pages]
            assert seen.complaints == []

            # By keyboard: search, filter, then sort.
            table = seen.page.locator("table").filter(has_text="no_memory")
            section = seen.page.locator("section").filter(has=table)
            section.get_by_label("Search").focus()
            seen.page.keyboard.type("NO_memory")
            assert section.locator("tbody tr:visible").count() == 1
            section.get_by_label("Search").fill("")
            section.get_by_label("Show").select_option("system")
            assert section.locator("tbody tr:visible").count() == 1
            section.get_by_label("Show").select_option("")
            section.get_by_role("button", name="system").focus()
            seen.page.keyboard.press("Enter")
            names = section.locator("tbody th a").all_text_contents()
            assert names == sorted(names) and len(names) == 4
            seen.page.close()

        without = chromium.new_context(java_script_enabled=False).new_page()
        without.goto((tmp_path / "plain/index.html").as_uri())
        assert without.locator("tbody tr").count() == 5
        assert without.locator("button, input").count() == 0
        without.context.close()
