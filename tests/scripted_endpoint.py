"""Serves the scripted endpoint from a separate process.

`python tests/scripted_endpoint.py --latency 0.2` prints its URL, and its counts are at `/stats`.
With `-- COMMAND ...` it serves while that command runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from doubles.endpoint import ScriptedEndpoint


def main() -> int:
    """Serves while a command runs, or until standard input ends; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python tests/scripted_endpoint.py",
        description="a scripted OpenAI-compatible endpoint on loopback",
        epilog="with a command, OPENAI_BASE_URL and OPENAI_API_KEY are set for it",
    )
    parser.add_argument("--latency", type=float, default=0.0, help="seconds a call takes")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and what is run against it")
    arguments = parser.parse_args()
    # argparse passes the `--` on with the rest.
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command

    with ScriptedEndpoint(latency_s=arguments.latency, port=arguments.port) as endpoint:
        if command:
            return _run(command, endpoint.base_url)

        sys.stdout.write(endpoint.base_url + "\n")
        sys.stdout.flush()
        sys.stdin.read()

    return 0


def _run(command: list[str], base_url: str) -> int:
    """Runs a command against an endpoint; returns its exit status."""
    # The user's real provider key is never sent to the scripted endpoint, and none is needed.
    env = {**os.environ, "OPENAI_BASE_URL": base_url, "OPENAI_API_KEY": "scripted"}
    return subprocess.run(command, env=env, check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
