"""Notes in run.json: with their kind, and in the form of earlier files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_runs import summary

from memeval.cli.comparison import print_invalid, print_notes
from memeval.records import Status
from memeval.report.markdown import banner
from memeval.results import RUN_FILE, STOPPED, Note, NoteKind, RunSummary
from memeval.results.files import SEAL, sealed

LOST = Note(NoteKind.NO_SCORE, "2 of 20 records are answer_failed and have no score.", 2)
CAVEAT = Note(NoteKind.REMARK, "All but one have no score in the other table.")


def rewrite(folder: Path, **members: Any) -> None:
    """Changes members of a `run.json`, and seals the file again."""
    content = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    del content[SEAL]
    text = json.dumps(sealed({**content, **members}))
    (folder / RUN_FILE).write_text(text, encoding="utf-8")


def test_a_note_keeps_its_kind_in_the_file(tmp_path: Path) -> None:
    replace(summary("rag"), notes=(LOST, CAVEAT)).write(tmp_path)

    assert RunSummary.read(tmp_path).notes == (LOST, CAVEAT)
    written = json.loads((tmp_path / RUN_FILE).read_text(encoding="utf-8"))["notes"]
    assert written == [
        {"kind": "no_score", "text": LOST.text, "count": 2},
        {"kind": "remark", "text": CAVEAT.text},
    ]


@pytest.mark.parametrize(
    ("status", "first"), [("finished", NoteKind.REMARK), (STOPPED, NoteKind.STOPPED)]
)
def test_notes_of_earlier_files_without_kinds_are_read(
    tmp_path: Path, status: str, first: NoteKind
) -> None:
    summary("rag").write(tmp_path)
    rewrite(tmp_path, notes=["The budget is spent.", "A caveat."], status=status)

    expected = (Note(first, "The budget is spent."), Note(NoteKind.REMARK, "A caveat."))
    assert RunSummary.read(tmp_path).notes == expected


def test_unknown_kind_of_note_is_refused(tmp_path: Path) -> None:
    summary("rag").write(tmp_path)
    rewrite(tmp_path, notes=[{"kind": "guess", "text": "A caveat."}])

    with pytest.raises(ValueError, match=r"'guess' - at `\$\.notes\[0\]\.kind`"):
        RunSummary.read(tmp_path)


def test_unknown_status_of_a_record_is_refused(tmp_path: Path) -> None:
    summary("rag").write(tmp_path)
    rewrite(tmp_path, statuses={"ok": 3, "postponed": 1})

    with pytest.raises(ValueError, match=r"'postponed' - at `key` in `\$\.statuses`"):
        RunSummary.read(tmp_path)


def test_kind_of_a_note_and_not_its_text_says_why_a_run_is_invalid(
    capsys: pytest.CaptureFixture[str],
) -> None:
    statuses = {Status.OK: 1, Status.ANSWER_FAILED: 2}
    notes = (CAVEAT, LOST)
    invalid = replace(summary("rag"), valid=False, notes=notes, statuses=statuses)
    print_invalid([invalid])
    assert capsys.readouterr().out.endswith("answer_failed and have no score\n")

    print_notes([invalid])
    assert capsys.readouterr().out == f"note: {CAVEAT.text}\n"

    # A run may have both causes.
    print_invalid([replace(invalid, tags={"nothing_found": "true"})])
    output = " ".join(capsys.readouterr().out.split())
    assert "got any context from the memory; " in output
    assert output.endswith("answer_failed and have no score")


def test_stopped_runs_of_one_name_are_told_apart_by_what_differs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stopped = replace(summary("rag"), valid=False, status=STOPPED)
    params = [{**stopped.params, "embedder": name} for name in ("tfidf", "openai")]
    print_invalid([replace(stopped, params=given) for given in params])
    shown = capsys.readouterr().out
    assert "STOPPED: tfidf: not finished" in shown and "STOPPED: openai: not finished" in shown


def test_stop_note_is_recognised_by_kind_and_not_by_position() -> None:
    stop = Note(NoteKind.STOPPED, "The budget is spent.")
    stopped = replace(summary("rag"), valid=False, status=STOPPED, notes=(CAVEAT, stop))
    assert banner(stopped) == ["> **STOPPED.** The budget is spent. The same command continues it."]
