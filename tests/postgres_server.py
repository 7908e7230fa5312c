"""A temporary PostgreSQL server for tests, in its own folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ports import free_port

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


class Server:
    """A server that can be started and stopped; its data persists."""

    def __init__(self) -> None:
        self._bin = PROGRAMS[-1].parent
        self.folder = Path(tempfile.mkdtemp(prefix="memeval-postgres-"))
        # PostgreSQL refuses to run as root.
        self._user = "nobody" if os.getuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)

        self.port = free_port()
        self._run("initdb", "-D", "data", "-U", "memeval", "-A", "trust", "--no-sync", "-E", "UTF8")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://127.0.0.1:{self.port}/postgres"

    def _run(self, program: str, *arguments: str) -> str:
        return subprocess.run(
            [self._bin / program, *arguments],
            cwd=self.folder,
            user=self._user,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self.folder),
            "fsync": "off",
            "shared_buffers": "16MB",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", "data", "-p", str(self.port), *words],
                cwd=self.folder,
                user=self._user,
                stdout=log,
                stderr=log,
            )

        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                self.ask("SELECT 1")
            except subprocess.CalledProcessError:
                time.sleep(0.1)
            else:
                return

        raise AssertionError((self.folder / "log").read_text())

    def ask(self, statement: str) -> str:
        """The output of psql for a statement."""
        return self._run(
            "psql", "-h", str(self.folder), "-p", str(self.port), "-U", "memeval",
            "-d", "postgres", "-tAc", statement,
        ).strip()  # fmt: skip

    def kill(self) -> None:
        """Stops the server immediately, as a crash does."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def freeze(self) -> None:
        """Stops all its processes: connections stay open, and nothing answers."""
        for process in self._processes():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resumes all suspended processes."""
        for process in self._processes():
            # The main process, once resumed, may end children whose connections are gone.
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The server and its child processes, one per connection."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return [self._process.pid, *map(int, children.read_text(encoding="ascii").split())]

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
