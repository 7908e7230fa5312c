"""Memories in an object store, on a real S3 server (moto's).

pip install 'memeval-bench[s3]' 'moto[server]'
"""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest_pipeline import Command, records, without_times
from ports import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("s3fs", "moto", "flask")),
        reason="needs s3fs and an S3 server: pip install s3fs 'moto[server]'",
    ),
]
CELL = ("dataset=demo", "dataset.limit_cases=2", "dataset.limit_questions=3", "system=rag")
SECRET = "secret-of-a-test-0123456789"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment for s3fs to reach a server with a bucket."""
    port = free_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    server = subprocess.Popen(
        [sys.executable, "-c", "from moto.server import main; main()", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, server)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

        make = "import s3fs; s3fs.S3FileSystem().mkdir('bucket')"
        subprocess.run([sys.executable, "-c", make], check=True)
        yield variables
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert server.poll() is None
            time.sleep(0.1)
        else:
            return

    raise AssertionError("the server did not start")


def test_memories_are_shared_through_an_object_store(
    memeval: Command, tmp_path: Path, credentials: dict[str, str]
) -> None:
    words = (*CELL, "store.memories=s3://bucket/memories")
    one, other, alone = (tmp_path / name for name in ("one", "other", "alone"))
    assert "2 built" in memeval("prepare", *words, home=one).stdout
    assert "2 found" in memeval("prepare", *words, home=other).stdout

    memeval(*words, "tracking=none", home=other)
    memeval(*CELL, "tracking=none", home=alone)
    assert without_times(records(other)) == without_times(records(alone))
    assert "problems: 0" in memeval("store", "verify", home=other).stdout

    missing = memeval(*CELL, "store.memories=s3://no-such-bucket-here/m", check=False, home=one)
    assert "Traceback" not in missing.stderr and SECRET not in missing.stderr + missing.stdout
