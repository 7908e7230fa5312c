"""What a run rested on besides its config: the code's commit, the packages' versions."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from memeval.config.paths import conf_dir

PACKAGES = (
    "memeval",
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


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that move results, those that are installed."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue

    return numbers


@cache
def git_state() -> dict[str, str]:
    """Commit of the checkout that the code comes from and whether it was changed since; empty
    outside of one.
    """
    commit, status = (
        _git("rev-parse", "HEAD"),
        _git("status", "--porcelain", "--untracked-files=no"),
    )
    return {} if not commit else {"git_commit": commit, "git_dirty": str(bool(status)).lower()}


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            # conf/ is the checkout's own: the working directory may be another repository.
            ["git", "-C", str(conf_dir()), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""

    return done.stdout.strip() if done.returncode == 0 else ""
