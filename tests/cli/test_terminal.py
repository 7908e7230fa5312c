"""Lines on a terminal are folded between words; a file or a pipe gets them whole."""

from __future__ import annotations

import io

import pytest

from memeval.runs.display.terminal import folded


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_folded_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
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
