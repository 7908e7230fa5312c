"""Faults of custom systems become a status of their questions, a note or one clear line: never a
traceback, never a lost row.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import faulty
import pytest
from conftest_pipeline import environment
from lone_runs import run_cell

from memeval.config.schema import RunConfig
from memeval.errors import UserError, WorldError
from memeval.pipeline.open.opening import open_cell
from memeval.report.flags import flags
from memeval.report.sentences import run_sentences
from memeval.results import RunSummary
from memeval.runs.compose.config import compose_config

HERE = Path(__file__).parent
ASKED = 2
WORDS = [
    "system=no_memory",
    "dataset=demo",
    "dataset.limit_cases=1",
    f"dataset.limit_questions={ASKED}",
    "tracking=none",
]
TIMEOUT = "system.timeout_s=0.3"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    handler, folder = signal.getsignal(signal.SIGINT), Path.cwd()
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    yield tmp_path
    assert signal.getsignal(signal.SIGINT) is handler
    assert Path.cwd() == folder
    assert os.environ["MEMEVAL_HOME"] == str(tmp_path)


@cache
def composed(*words: str) -> RunConfig:
    """The config of a sound system, cached: composing takes longer than a run of a faulty
    system.
    """
    return compose_config([*WORDS, "system.class=faulty:Sound", *words])


def played(name: str, *words: str) -> tuple[RunSummary, list[dict[str, Any]]]:
    """Runs the demo set's first case with a faulty system; returns its summary and its records."""
    sound = composed(*words)
    config = replace(sound, system={**sound.system, "class": f"faulty:{name}"})
    cell = open_cell(config, "")
    summary = run_cell(cell)
    lines = (cell.folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return summary, [json.loads(line) for line in lines]


def check(
    name: str, method: str, outcome: str, summary: RunSummary, rows: list[dict[str, Any]]
) -> None:
    assert [row["status"] for row in rows] == [outcome] * ASKED, rows[0].get("error")
    if outcome != "ok":
        assert f" in {method}: " in rows[0]["error"] and "\n" not in rows[0]["error"]
        error = rows[0]["error"]
        assert error.startswith(("faulty.py", "numpy", "threading", "warnings")), error
    assert all(note.text.isprintable() for note in summary.notes)


@pytest.mark.sampled(kept=15)
@pytest.mark.parametrize("name", faulty.METHODS)
def test_faulty_method_becomes_a_status_or_a_note(name: str) -> None:
    method, _, outcome = faulty.METHODS[name]
    words = [TIMEOUT] if "Hangs" in name else []
    words += ["compression_turn=2"] if method == "compress" else []
    summary, rows = played(name, *words)
    check(name, {"in_thread": "ingest"}.get(method, method), outcome, summary, rows)
    if method in ("save", "close"):
        assert any(f" in {method}: " in note.text for note in summary.notes)


@pytest.mark.sampled(kept=20)
@pytest.mark.parametrize("name", faulty.ANSWERS)
def test_invalid_answer_becomes_a_status(name: str) -> None:
    outcome = faulty.ANSWERS[name][1]
    summary, rows = played(f"Answers{name}")
    if outcome == "ok" or name in ("TextEmpty", "TextBlank"):
        assert [row["status"] for row in rows] == [outcome] * ASKED, rows[0].get("error")
        assert len(json.dumps(rows)) < 100_000
    else:
        check(name, "answer", outcome, summary, rows)


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("name", faulty.LOOP)
def test_system_that_blocks_the_event_loop_is_interrupted(name: str) -> None:
    _, rows = played(name, TIMEOUT)
    assert [row["status"] for row in rows] == [faulty.LOOP[name]] * ASKED
    if faulty.LOOP[name] != "ok":
        assert "did not finish within 0.3 s (system.timeout_s)" in rows[0]["error"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("ChangesFolder", "the working directory"),
        ("ChangesHome", "memeval's environment variables"),
        ("DeletesHome", "memeval's environment variables"),
        ("SwapsVariables", "memeval's environment variables"),
        ("ChangesHandlers", "signal handlers"),
        ("DropsStdout", "standard streams"),
        ("Sound", ""),
    ],
)
def test_changes_to_the_process_are_noted_once_and_undone(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNRELATED", "1")
    before = sys.stdout
    summary, _ = played(name)
    notes = [note.text for note in summary.notes if "was undone" in note.text]
    assert [f" changed {part}:" in note for note in notes] == ([True] if part else [])
    assert sys.stdout is before


def test_a_memory_that_fails_to_load_is_built_again() -> None:
    played("LoadRaisesSystemExit")
    _, rows = played("LoadRaisesSystemExit", f"dataset.limit_questions={ASKED + 1}")
    assert {row["status"] for row in rows} == {"ok"}


def test_failed_questions_are_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, rows = played("AnswersNone")
    assert {row["status"] for row in rows} == {"answer_failed"}
    monkeypatch.setattr(faulty.AnswersNone, "answer", faulty.Sound.answer)  # type: ignore[attr-defined]
    _, rows = played("AnswersNone")
    assert {row["status"] for row in rows} == {"ok"}


def test_failed_answers_have_no_retrieval_time() -> None:
    summary, rows = played("AnswersNone")
    assert {row["status"] for row in rows} == {"answer_failed"}
    assert not [name for name in summary.metrics if name.startswith("latency_ms/retrieval")]


def test_system_that_answers_itself_has_no_note_about_the_reader() -> None:
    summary, _ = played("Sound")
    assert not any("extractive reader" in note.text for note in summary.notes)


def test_repeats_of_a_custom_class_are_not_said_to_agree_by_construction() -> None:
    summary, _ = played("Recalls")
    (note,) = [note.text for note in summary.notes if "extractive reader" in note.text]
    assert "by construction" not in note


def test_recall_of_a_part_of_the_questions_is_flagged() -> None:
    for name, flagged in (("Recalls", []), ("RanksSome", ["ranks part"])):
        summary, rows = played(name)
        unknown = [row for row in rows if row["evidence_ranks"] is None]
        assert len(unknown) == len(flagged)
        assert set(flagged) == {"ranks part"}.intersection(flags(summary))
        sentences = " ".join(run_sentences(summary))
        assert ("of the evidence is among" in sentences) == (not flagged)


def test_numpy_types_and_odd_notes_are_stored_in_plain_types() -> None:
    _, rows = played("AnswersTokensNumpy")
    assert rows[0]["context_tokens"] == 12
    _, rows = played("AnswersNotesNumpy")
    assert rows[0]["notes"] == {"a": 1, "b": 0.5, "c": [0, 1, 2], "d": True}
    _, rows = played("AnswersNotesSets")
    assert rows[0]["notes"] == {"some": [1, 2, 3], "frozen": ["a"], "colour": "red", "path": "/x"}
    _, rows = played("AnswersTextSurrogate")
    assert "7 May" in rows[0]["hypothesis"]


@pytest.mark.sampled(kept=6)
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("faulty:LeavesAbstract", "does not define answer, ingest of MemorySystem"),
        ("faulty:TakesNoParts", "can't be created from (settings, parts)"),
        ("faulty:SettingsNoClass", "settings type of this system must be a dataclass"),
        ("faulty:SettingsPlain", "settings type of this system must be a dataclass"),
        ("faulty:SettingsOwn", "faulty:OwnSettings, must be a subclass of SystemSettings"),
        ("faulty:StyleUnknown", "baroque"),
        ("faulty:StyleRaises", "in answer_style: KeyError"),
        ("faulty:WordingsUnknown", "nothing_such"),
        ("faulty:WordingsText", "ingest_templates() must return names of prompt templates"),
        ("faulty:ThinksRaises", "in uses_llm_at_ingest: SystemExit: 0"),
        ("faulty:not_a_class", "is not a subclass of"),
        ("faulty:Nothing", "has no class 'Nothing'"),
        ("faulty", "must be package.module:Class"),
        ("no_such_module:X", "no module named 'no_such_module'"),
        ("broken_syntax:X", "broken_syntax.py:2: SyntaxError"),
        ("broken_import:X", "no module named 'not_installed_here'"),
        ("broken_name:X", "broken_name.py:1: NameError"),
        ("broken_exit:X", "broken_exit.py:1: SystemExit: 0"),
        ("broken_from:X", "ImportError"),
        ("broken_bytes:X", "broken_bytes"),
        ("broken_post:X", "the settings of this system can't be read"),
        ("broken_hint:X", "the settings of this system can't be read"),
    ],
)
def test_invalid_system_class_is_reported_in_one_line(
    path: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = (
        "from dataclasses import dataclass\nfrom faulty import Sound\n"
        "from memeval.systems.base import SystemSettings\n"
        "@dataclass(frozen=True)\nclass S(SystemSettings):\n"
    )
    sources = {
        "broken_syntax": "x = 1\ndef (:\n",
        "broken_import": "import not_installed_here\n",
        "broken_name": "nothing_such\n",
        "broken_exit": "raise SystemExit(0)\n",
        "broken_from": "from faulty import nothing_such\n",
        "broken_post": f"{settings}    def __post_init__(self): 1 / 0\n"
        "class X(Sound): settings_type = S\n",
        "broken_hint": f"{settings}    a: 'Nowhere' = 1\nclass X(Sound): settings_type = S\n",
    }
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    (tmp_path / "broken_bytes.py").write_bytes(b"\xff\xfe\x00x")
    monkeypatch.syspath_prepend(tmp_path)
    words = ["+system.a=1"] if "hint" in path else []
    with pytest.raises(UserError) as error:
        open_cell(compose_config([*WORDS, f"system.class={path}", *words]), "")
    assert message in error.value.message
    assert "\n" not in error.value.message


def test_system_that_cancels_foreign_tasks_ends_the_run_in_one_line() -> None:
    with pytest.raises(WorldError, match="the system cancelled the run"):
        played("CancelsEverything")


def command(name: str, home: Path, *words: str) -> subprocess.Popen[str]:
    folders = filter(None, [str(HERE), os.environ.get("PYTHONPATH")])
    environ = environment(home, PYTHONPATH=os.pathsep.join(folders))
    line = [sys.executable, "-m", "memeval", *WORDS[:-1], f"system.class=faulty:{name}", *words]
    return subprocess.Popen(
        line,
        env=environ,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        cwd=home,
    )


def waited_for(process: subprocess.Popen[str], what: str) -> str:
    """Reads standard error until a line contains `what`; kills a process that never writes it."""
    assert process.stderr is not None
    said = ""
    killing = threading.Timer(60, process.kill)
    killing.start()
    try:
        for line in process.stderr:
            said += line
            if what in line:
                return said
    finally:
        killing.cancel()

    raise AssertionError(f"ended with {process.wait()}: {said}")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "IngestHangs",
        "AnswerHangs",
        "CloseHangs",
        "BlocksTheLoop",
        "SpinsOnTheLoop",
        "SwallowsEverything",
    ],
)
def test_the_second_ctrl_c_ends_the_process_at_once(name: str, home: Path) -> None:
    process = command(name, home)
    waited_for(process, faulty.CALLED)
    process.send_signal(signal.SIGINT)
    said = waited_for(process, "Ctrl-C again to stop now")
    method = {"IngestHangs": "ingest", "BlocksTheLoop": "ingest", "CloseHangs": "close"}.get(
        name, "answer"
    )
    assert f"waiting for case demo-1: faulty.{method}" in said
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command continues" in rest and "Traceback" not in said + rest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["AnswerRaisesSystemExit21", "AnswerHangs", "LeavesThreads"])
def test_command_with_a_faulty_system_ends_and_writes_its_records(name: str, home: Path) -> None:
    process = command(name, home, TIMEOUT, "tracking=none")
    out, err = process.communicate(timeout=60)
    assert process.returncode == (0 if name == "LeavesThreads" else 1)
    assert "Traceback" not in out + err
    (path,) = home.glob("outputs/runs/*/records.jsonl")
    assert len(path.read_text(encoding="utf-8").splitlines()) == ASKED
