"""`verify PACKAGE`: sound packages pass, and edits are found at level 1, 2 or 3."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, tzinfo
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from doubles.endpoint import ScriptedEndpoint
from msgspec import structs

import memeval
from memeval.api.again import answer_again, judge_again
from memeval.cli.main import run_command
from memeval.comparison.build import compare_runs
from memeval.errors import StorageError, UserError
from memeval.judges.lexical import KeywordJudge
from memeval.metrics.registry import metric_named
from memeval.packages import open_package
from memeval.packages.board.collect import collect, mark_of
from memeval.packages.data import data_of
from memeval.packages.export.terms import terms_of
from memeval.packages.levels import Checks, verify_package
from memeval.packages.register import entry_of_package
from memeval.packages.unpack import unpack
from memeval.packages.write import Packed, pack
from memeval.packages.write import _write as write_entries
from memeval.pipeline.execute.timeline import operations_done
from memeval.records import Verdict
from memeval.results import SEAL, as_json, sealed
from memeval.results.prices import has_other_prices
from memeval.results.store import sealed_line

Entries = dict[str, bytes]
KEY = "sk-Canary7h1sKeyMustNotLeave0000"


def entries_of(path: Path) -> Entries:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def found_at(path: Path) -> int:
    """The first level with a problem; 0 if none."""
    return next((level.number for level in verify_package(path) if level.problems), 0)


def test_packed_runs_are_sound(packed: Packed, capsys: pytest.CaptureFixture[str]) -> None:
    levels = {level.name: level for level in verify_package(packed.path, Checks(data=True))}
    assert not any(level.problems for level in levels.values())
    assert levels["figures"].did.startswith("all figures of 2 runs and 1 comparison recomputed")
    assert levels["verdicts"].did == "120 verdicts judged again by a rule"
    assert run_command(["verify", str(packed.path), "--data"]) == 0
    assert "not signed (the tests)" in capsys.readouterr().out


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize(
    "words",
    [
        "dataset=demo_lifecycle system=files reader=tools writer=tools dataset.limit_cases=1",
        "dataset=demo system=bm25 dataset.canaries=2 dataset.limit_questions=1",
        "dataset=demo_longmemeval system=oracle dataset.limit_cases=2 num_runs=2",
        "dataset=demo system=combined compression_turn=20 dataset.limit_cases=1 stages=retrieve",
    ],
)
def test_runs_of_many_kinds_are_sound(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    run = memeval.run(*words.split(), "tracking=none", progress=False)
    levels = list(verify_package(pack([run], tmp_path / "own.memeval").path))
    assert not any(level.problems for level in levels)
    assert "1 also from the data" in levels[1].did


@pytest.mark.parametrize(
    "change",
    [
        lambda run: run["metrics"].update(abstention_accuracy=0.9),
        lambda run: run.update(protocol_metrics=[]),
        lambda run: run["facet_titles"].update(ability="Skill"),
        lambda run: run["tags"].update(data_pinned="false"),
        lambda run: run["tags"].update(data_version="2"),
        lambda run: run["identity"].update(inputs=None),
    ],
)
def test_edit_of_figures_and_titles_from_the_data_is_found(
    change: Callable[[Any], object], home: Path, tmp_path: Path
) -> None:
    words = ("dataset=demo_longmemeval", "system=oracle", "dataset.limit_cases=2")
    run = memeval.run(*words, "tracking=none", progress=False)
    entries = entries_of(pack([run], tmp_path / "own.memeval").path)
    place = f"runs/{run.key}/run.json"
    content = json.loads(entries[place])
    change(content)
    entries[place] = json.dumps(content).encode()

    path = tmp_path / "edited.memeval"
    write_entries(path, rewritten(entries, run.key))
    assert found_at(path) in (1, 2)


def edited_import(changes: Mapping[str, float], tmp_path: Path) -> Path:
    """A package of imported answers with edited figures in run.json."""
    few = ("dataset=demo", "dataset.limit_cases=2", "tracking=none")
    run = memeval.run(*few, "system=bm25", progress=False)
    answers = shutil.copy(run.folder / "hypotheses.jsonl", tmp_path / "theirs.jsonl")
    run = memeval.evaluate(str(answers), *few, progress=False)
    entries = entries_of(pack([run], tmp_path / "own.memeval").path)
    place = f"runs/{run.key}/run.json"
    content = json.loads(entries[place])
    for metrics in (content["metrics"], content["repeats"][0]["metrics"]):
        metrics.update(changes)

    entries[place] = json.dumps(content).encode()
    path = tmp_path / "edited.memeval"
    write_entries(path, rewritten(entries, run.key))
    return path


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("ingest_lost", marks=pytest.mark.slow),
        "tokens/total",
        pytest.param("cost_usd/total", marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("home")
def test_edited_ingest_and_cost_figures_of_imported_answers_are_found(
    name: str, tmp_path: Path
) -> None:
    assert found_at(edited_import({name: 7.0}, tmp_path)) == 2


def test_edited_accuracy_is_found_by_both_implementations(packed: Packed, tmp_path: Path) -> None:
    key, entries = packed.runs[0].key, entries_of(packed.path)
    content = json.loads(entries[f"runs/{key}/run.json"])
    content["metrics"]["accuracy"] += 0.01
    entries[f"runs/{key}/run.json"] = json.dumps(content).encode()
    path = tmp_path / "edited.memeval"
    write_entries(path, rewritten(entries, key))

    _, figures, *_ = verify_package(path)
    assert found_at(path) == 2
    for message in ("figures differ", "the second implementation differs"):
        assert any(message in line for line in figures.problems)


@pytest.mark.usefixtures("home")
def test_totals_of_older_imports_may_cover_only_the_judge(tmp_path: Path) -> None:
    path = edited_import({"tokens/total": 0.0, "cost_usd_uncached/total": 0.0}, tmp_path)
    assert found_at(path) == 0


def test_missing_or_rewritten_text_is_found(packed: Packed, tmp_path: Path) -> None:
    path, entries = tmp_path / "edited.memeval", entries_of(packed.path)
    first, *others = entries["texts.jsonl"].splitlines(keepends=True)
    spaced, longer = first.replace(b'"id":', b'"id": '), first.replace(b"}", b',"more":1}')
    for lines in (others, [spaced, *others], [longer, *others]):
        entries["texts.jsonl"] = b"".join(lines)
        write_entries(path, rewritten(entries, packed.runs[0].key))
        assert any("texts.jsonl" in line for line in next(verify_package(path)).problems)


def test_steps_of_a_writer_are_packed_and_read_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    small = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none")
    run = memeval.run("dataset=demo", "system=bm25", "writer=tools", *small, progress=False)
    packed = pack([run], tmp_path / "written.memeval")
    assert found_at(packed.path) == 0
    with open_package(packed.path) as package:
        (read,) = package.runs
        record = read.read_records()[0]
        assert "write_recall" in record.metrics
        (written,), texts = read.read_written(record), read.texts_of(record)
        call = written.sessions[0].made[0].calls[0]
        assert texts is not None and "text" in json.loads(texts.get(call.arguments) or "")


# Archives with forbidden content: refused before anything is unpacked.


def _evil(name: str, entries: Entries, path: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for entry, content in entries.items():
            archive.writestr(entry, content)

        if name == "up":
            archive.writestr("../evil.txt", b"x")
        elif name == "run named up":
            archive.writestr("runs/../run.json", b"x")
        elif name == "twice":
            archive.writestr("texts.jsonl", b"")
        elif name == "unlisted":
            archive.writestr("runs/0123/run.json", b"{}")
        elif name == "link":
            info = zipfile.ZipInfo("register.json")
            info.external_attr = 0o120777 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, "/etc/passwd")
        elif name == "comment":
            archive.comment = b"x"
        elif name == "packed otherwise":
            info = zipfile.ZipInfo("register.json")
            info.compress_type = zipfile.ZIP_BZIP2
            archive.writestr(info, b"{}")


@pytest.mark.parametrize(
    "name", ["up", "run named up", "twice", "unlisted", "link", "comment", "packed otherwise"]
)
def test_malicious_archive_is_refused(name: str, packed: Packed, tmp_path: Path) -> None:
    path = tmp_path / "evil.memeval"
    _evil(name, entries_of(packed.path), path)
    (level,) = verify_package(path)
    assert level.number == 1 and level.problems
    assert not (tmp_path / "evil.txt").exists()


def _hidden(name: str, whole: bytes) -> bytes:
    """A file in which another program would find other content."""
    directory = int.from_bytes(whole[-6:-2], "little")
    if name == "before":
        return b"junk" + whole
    if name == "behind":
        return whole + b"junk"
    if name == "between":
        place = (directory + 4).to_bytes(4, "little")
        return whole[:directory] + b"junk" + whole[directory:-6] + place + whole[-2:]

    at = {"name": 30, "size": 22, "checksum": 14, "encrypted": 6}[name]
    return whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]


@pytest.mark.parametrize(
    "name", ["before", "behind", "between", "name", "size", "checksum", "encrypted"]
)
def test_file_with_content_besides_its_entries_is_refused(
    name: str, packed: Packed, tmp_path: Path
) -> None:
    path = tmp_path / "hidden.memeval"
    path.write_bytes(_hidden(name, packed.path.read_bytes()))
    (level,) = verify_package(path)
    assert level.number == 1 and "contains more than its entries" in level.problems[0]


def test_a_zip_bomb_stops_at_its_listed_size(packed: Packed, tmp_path: Path) -> None:
    entries = entries_of(packed.path)
    entries["texts.jsonl"] = b"0" * 50_000_000  # 49 kB in the file
    path = tmp_path / "bomb.memeval"
    write_entries(path, entries)
    (level,) = verify_package(path)
    assert "does not have the size" in level.problems[0]


@pytest.mark.parametrize("content", [b"", b"PK", b"not a zip", bytes(range(256)) * 9])
def test_invalid_package_is_reported_without_a_traceback(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.memeval"
    path.write_bytes(content)
    assert run_command(["verify", str(path)]) == 1
    assert run_command(["verify", str(path), "--judge", "many"]) == 2
    assert run_command(["verify", "no.memeval"]) == 2
    assert run_command(["unpack", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


# Single edits with all affected digests recomputed: the strongest form of each edit.


def rewritten(entries: Entries, key: str) -> Entries:
    """The entries, with the digests of rows, run.json and manifest recomputed for their content."""
    begin = f"runs/{key}/"
    run = json.loads(entries[begin + "run.json"])
    for name in ("config.yaml", "records.jsonl"):
        run["files"][name] = hashlib.sha256(entries[begin + name]).hexdigest()

    records = [json.loads(line) for line in entries[begin + "records.jsonl"].splitlines()]
    for name, stage in (("answers", "answer"), ("verdicts", "judge")):
        number = -1
        seals: list[dict[str, str]] = []
        for line in entries[f"{begin}{name}.jsonl"].splitlines():
            row = json.loads(line)
            if "header" in row:
                number += 1
                seals.append({})
            else:
                seals[number][row["id"]] = row["seal"]

        for number, keys in enumerate(run["identity"]["keys"]):
            listed = "".join(
                f"{row['question_id']} {seals[number].get(row['question_id'], '-')}\n"
                for row in records
                if row["repeat"] == number
            )
            run["rows"][f"{name}/{keys[stage]}.jsonl"] = hashlib.sha256(listed.encode()).hexdigest()

    run.pop(SEAL)
    entries = {**entries, begin + "run.json": as_json(sealed(run), indent=1).encode()}
    manifest = json.loads(entries["manifest.json"])
    for name, entry in manifest["entries"].items():
        entry["sha256"] = hashlib.sha256(entries[name]).hexdigest()
        entry["size"] = len(entries[name])

    return {**entries, "manifest.json": (as_json(manifest, indent=1) + "\n").encode()}


def changed_line(content: bytes, number: int, change: Callable[[Any], None]) -> bytes:
    """The lines with one of them changed and, if it is a row, sealed again."""
    lines = content.splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    headers = [at for at, row in enumerate(rows) if "header" in row]
    at = [place for place in range(len(rows)) if place not in headers][number]
    row = rows[at]
    was_sealed = row.pop("seal", None) is not None
    change(row)
    if was_sealed:
        header = rows[max(place for place in headers if place < at)]["header"]
        lines[at] = sealed_line(header, row)
    else:
        lines[at] = json.dumps(row, ensure_ascii=False).encode() + b"\n"

    return b"".join(lines)


def other_label(row: dict[str, Any]) -> None:
    was = row["verdict"]["label"]
    row["verdict"]["label"] = "wrong" if was == "correct" else "correct"
    row["verdict"]["score"] = float(was != "correct")


def other_answer(row: dict[str, Any]) -> None:
    row["hypothesis"] = row["hypothesis"] + " or so"


def edits(entries: Entries, key: str, chance: random.Random) -> Iterator[tuple[str, Entries]]:
    """Single edits: the kind of each, and the entries after it."""
    begin = f"runs/{key}/"

    def edited(name: str, content: bytes) -> Entries:
        return {**entries, begin + name: content}

    rows = {
        name: sum(b'"header":' not in line[:12] for line in entries[begin + name].splitlines())
        for name in ("answers.jsonl", "verdicts.jsonl", "records.jsonl")
    }
    run = json.loads(entries[begin + "run.json"])
    while True:
        at = chance.randrange(rows["records.jsonl"])
        both = edited(
            "records.jsonl", changed_line(entries[begin + "records.jsonl"], at, other_label)
        )
        verdicts = changed_line(entries[begin + "verdicts.jsonl"], at, other_label)
        yield "verdict, in row and record", {**both, begin + "verdicts.jsonl": verdicts}
        yield "verdict, in the row", edited("verdicts.jsonl", verdicts)

        answers = changed_line(entries[begin + "answers.jsonl"], at, other_answer)
        records = changed_line(entries[begin + "records.jsonl"], at, other_answer)
        yield "answer, in the row", edited("answers.jsonl", answers)
        yield (
            "answer, in row and record",
            {
                **edited("records.jsonl", records),
                begin + "answers.jsonl": answers,
            },
        )

        def other_f1(row: dict[str, Any]) -> None:
            row["metrics"]["token_f1"] = 1.0 - row["metrics"]["token_f1"]

        yield (
            "figure of a record",
            edited("records.jsonl", changed_line(entries[begin + "records.jsonl"], at, other_f1)),
        )

        figure = chance.choice(sorted(n for n, v in run["metrics"].items() if v is not None))
        content = {**run, "metrics": {**run["metrics"], figure: run["metrics"][figure] + 0.01}}
        if not figure.startswith(("latency", "duration", "wall")):
            yield f"figure {figure}", edited("run.json", json.dumps(content).encode())

        setting = chance.choice(
            ["top_k", "seed", "judge", "system", "granularity", "llm", "prompt"]
        )
        params = {**run["params"], setting: "another"}
        yield (
            f"setting {setting}",
            edited("run.json", json.dumps({**run, "params": params}).encode()),
        )
        yaml = entries[begin + "config.yaml"].replace(b"top_k: 10", b"top_k: %d" % (at + 11))
        yield "setting in config.yaml", edited("config.yaml", yaml)
        yield "valid", edited("run.json", json.dumps({**run, "valid": not run["valid"]}).encode())

        name = chance.choice(["answers.jsonl", "verdicts.jsonl", "records.jsonl", "ingest.jsonl"])
        lines = entries[begin + name].splitlines(keepends=True)
        first = chance.randrange(1, len(lines) // 2 - 1)
        swapped = [*lines]
        swapped[first], swapped[first + 1] = lines[first + 1], lines[first]
        if name != "ingest.jsonl":  # memories have no order
            yield f"order of {name}", edited(name, b"".join(swapped))
        yield f"a row of {name} twice", edited(name, b"".join([*lines, lines[-1]]))
        yield f"a row of {name} less", edited(name, b"".join([*lines[:first], *lines[first + 1 :]]))

        environment = json.loads(entries["environment.json"])
        environment["runs"][key]["packages"]["numpy"] = str(at)
        yield "version", {**entries, "environment.json": json.dumps(environment).encode()}
        texts = entries["texts.jsonl"]
        more = b'{"id":"ffffffffffffffff","text":"more"}\n'
        yield "a text more", {**entries, "texts.jsonl": texts + more}
        line = chance.choice(texts.splitlines(keepends=True))
        yield (
            "a text",
            {**entries, "texts.jsonl": texts.replace(line, line.replace(b'"}', b'!"}', 1))},
        )


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_single_edits_are_found(home: Path, tmp_path: Path, count: int) -> None:
    small = memeval.run(
        "dataset=demo", "system=bm25", "dataset.limit_questions=1", "tracking=none", progress=False
    )
    key = small.key
    entries = entries_of(pack([small], tmp_path / "small.memeval").path)
    unchanged = (entries, rewritten(entries, key))
    path, levels = tmp_path / "edited.memeval", Counter[int]()
    silent = []
    for number, (kind, edited) in zip(
        range(count), edits(entries, key, random.Random(1)), strict=False
    ):
        # Half of the edits as they are, half with every digest recomputed.
        content = edited if number % 2 else rewritten(edited, key)
        if content in unchanged:
            continue  # such as a text line that lacks the replaced end

        write_entries(path, content)
        level = found_at(path)
        levels[level] += 1
        if not 1 <= level <= 3:
            silent.append(kind)

    assert silent == []
    assert levels[1] and levels[2]


TOLD: dict[str, tuple[str, Callable[[Any], object]]] = {
    "a member more": ("run.json", lambda run: run.update(more=1)),
    "a member less": ("run.json", lambda run: run["judge"].pop("model")),
    "a figure more": ("run.json", lambda run: run["metrics"].update(quality=0.9)),
    "a figure less": ("run.json", lambda run: run["metrics"].pop("accuracy_std")),
    "a setting less": ("run.json", lambda run: run["params"].pop("dataset.limit_questions")),
    "a setting more": ("run.json", lambda run: run["params"].update({"system.smart": True})),
    "no biased cut": ("run.json", lambda run: run["tags"].pop("biased_cut")),
    "a tag of imported answers": ("run.json", lambda run: run["tags"].update(imported="true")),
    "a category's name": ("run.json", lambda run: run["categories"][0].update(name="hard")),
    "a category twice": ("run.json", lambda run: run["categories"].append(run["categories"][0])),
    "a repeat's seed": ("run.json", lambda run: run["repeats"][0].update(seed=5)),
    "a status": ("run.json", lambda run: run.update(status="done")),
    "unknown status": ("run.json", lambda run: run.pop("status")),
    "an option's setting less": ("run.json", lambda run: run["params"].pop("embedder.width")),
    "a setting of the system less": ("run.json", lambda run: run["params"].pop("system.index")),
    "another name": ("run.json", lambda run: run.update(name="rag")),
    "another protocol": ("run.json", lambda run: run["tags"].update(protocol="demo")),
    "no determinism": ("run.json", lambda run: run["tags"].update(deterministic="false")),
    "an own prompt": ("run.json", lambda run: run["tags"].update(own_prompt="true")),
    "no duration": ("run.json", lambda run: run["metrics"].pop("duration_s")),
    "another version": ("run.json", lambda run: run["identity"].update(version="9.9")),
    "a stage more": ("run.json", lambda run: run["identity"]["inputs"]["stages"].update(x="run")),
    "a key more": ("run.json", lambda run: run["identity"]["keys"][0].update(x="1")),
    "a verdict on nothing": ("verdicts.jsonl", lambda row: row.pop("judged")),
    "a record's seed": ("records.jsonl", lambda row: row.update(seed=5)),
    "a record's top_k": ("records.jsonl", lambda row: row.update(top_k=5)),
    "a record's usage": ("records.jsonl", lambda row: row.update(usage=[])),
    "a record's time": ("records.jsonl", lambda row: row["times"].pop("answer_ms")),
    "a record's note": ("records.jsonl", lambda row: row.update(notes={"x": 1})),
    "a member of a record more": ("records.jsonl", lambda row: row["verdict"].update(more=1)),
    "a member of an answer more": ("answers.jsonl", lambda row: row.update(more=1)),
    "a member of a verdict more": ("verdicts.jsonl", lambda row: row["verdict"].update(more=1)),
    "a member of an ingest more": ("ingest.jsonl", lambda row: row.update(more=1)),
}
"""An entry of a run, and a single edit of it that leaves all figures unchanged."""


@pytest.mark.sampled(kept=12)
@pytest.mark.parametrize("name", TOLD)
def test_edit_that_changes_no_figure_is_found(
    name: str, runs: list[memeval.FinishedRun], packed: Packed, tmp_path: Path
) -> None:
    key = runs[0].key
    entries = entries_of(packed.path)
    entry, change = TOLD[name]
    place = f"runs/{key}/{entry}"
    if entry == "run.json":
        run = json.loads(entries[place])
        change(run)
        entries[place] = json.dumps(run).encode()
    else:
        entries[place] = changed_line(entries[place], 0, change)

    path = tmp_path / "edited.memeval"
    write_entries(path, rewritten(entries, key))
    assert found_at(path) in (1, 2)


def test_a_question_that_is_listed_twice_would_count_twice(packed: Packed, tmp_path: Path) -> None:
    """Its figures may be computed from these records, and its rows are those of one."""
    key, entries = packed.runs[0].key, entries_of(packed.path)
    first, *_ = entries[f"runs/{key}/records.jsonl"].splitlines(keepends=True)
    other = json.dumps({**json.loads(first), "repeat": 9}).encode() + b"\n"
    path = tmp_path / "edited.memeval"
    for line in (first, other):
        more = {f"runs/{key}/records.jsonl": entries[f"runs/{key}/records.jsonl"] + line}
        write_entries(path, rewritten({**entries, **more}, key))
        problems = next(verify_package(path)).problems
        assert f"{key}: answers.jsonl does not contain one row per record" in problems


@pytest.mark.slow
def test_missing_note_is_found(home: Path, tmp_path: Path) -> None:
    run = memeval.run(
        "dataset=demo_lifecycle",
        "system=bm25",
        "dataset.limit_cases=1",
        "tracking=none",
        progress=False,
    )
    entries = entries_of(pack([run], tmp_path / "one.memeval").path)
    place = f"runs/{run.key}/run.json"
    content = json.loads(entries[place])
    content["notes"] = [note for note in content["notes"] if "deleted facts" not in note["text"]]
    assert len(content["notes"]) < len(run.summary.notes)
    entries[place] = json.dumps(content).encode()

    path = tmp_path / "edited.memeval"
    write_entries(path, rewritten(entries, run.key))
    assert "a note is missing" in next(verify_package(path)).problems[0]


def test_verdicts_that_the_rule_would_not_give_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All figures follow from the rows: only the rule itself tells. One call of it fails."""
    failures = ["down"]

    async def generous(self: KeywordJudge, _: Any, answer: str, *__: Any, **___: Any) -> Verdict:
        if failures:
            raise ValueError(failures.pop())

        return self.verdict(answer, right=True, score=1.0)

    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = ("dataset=demo", "system=bm25", "dataset.limit_questions=1", "tracking=none")
    with monkeypatch.context() as patch:
        patch.setattr(KeywordJudge, "judge", generous)
        run = memeval.run(*words, progress=False)

    path = pack([run], tmp_path / "generous.memeval").path
    assert found_at(path) == 3
    (level,) = [level for level in verify_package(path) if level.name == "verdicts"]
    assert level.did == "9 verdicts judged again by a rule"


@pytest.mark.usefixtures("home")
def test_edited_timeline_and_operation_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_calls = Mock(wraps=operations_done)
    monkeypatch.setattr("memeval.packages.data.operations_done", count_calls)
    few = ("dataset=demo_lifecycle", "dataset.limit_cases=1", "tracking=none")
    run = memeval.run(*few, "system=bm25", progress=False)
    entries = entries_of(pack([run], tmp_path / "one.memeval").path)
    path = tmp_path / "edited.memeval"

    def is_found(name: str, change: Callable[[Any], None]) -> bool:
        place = f"runs/{run.key}/{name}"
        edited = {**entries, place: changed_line(entries[place], 0, change)}
        write_entries(path, rewritten(edited, run.key))
        return found_at(path) == 2

    assert is_found("records.jsonl", lambda row: row["timeline"][0].update(kind="consolidate"))
    count_calls.assert_called_once()  # per case, not per question
    assert is_found("records.jsonl", lambda row: row["timeline"][-1].update(done="3 items"))
    assert is_found("ingest.jsonl", lambda row: row["operations"].extend(row["operations"] * 9))


@pytest.mark.parametrize(
    "change",
    [
        lambda environment, _: environment.update(more=1),
        lambda environment, _: environment["runs"].update(more=1),
        lambda environment, _: environment["packed_on"].update(more=1),
        lambda environment, _: [run.update(models=[1]) for run in environment["runs"].values()],
        lambda _, manifest: manifest.update(code="0" * 16),
        lambda _, manifest: manifest.update(supersedes="this"),
        lambda _, manifest: manifest["replaced"].update(more=1),
        lambda _, manifest: manifest["data"][0].update(licence="mine"),
        lambda _, manifest: manifest["data"][0].update(texts=False),
    ],
)
def test_edited_environment_is_found(
    change: Callable[[Any, Any], object],
    runs: list[memeval.FinishedRun],
    packed: Packed,
    tmp_path: Path,
) -> None:
    entries = entries_of(packed.path)
    environment, manifest = (
        json.loads(entries[name]) for name in ("environment.json", "manifest.json")
    )
    change(environment, manifest)
    entries["environment.json"] = json.dumps(environment).encode()
    entries["manifest.json"] = (as_json(manifest, indent=1) + "\n").encode()
    path = tmp_path / "edited.memeval"
    write_entries(path, rewritten(entries, runs[0].key))
    assert found_at(path) == 1


def use_prices(monkeypatch: pytest.MonkeyPatch, folder: Path, models: str) -> Path:
    """Sets a price file of these models, which is returned, and a key."""
    prices = folder / "prices.yaml"
    prices.write_text(f"date: 2026-01-31\nmodels: {{{models}}}\n")
    monkeypatch.setenv("MEMEVAL_PRICES", str(prices))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return prices


def test_run_with_a_model_verifies_with_its_prices_and_the_local_endpoint(
    monkeypatch: pytest.MonkeyPatch,
    home: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """For a run with a model, dollars are recomputed from the packaged prices, the host is
    replaced, and levels 3 and 4 call the local endpoint. Without its prices, only its costs are not
    compared, and it cannot be packed.
    """
    prices = use_prices(monkeypatch, tmp_path, "gpt-x: {input: 0.4, output: 1.6}")
    with ScriptedEndpoint() as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        run = memeval.run(
            "dataset=demo", "system=bm25", "llm=openai", "llm.model=gpt-x", "judge=llm",
            "dataset.limit_cases=2", "dataset.limit_questions=2", "tracking=none",
            "context_tokens=300", "dataset.canaries=1", progress=False,
        )  # fmt: skip
        found = memeval.run(
            "dataset=demo", "system=bm25", "stages=retrieve",
            "dataset.limit_cases=2", "dataset.limit_questions=2", "tracking=none", progress=False,
        )  # fmt: skip
        path = pack([run, found], tmp_path / "priced.memeval").path
        monkeypatch.delenv("MEMEVAL_PRICES")
        capsys.readouterr()
        assert run_command(["verify", run.key]) == 0
        computes = "not compared: costs: the prices have changed; to compute costs again"
        assert computes in capsys.readouterr().out
        with pytest.raises(UserError, match="can't be packed: costs"):
            pack([run], tmp_path / "again.memeval")

        levels = {level.name: level for level in verify_package(path)}
        (why,) = [line for line in levels["verdicts"].unchecked if line.startswith(run.key)]
        assert why.startswith(f"{run.key}: a model judged (llm")
        assert why.endswith("): to repeat some verdicts, use --judge N")

        before = len(memeval.load_runs())
        checks = Checks(judge=partial(judge_again, count=2), answer=partial(answer_again, count=1))
        levels = {one.name: one for one in verify_package(path, checks)}
        assert [level.problems for level in levels.values()] == [[]] * 6
        assert "2 of 2 verdicts have the same verdict again" in levels["verdicts"].did
        # The retrieve-only run does not end the check, has no verdicts that lack a check, and no
        # call is proposed for it.
        assert not levels["verdicts"].unchecked and mark_of(levels["verdicts"]).state == "passed"
        assert "1 of 1 answers have the same verdict again" in levels["answers"].did
        assert len(memeval.load_runs()) == before  # the checks run in their own home

        # Unpacked, its costs are comparable under the same prices, in whichever file they are.
        (unpacked,) = [one for one in unpack(path).runs if one.summary.judge is not None]
        assert has_other_prices(unpacked.summary.tags)
        (refusal,) = compare_runs([run, unpacked], metric_named("cost")).refusals
        (text,) = [note.text for note in refusal.notes if "its package" in note.text]
        models = text.partition("into your price file:  ")[2]
        own = tmp_path / "own.yaml"
        own.write_text(f"date: 2026-02-01\n{models}\n")
        monkeypatch.setenv("MEMEVAL_PRICES", str(own))
        assert not has_other_prices(unpacked.summary.tags)
        monkeypatch.setenv("MEMEVAL_PRICES", str(prices))
        assert not compare_runs([run, unpacked], metric_named("cost")).refusals
        monkeypatch.delenv("MEMEVAL_PRICES")

    entries = entries_of(path)
    content = b"\n".join(entries.values()).decode()
    assert KEY not in content and "127.0.0.1" not in content and "://host-" in content
    environment = json.loads(entries["environment.json"])
    for model in environment["runs"][run.key]["models"]:
        assert model["usd_per_million"]["output"] == 1.6
        model["usd_per_million"]["output"] = 0.1

    edited = {**entries, "environment.json": json.dumps(environment).encode()}
    write_entries(path, rewritten(edited, run.key))
    assert found_at(path) == 2


def test_one_model_may_have_other_prices_at_another_provider(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    """Each run's dollars are recomputed from the prices of its provider; two prices of one model at
    one provider are an edit.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    runs = []
    with ScriptedEndpoint() as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        for number, provider in enumerate(("groq", "openrouter")):
            monkeypatch.setattr("memeval.llm.openai.provider_of", lambda _, name=provider: name)
            run = memeval.run(
                "dataset=demo", "system=bm25", "llm=openai", "llm.model=Qwen/Qwen3-32B",
                "judge=llm", "dataset.limit_cases=1", "dataset.limit_questions=1",
                "tracking=none", f"seed={number}", progress=False,
            )  # fmt: skip
            runs.append(run)

    path = pack(runs, tmp_path / "providers.memeval").path
    assert found_at(path) == 0

    entries = entries_of(path)
    environment = json.loads(entries["environment.json"])
    models = environment["runs"][runs[0].key]["models"]
    prices = {run["models"][0]["usd_per_million"]["input"] for run in environment["runs"].values()}
    assert len(prices) == len(models) == 2  # the answers' model, and the judge's
    models[0]["usd_per_million"]["input"] = 0.0
    edited = {**entries, "environment.json": json.dumps(environment).encode()}
    write_entries(path, rewritten(edited, runs[0].key))
    assert "lists two prices of Qwen/Qwen3-32B" in next(verify_package(path)).problems[0]


@pytest.mark.parametrize("model", ["/private/My Models/m.gguf", "/q4"])
def test_paths_that_settings_or_replies_name_as_a_model_are_replaced(
    model: str, monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    """The note that names them, the run's name and the prices are still those of its rows."""
    use_prices(monkeypatch, tmp_path, f"{model}: {{input: 0.4, output: 1.6}}")
    named = cycle([model, "/private/My Models/other's.gguf"])
    with ScriptedEndpoint(edit=lambda payload: payload.update(model=next(named))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = memeval.run(
            "dataset=demo", "system=bm25", "llm=openai", f"llm.model='{model}'",
            "judge=exact_match", "dataset.limit_cases=1", "dataset.limit_questions=2",
            "tracking=none", progress=False,
        )  # fmt: skip

    path = pack([run], tmp_path / "named.memeval").path
    entries = entries_of(path)
    content = b"\n".join(entries.values()).decode().replace(f"[path]{model}", "")
    assert "/private" not in content
    (model_facts,) = json.loads(entries["environment.json"])["runs"][run.key]["models"]
    assert model_facts["model"] == f"[path]/{Path(model).name}"
    assert model_facts["reported"] == ["[path]/other's.gguf"]
    assert model_facts["usd_per_million"]["input"] == 0.4
    assert [level.problems for level in verify_package(path)] == [[]] * 6


def test_two_models_of_one_name_with_different_prices_are_not_packed(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    use_prices(monkeypatch, tmp_path, "/a/m.gguf: 0, /b/m.gguf: {input: 1, output: 2}")
    with ScriptedEndpoint() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        run = memeval.run(
            "dataset=demo", "system=bm25", "llm=openai", "llm.model=/a/m.gguf", "judge=llm",
            "llm.judge.model=/b/m.gguf", "dataset.limit_cases=1", "dataset.limit_questions=1",
            "tracking=none", progress=False,
        )  # fmt: skip

    with pytest.raises(UserError, match=r"two models with .* are both \[path\]/m\.gguf without"):
        pack([run], tmp_path / "two.memeval")


def test_one_run_that_cannot_be_judged_again_does_not_end_the_check(
    monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    """The answers of a model with tools are judged again; a run whose requests need the author's
    headers is reported, and the other runs and levels are still checked.
    """
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    small = ["dataset=demo", "dataset.limit_cases=2", "dataset.limit_questions=2"]
    asked = ["system=bm25", "llm=openai", "llm.model=gpt-x", "judge=llm", "tracking=none"]
    with ScriptedEndpoint() as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        headed = memeval.run(*small, *asked, "llm.headers={x-key: GATEWAY_KEY}", progress=False)
        with_tools = memeval.run(*small, *asked, "reader=tools", progress=False)
        path = pack([headed, with_tools], tmp_path / "both.memeval").path
        checks = Checks(judge=partial(judge_again, count=2), answer=partial(answer_again, count=1))
        levels = {one.name: one for one in verify_package(path, checks)}

    assert [level.problems for level in levels.values()] == [[]] * 6
    assert f"{with_tools.key}: 2 of 2 verdicts" in levels["verdicts"].did
    assert f"{with_tools.key}: 1 of 1 answers" in levels["answers"].did
    for name in ("verdicts", "answers"):
        (unchecked,) = levels[name].unchecked
        assert unchecked.startswith(f"{headed.key}: its requests need the author's own headers")


def test_a_system_with_an_address_in_its_settings_is_not_answered_under_others(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedEndpoint() as endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
        run = memeval.run(
            "dataset=demo", "system=working_memory", "llm=openai", "llm.model=gpt-x", "judge=llm",
            'system.working_memory.template="# See http://wiki.corp/form\\n- Names:"',
            "dataset.limit_cases=1", "dataset.limit_questions=1", "tracking=none", progress=False,
        )  # fmt: skip
        with pytest.raises(UserError, match="its system's settings contain a URL"):
            answer_again(run, run.read_records(), 1)


@pytest.mark.parametrize("spelling", ['"{}"', "\n    {}"])
def test_the_key_is_not_sent_to_an_address_of_a_package(
    spelling: str, monkeypatch: pytest.MonkeyPatch, home: Path, tmp_path: Path
) -> None:
    """However YAML spells the address: with escapes, or on a separate line."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedEndpoint() as own, ScriptedEndpoint() as theirs:
        monkeypatch.setenv("OPENAI_BASE_URL", own.base_url)
        run = memeval.run(
            "dataset=demo", "system=bm25", "llm=openai", "llm.model=gpt-x", "judge=llm",
            "dataset.limit_cases=1", "dataset.limit_questions=1", "tracking=none", progress=False,
        )  # fmt: skip
        address = theirs.base_url
        if spelling.startswith('"'):
            address = address.replace("/", "\\x2F")

        folder = shutil.copytree(run.folder, tmp_path / run.key)
        config = (folder / "config.yaml").read_text(encoding="utf-8")
        line = f"base_url: {own.base_url}"
        assert line in config
        edited = config.replace(line, f"base_url: {spelling.format(address)}")
        (folder / "config.yaml").write_text(edited, encoding="utf-8")
        before, theirs_run = own.count(), memeval.api.FinishedRun(folder, run.summary)
        answer_again(theirs_run, run.read_records(), 1)
        assert own.count() > before
        assert theirs.count() == 0


@pytest.mark.parametrize(
    "old, new, message",
    [
        (b"max_tokens: 512", b"max_tokens: ${oc.env:HOME}", "interpolation"),
        (b"  path: null", b"  path: /etc/passwd", "the author's own data file"),
        (b"  name: bm25", b"  name: bm25\n  class: evil:Evil", "the author's own class"),
    ],
)
def test_files_and_classes_named_by_a_package_are_not_used(
    old: bytes, new: bytes, message: str, packed: Packed, runs: list[memeval.FinishedRun],
    tmp_path: Path,
) -> None:  # fmt: skip
    entries, name = entries_of(packed.path), f"runs/{runs[0].key}/config.yaml"
    assert old in entries[name]
    edited = {**entries, name: entries[name].replace(old, new, 1)}
    path = tmp_path / "evil.memeval"
    write_entries(path, rewritten(edited, runs[0].key))
    assert found_at(path) == 1
    if message == "interpolation":
        assert message in next(verify_package(path)).problems[0]
    else:
        with open_package(path) as package, pytest.raises(UserError, match=message):
            data_of(package.runs[[run.key for run in package.runs].index(runs[0].key)])


def test_a_signature_is_made_and_checked(
    runs: list[memeval.FinishedRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")

    for name in ("own", "other"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(command, check=True)
        public = (tmp_path / f"{name}.pub").read_text()
        (tmp_path / f"{name}.signers").write_text(f"{name}@example.org {public}")

    path = tmp_path / "signed.memeval"
    pack(runs, path, key_file=tmp_path / "own")
    for signers, status, message in (
        ([], 0, "signed by an unknown key"),
        (["--allowed-signers", str(tmp_path / "own.signers")], 0, "signed by own@example.org"),
        (["--allowed-signers", str(tmp_path / "other.signers")], 1, "5 who"),
    ):
        assert run_command(["verify", str(path), *signers]) == status
        assert message in capsys.readouterr().out

    entries = entries_of(path)
    manifest = json.loads(entries["manifest.json"])
    manifest["who"] = "somebody else"
    entries["manifest.json"] = (as_json(manifest, indent=1) + "\n").encode()
    write_entries(path, entries)
    assert found_at(path) == 5


@pytest.mark.parametrize("command", ["verify", "unpack", "board"])
@pytest.mark.parametrize("signers", ["missing", "."])
def test_signers_that_are_not_in_a_file_are_refused_for_an_unsigned_package_too(
    command: str, signers: str, packed: Packed, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [command, str(packed.path), "--allowed-signers", signers]
    if command == "board":
        words[1:2] = [str(packed.path.parent), "-o", str(packed.path.parent / "site")]

    assert run_command(words) == 2
    captured = capsys.readouterr()
    assert f"{command}: argument --allowed-signers: there is no file '{signers}'" in captured.err
    assert not captured.out


def test_unpack_refuses_an_unsigned_package_where_signers_are_listed(
    packed: Packed, tmp_path: Path
) -> None:
    """Whoever edits a package can take its signature out."""
    with pytest.raises(UserError, match=r"not signed \(the tests\), but --allowed-signers is set"):
        unpack(packed.path, allowed_signers=tmp_path / "own.signers")


def test_unpacked_runs_are_kept_apart_from_own_runs(
    packed: Packed,
    runs: list[memeval.FinishedRun],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Into the home that they come from: the hardest case, as all keys exist there already.
    before = sorted(path.name for path in (runs[0].folder.parent).iterdir())
    for _ in range(2):
        assert run_command(["unpack", str(packed.path)]) == 0
    assert sorted(path.name for path in (runs[0].folder.parent).iterdir()) == before
    known = memeval.load_runs()
    taken = [run for run in known if run.summary.tags.get("package") == packed.id]
    assert len({run.key for run in known}) == len(known) and len(taken) == 2
    for run in taken:
        (own,) = [one for one in runs if one.key == run.summary.tags["package_run"]]
        assert run.key != own.key and run.metrics == own.metrics
        assert run.context("demo-1/q0") == own.context("demo-1/q0")

    capsys.readouterr()
    assert run_command(["verify"]) == 0
    output = capsys.readouterr().out
    assert all(f"{run.key}  {run.summary.name}: sound" in output for run in taken)
    assert run_command(["verify", *(run.key for run in taken)]) == 0

    capsys.readouterr()
    assert run_command(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "package" in lines[0]
    assert sum(packed.id[:8] in line for line in lines) == 2, "only those that came in one"

    # An unpacked run cannot be packed as one's own.
    assert run_command(["pack", taken[0].key, "-o", str(tmp_path / "x.memeval")]) == 2
    assert "came from a package" in capsys.readouterr().err
    assert run_command(["pack", "system=no_memory", "-o", str(tmp_path / "x.memeval")]) == 0
    output = capsys.readouterr().out
    assert "left out: 1 run that came from packages\n" in output
    assert not any(run.key in output for run in taken)
    shutil.rmtree(taken[0].folder.parents[2])
    capsys.readouterr()


@pytest.mark.parametrize(
    "cut",
    [
        ("granularity=turn", "granularity.speakers=false"),
        ("granularity=chunk", "granularity.size=60", "granularity.overlap=8"),
    ],
)
def test_withheld_texts_are_restored_with_the_runs_chunking(
    cut: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = memeval.run(
        "dataset=demo", "system=bm25", "dataset.limit_questions=2", *cut,
        "tracking=none", progress=False,
    )  # fmt: skip
    terms = structs.replace(terms_of(run.summary), allows_texts=False)
    monkeypatch.setattr("memeval.packages.write.terms_of", lambda _: terms)
    monkeypatch.setattr("memeval.packages.levels.terms_of", lambda _: terms)

    path = pack([run], tmp_path / "withheld.memeval").path
    with monkeypatch.context() as large:
        large.delattr("memeval.results.run.Run.read_records")  # they may not fit in memory
        unpacked = unpack(path)

    (taken,) = unpacked.runs
    assert unpacked.restored == 1
    assert run.context("demo-1/q0") is not None
    assert taken.context("demo-1/q0") == run.context("demo-1/q0")
    shutil.rmtree(unpacked.folder)


class LongAgo(datetime):
    """A clock that does not advance."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> LongAgo:
        return cls(2020, 1, 1, tzinfo=tz)


@pytest.mark.parametrize("command", ["register", "pack", "table"])
def test_output_file_in_a_missing_folder_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("dataset=demo", "-o", str(tmp_path / "missing" / "file.memeval"))
    assert run_command([command, *words]) == 2
    output = capsys.readouterr().err
    assert f"the folder {tmp_path / 'missing'} does not exist\n  make it:  mkdir -p" in output
    assert "continues" not in output


def test_registering_a_system_twice_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dataset=demo", "--systems", "bm25,bm25", "-o", str(tmp_path / "registration.json")]
    assert run_command(["register", *words]) == 2
    assert "names a system twice" in capsys.readouterr().err


def test_registering_the_accuracy_of_a_retrieval_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["dataset=demo", "stages=retrieve", "-o", str(tmp_path / "registration.json")]
    assert run_command(["register", *words]) == 2
    assert "name a metric of the retrieval:  --metric recall_at_10" in capsys.readouterr().err
    assert run_command(["register", *words, "--metric", "recall_at_10"]) == 0


def test_answers_of_unregistered_runs_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run under another judge reuses answers, which somebody may have seen already."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = ["dataset=demo", "dataset.limit_questions=2", "tracking=none"]
    first = memeval.run(*words, "system=bm25", progress=False)
    words.append("judge=exact_match")
    file, path = tmp_path / "registration.json", tmp_path / "own.memeval"
    assert run_command(["register", *words, "--systems", "bm25,no_memory", "-o", str(file)]) == 0
    noted = capsys.readouterr().err
    runs = [memeval.run(*words, f"system={name}", progress=False) for name in ("bm25", "no_memory")]
    assert [f"{run.key} will reuse stored answers" in noted for run in runs] == [True, False]

    keys = [run.key for run in runs]
    assert run_command(["pack", *keys, "--register", str(file), "-o", str(path)]) == 0
    *_, registered = verify_package(path)
    assert registered.problems == [
        f"{keys[0]}: {len(runs[0].read_records())} answers from unregistered runs: {first.key}"
    ]
    assert registered.unchecked == []

    # A repetition with `--fresh` may have been made because of the first results.
    memeval.run(*words, "system=no_memory", "fresh=answer", progress=False)
    path.unlink()
    assert run_command(["pack", *keys, "--register", str(file), "-o", str(path)]) == 0
    *_, registered = verify_package(path)
    [note] = registered.unchecked
    said_of_first = re.fullmatch(rf"{keys[1]}: (\d+) earlier results? replaced by .*", note)
    assert said_of_first is not None
    # An answer that took the same time is the same row.
    assert 0 < int(said_of_first[1]) <= len(runs[1].read_records())


def test_a_run_that_is_left_out_is_counted_whatever_its_runtime_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = ["dataset=demo_personamem", "dataset.limit_questions=2", "system=bm25", "tracking=none"]
    file, path = tmp_path / "registration.json", tmp_path / "own.memeval"
    options = ["--systems", "bm25", "-o", str(file)]
    assert run_command(["register", *words[:2], words[3], *options]) == 0
    run = memeval.run(*words, progress=False)
    # A setting that changes no result makes no other run of it.
    memeval.run(*words, "seed=7", "dataset.allow_unpinned=true", progress=False)

    assert run_command(["pack", run.key, "--register", str(file), "-o", str(path)]) == 0
    with open_package(path) as package:
        assert package.register is not None
        (note,) = package.register["left_out"]
        assert note.startswith("1 finished run of the same settings")


def test_second_implementation_compares_the_categories_of_the_headline(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a memory, all questions of category 5 are right."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    words = ["dataset=demo", "dataset.categories=[4,5]", "dataset.sample=40"]
    runs = [
        memeval.run(*words, f"system={system}", "tracking=none", progress=False)
        for system in ("bm25", "no_memory")
    ]
    levels = {
        level.name: level for level in verify_package(pack(runs, tmp_path / "own.memeval").path)
    }
    assert "2 runs and 1 comparison" in levels["figures"].did
    assert not any(level.problems for level in levels.values())


def test_first_commit_that_contains_a_registration_is_packed(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        return subprocess.check_output(["git", "-C", str(tmp_path), *who, *words], text=True)

    file = tmp_path / "registration.json"
    words = ["register", "dataset=demo", "tracking=none", "--systems", "bm25"]
    assert run_command([*words, "-o", str(file)]) == 0
    assert entry_of_package(file, [], [])["commit"] is None

    git("init", "-q")
    for name in ("registration.json", "later"):
        (tmp_path / name).touch()
        git("add", name)
        git("commit", "-qm", name)

    commit, date = git("log", "--reverse", "--format=%H %cI").split()[:2]
    assert entry_of_package(file, [], [])["commit"] == {"commit": commit, "date": date}


def test_registration_is_compared_with_the_packed_runs(
    runs: list[memeval.FinishedRun],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "registration.json"
    words = ["dataset=demo", "dataset.limit_questions=3", "num_runs=2", "tracking=none"]
    options = ["--systems", "no_memory,bm25", "--direction", "higher", "--smallest", "2"]
    options += ["--metric", "recall@10"]
    assert run_command(["register", *words, *options, "-o", str(file)]) == 0
    # It is never overwritten.
    assert run_command(["register", *words, "-o", str(file)]) == 2
    assert json.loads(file.read_bytes())["metric"] == "recall_at_10"
    keys = [run.key for run in runs]
    assert all(f"{key} has already run here" in capsys.readouterr().err for key in keys[:1])

    late = tmp_path / "late.memeval"
    assert run_command(["pack", *keys, "--register", str(file), "-o", str(late)]) == 0
    assert run_command(["verify", str(late)]) == 1
    assert "it began before it was registered" in capsys.readouterr().out

    # The files of earlier versions have only the day.
    entries = entries_of(late)
    register = json.loads(entries["register.json"])
    register["said"].pop(SEAL)
    register["said"] = sealed({**register["said"], "said_on": "2999-01-01"})
    entries["register.json"] = json.dumps(register).encode()
    write_entries(late, rewritten(entries, keys[0]))
    *_, registered = verify_package(late)
    assert "began before it was registered, on 2999-01-01" in registered.problems[0]

    file.unlink()
    monkeypatch.setattr("memeval.packages.register.datetime", LongAgo)
    assert run_command(["register", *words, *options, "-o", str(file)]) == 0
    for chosen, status, printed in (
        (keys, 0, "6 registered beforehand"),
        (keys[:1], 1, "was registered, but is not in the package"),
    ):
        path = tmp_path / f"{len(chosen)}.memeval"
        assert run_command(["pack", *chosen, "--register", str(file), "-o", str(path)]) == 0
        assert run_command(["verify", str(path)]) == status
        assert printed in capsys.readouterr().out

    with open_package(path) as package:
        assert package.register is not None
        assert package.register["said"]["direction"] == "higher"

    if shutil.which("ssh-keygen") is not None:
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
        subprocess.run(command, check=True)
        note = ["--sign", str(tmp_path / "key"), "-o", str(tmp_path / "note.json")]
        assert run_command(["register", *words, *options, *note[2:], "--sign", __file__]) == 2
        assert not (tmp_path / "note.json").exists(), "it could not be registered again"
        assert run_command(["register", *words, *options, *note]) == 0
        path = tmp_path / "note.memeval"
        noted = ["--register", str(tmp_path / "note.json"), "-o", str(path)]
        assert run_command(["pack", *keys, *noted]) == 0
        assert run_command(["verify", str(path)]) == 0
        date = json.loads((tmp_path / "note.json").read_text())["said_on"]
        signed = f"beforehand, signed by an unknown key, dated {date}\n"
        assert signed in capsys.readouterr().out
        (tmp_path / "board").mkdir()
        shutil.copy(path, tmp_path / "board")
        (shown,) = collect(tmp_path / "board").packages
        assert shown.said == "registered beforehand, in a signed file of 2020-01-01"

        # Another statement, sealed again: the signature does not match it.
        entries = entries_of(path)
        register = json.loads(entries["register.json"])
        register["said"].pop(SEAL)
        register["said"] = sealed({**register["said"], "smallest_difference": 0.0})
        entries["register.json"] = json.dumps(register).encode()
        write_entries(path, rewritten(entries, keys[0]))
        assert found_at(path) == 6

    file.write_text(file.read_text().replace("higher", "lower"))
    assert run_command(["pack", *keys, "--register", str(file), "-o", str(path)]) == 2


def test_package_is_verified_on_a_file_system_without_hard_links(
    packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: Path, target: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), file)

    monkeypatch.setattr(os, "link", refuse)
    assert not any(level.problems for level in verify_package(packed.path))


def test_a_full_disk_is_not_a_problem_of_the_package(
    packed: Packed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, flags: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with monkeypatch.context() as patch:
        patch.setattr("memeval.packages.read.open_private", refuse)
        with pytest.raises(StorageError, match="can't be written: No space left on device"):
            list(verify_package(packed.path))

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(StorageError, match="the temporary folder can't be written: No such file"):
        list(verify_package(packed.path))
