"""Processes and folders of this process are removed at its end; the guardian removes the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memeval.process import guardian, started


def test_watch_returns_groups_and_folders_that_were_not_removed() -> None:
    lines = ["+ group 1\n", "+ folder /a b\n", "+ group 2\n", "- group 1\n", "- group 7\n"]
    assert guardian.watch(lines) == (["2"], ["/a b"])


def test_process_group_is_ended_as_a_whole() -> None:
    words = ["sh", "-c", "sleep 600 & echo $!; sleep 600"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        started.adopt(process.pid)
        assert os.getpgid(child) == process.pid
        started.end(process.pid)
        assert process.wait(10) == -signal.SIGKILL
        assert process.stdout.read() == b"", "the child held the pipe"


def test_only_groups_that_were_adopted_are_ended() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        started.end(process.pid)
        assert process.poll() is None
        process.kill()


def test_folder_is_removed_with_its_files() -> None:
    folder = started.make_folder("case")
    (folder / "memory.json").write_text("{}", "utf-8")
    started.remove_folder(folder)
    assert not folder.exists()


@pytest.mark.parametrize("guarded", [True, False])
def test_folder_is_removed_at_the_end_of_its_process(guarded: bool) -> None:
    code = "from memeval.process import started\n"
    code += f"print(started.make_folder('test', guarded={guarded}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("memeval-test-") and not folder.exists()


KILLED = """
import os, signal, subprocess
from pathlib import Path
from memeval.process import started
folder = started.make_folder("test")
process = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL)
started.adopt(process.pid)
# In its own group: only the folder in its environment shows whose it is.
other = subprocess.Popen(
    ["sleep", "600"], env={"A": str(folder)}, start_new_session=True, stdout=subprocess.DEVNULL
)
print(process.pid, other.pid, folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_guardian_cleans_up_after_a_killed_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    process, other, folder = done.stdout.split()
    for _ in range(600):
        if not _runs(process) and not _runs(other) and not Path(folder).exists():
            return

        _wait()

    raise AssertionError(done.stdout)


def _runs(process: str) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    except OSError:
        return False

    return state.split()[0] != "Z"


def _wait() -> None:
    subprocess.run(["sleep", "0.05"], check=True)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_process_with_an_open_file_in_a_folder_ends_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    folder.mkdir()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=log
        )

    assert guardian.processes_of(str(folder)) == [process.pid]
    started.end_folder(folder)
    assert process.wait(10) == -9 and not folder.exists()
    assert process.stdin is not None
    process.stdin.close()
