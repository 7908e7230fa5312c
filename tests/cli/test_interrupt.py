"""Ctrl-C while memeval itself is still being imported, and signals of forked processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memeval.__main__ import main
from memeval.cli.main import run_command
from memeval.errors import StorageError
from memeval.runs.interrupt import listening


def test_interrupt_during_the_import_prints_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "memeval.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "memeval.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])

    assert main([]) == 130


@pytest.mark.parametrize(
    ("words", "continues"),
    [([], True), (["system=rag"], True), (["evaluate", "x"], True), (["check"], False),
     (["compare", "@last"], False)],
)  # fmt: skip
@pytest.mark.parametrize("error", [KeyboardInterrupt(), StorageError("the disk is full")])
def test_only_a_command_that_keeps_its_work_says_so(
    words: list[str],
    continues: bool,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(_: object) -> int:
        raise error

    monkeypatch.setattr("memeval.cli.main._load_command", lambda _: fail)
    assert run_command(words) in (1, 130)
    assert ("finished work is kept" in capsys.readouterr().err) == continues


def test_a_forked_process_keeps_the_handlers_of_its_system() -> None:
    def handle(*_: object) -> None:
        """A system's own handler."""

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with listening():
            child = os.fork()
            if child == 0:
                found = [signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGTERM)]
                os._exit(int(found != [handle, signal.SIG_DFL]))

            assert os.waitpid(child, 0) == (child, 0)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_exit_status_is_kept_if_an_interrupt_went_through_an_exec(tmp_path: Path) -> None:
    """Such as that of a dataclass in a module that was being imported."""
    code = """
from memeval.runs.interrupt import leave
try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    raise SystemExit(leave(143))
"""
    (tmp_path / "stopped.py").write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "stopped"], cwd=tmp_path, check=False)
    assert done.returncode == 143


def test_leftover_thread_keeps_neither_the_process_nor_its_folder(tmp_path: Path) -> None:
    program = (
        "import threading\n"
        "from memeval.process import started\n"
        "from memeval.runs.interrupt import leave\n"
        "started.make_folder('mem0', guarded=False)\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "raise SystemExit(leave(130))\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, check=False)

    assert (ended.returncode, list(tmp_path.iterdir())) == (130, [])
