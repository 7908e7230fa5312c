"""Lines on a terminal are wrapped between words; a file or a pipe gets them unwrapped."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from memeval.runs.display.terminal import GuardedStream, folded


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_lines_are_wrapped_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/path/that/is/longer/than/the/terminal/is/wide"
    text = f"note: eleven of 37 replies can't be read, and more\nshort   line\nsee {path}"
    assert folded(text, Terminal()).split("\n") == [
        "note: eleven of 37 replies can't be",
        "  read, and more",
        "short   line",
        "see",
        f"  {path}",
    ]
    assert folded(text, io.StringIO()) == text


def test_colours_of_libraries_are_left_out_and_other_sequences_written_out() -> None:
    written = io.StringIO()
    GuardedStream(written).write("\x1b[32m[I 2026-11-29]\x1b[0m a study\x1b[2J\n")
    assert written.getvalue() == "[I 2026-11-29] a study\\x1b[2J\n"


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize(
    ("redirected", "status", "message"),
    [
        (">/dev/full", 1, "memeval: the output can't be written: No space left on device\n"),
        (">&-", 0, ""),
        ("<&- >/dev/null 2>&-", 0, ""),
        ("| true", 0, ""),
    ],
)
def test_output_that_can_not_be_written_ends_in_one_line(
    buffered: str, redirected: str, status: int, message: str
) -> None:
    if "/dev/full" in redirected and not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this machine")

    ended = subprocess.run(
        ["sh", "-c", f"{shlex.quote(sys.executable)} -m memeval --help {redirected}"],
        env={**os.environ, "PYTHONUNBUFFERED": buffered},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (status, message)


def test_output_in_an_encoding_without_dashes_and_arguments_in_another(tmp_path: Path) -> None:
    environment = {**os.environ, "MEMEVAL_HOME": str(tmp_path), "PYTHONIOENCODING": "latin-1"}
    command = [os.fsencode(sys.executable), b"-m", b"memeval"]
    for words, status, shown in (
        ([b"--help", b"dataset"], 0, b"dataset.question_ids=null"),
        ([b"system=bm\xfc"], 2, b"can't be read as group=option"),
    ):
        done = subprocess.run([*command, *words], env=environment, capture_output=True, check=False)
        assert done.returncode == status, done.stderr
        assert shown in done.stdout + done.stderr
