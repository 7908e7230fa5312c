"""Versions of the code and the packages that a run depends on besides its config."""

import inspect
import platform
import subprocess
from datetime import datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from memeval import __version__
from memeval.config.paths import conf_dir

SECONDS = 10.0
"""Time limit of a git command."""
PACKAGES = (
    "hydra-core",
    "omegaconf",
    "mlflow",
    "openai",
    "chromadb",
    "rank-bm25",
    "numpy",
    "mem0ai",
    "genai-prices",
)


def code_version(part: type[Any]) -> str | None:
    """The commit of a class's file, and the edit time if changed since; None without a file.

    For example `3f2a1b9`, or `3f2a1b9 edited 11-23 14:05:09`.
    """
    try:
        path = Path(inspect.getfile(part)).resolve()
        edited = datetime.fromtimestamp(path.stat().st_mtime)
    except (OSError, TypeError):
        return None

    shown = f"edited {edited:%m-%d %H:%M:%S}"
    commit = _git(path.parent, "rev-parse", "--short=7", "HEAD")
    if not commit:
        return shown

    if not _git(path.parent, "status", "--porcelain", "--", path):
        return commit

    return f"{commit} {shown}"


def _git(folder: Path, *arguments: str | Path) -> str:
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


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that affect results."""
    numbers = {"python": platform.python_version(), "memeval": __version__}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue

    return numbers


@cache
def git_state() -> dict[str, str]:
    """Commit of the checkout and whether it was changed since; empty outside of one."""
    # conf/ is in memeval's checkout: the working directory may be in another repository.
    commit = _git(conf_dir(), "rev-parse", "HEAD")
    if not commit:
        return {}

    status = _git(conf_dir(), "status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "git_dirty": str(bool(status)).lower()}
