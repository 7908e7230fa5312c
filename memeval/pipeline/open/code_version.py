"""The version of a class of the user's own: the commit of its file, and whether it was edited."""

from __future__ import annotations

import inspect
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

SECONDS = 10.0
"""Limit of a call of git."""


def code_version(part: type[Any]) -> str | None:
    """The version of a class, as tables show it; None if it has no file.

    The commit of the repository that holds its file: `3f2a1b9`; of a file that was edited since, or
    is in no repository, also the time of the edit: `3f2a1b9 edited 11-23 14:05:09`.
    """
    try:
        path = Path(inspect.getfile(part)).resolve()
        edited = datetime.fromtimestamp(path.stat().st_mtime)
    except (OSError, TypeError):
        return None

    shown = f"edited {edited:%m-%d %H:%M:%S}"
    commit = git(path.parent, "rev-parse", "--short=7", "HEAD")
    if not commit:
        return shown

    return f"{commit} {shown}" if git(path.parent, "status", "--porcelain", "--", path) else commit


def git(folder: Path, *arguments: str | Path) -> str:
    """Output of git in a folder; empty outside of a repository and without git."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""

    return done.stdout.strip() if done.returncode == 0 else ""
