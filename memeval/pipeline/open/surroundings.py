"""Facts that a run depends on besides its config: the code's commit, the packages' versions."""

from __future__ import annotations

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from memeval import __version__
from memeval.config.paths import conf_dir
from memeval.pipeline.open.code_version import git

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


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that move results, those that are installed."""
    numbers = {"python": platform.python_version(), "memeval": __version__}
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
    # conf/ is the checkout's own: the working directory may be another repository.
    commit = git(conf_dir(), "rev-parse", "HEAD")
    if not commit:
        return {}

    status = git(conf_dir(), "status", "--porcelain", "--untracked-files=no")
    return {"git_commit": commit, "git_dirty": str(bool(status)).lower()}
