"""Ctrl-C while memeval itself is still being imported."""

from __future__ import annotations

import sys

import pytest

from memeval.__main__ import main


def test_interrupt_during_the_import_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "memeval.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "memeval.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])

    assert main([]) == 130
