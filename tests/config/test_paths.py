"""The folders that the environment names."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memeval.cli.main import run_command
from memeval.config.paths import cache_dir, data_dir, outputs_dir, prepared_dir
from memeval.results.own_prices import prices_file


def test_folders_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell does not expand `~` in quotes, and container files don't expand it at all."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MEMEVAL_HOME", "~/home")
    monkeypatch.setenv("MEMEVAL_DATA_DIR", "~/data")
    prices = tmp_path / "home" / "prices.yaml"
    prices.parent.mkdir()
    prices.touch()

    assert outputs_dir() == tmp_path / "home" / "outputs"
    # Another name would pay for all replies, and build all memories, again.
    assert cache_dir() == tmp_path / "home" / "data" / "cache"
    assert prepared_dir() == tmp_path / "home" / "data" / "prepared"
    assert data_dir() == tmp_path / "data"
    assert prices_file() == str(prices)


@pytest.mark.parametrize(
    "words", ["list", "verify", "show 1a2b", "pack -o x.memeval", "store info"]
)
def test_home_of_another_user_is_named_on_one_line(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """memeval's folders are private, and a test may run as a user who can read them all."""
    home = tmp_path / "home"
    monkeypatch.setenv("MEMEVAL_HOME", str(home))
    is_dir = Path.is_dir

    def refuse(path: Path, **follow: bool) -> bool:
        if path.parent == home / "outputs":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

        return is_dir(path, **follow)

    monkeypatch.setattr(Path, "is_dir", refuse)
    assert run_command(words.split()) == 2
    message = capsys.readouterr().err
    assert f"memeval: {home}/outputs/" in message and ": Permission denied" in message
    assert "set MEMEVAL_HOME" in message


@pytest.mark.parametrize(
    ("code", "status", "way_out"),
    [(errno.ENOSPC, 1, "the same command continues"), (errno.EACCES, 2, "set MEMEVAL_HOME")],
)
def test_folder_of_a_sweep_that_cannot_be_made_is_named_with_the_reason(
    code: int,
    status: int,
    way_out: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Hydra makes it: the error is not one of a config."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    mkdir = os.mkdir

    def refuse(path: str | Path, *mode: int, **folder: int | None) -> None:
        if Path(path).parent == tmp_path / "outputs" / "sweeps":
            raise OSError(code, os.strerror(code), str(path))

        mkdir(path, *mode, **folder)

    monkeypatch.setattr(os, "mkdir", refuse)
    assert run_command(["-m", "system=no_memory", "dataset.limit_questions=1"]) == status
    message = capsys.readouterr().err
    assert f"memeval: {tmp_path}/outputs/sweeps/" in message and f": {os.strerror(code)}" in message
    assert way_out in message and "Errno" not in message
