"""Lines on a terminal are wrapped between words; a file or a pipe gets them unwrapped."""

from __future__ import annotations

import io

import pytest

from memeval.runs.display.terminal import folded


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
