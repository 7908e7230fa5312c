"""`python -m memeval data list | fetch NAME | verify NAME`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NoReturn

from memeval.config.paths import data_dir
from memeval.datasets.contract import DatasetInfo
from memeval.datasets.fetch import fetch, verify
from memeval.datasets.locate import locate
from memeval.datasets.registry import DATASETS, dataset_info
from memeval.errors import UserError


class Parser(argparse.ArgumentParser):
    """Tells a mistake as every command does: in one line, the usage below it."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{self.prog.removeprefix('python -m memeval ')}: {message}", self.format_usage().strip())


def data(arguments: Sequence[str]) -> int:
    """Shows, downloads or checks data sets. Exit status 1 where a file is not what it should be."""
    parser = Parser(prog="python -m memeval data", description="data sets: what there is, what is here, how to get it")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="every data set: licence, size, sha256, counts, and whether it is on this machine")
    for action, what in (
        ("fetch", "download a data set, check it, show its licence"),
        ("verify", "compare a file with what is registered"),
    ):
        actions.add_parser(action, help=what).add_argument("name")
    chosen = parser.parse_args(list(arguments))
    if chosen.action == "list":
        for info in DATASETS.values():
            print(described(info))
        return 0
    info = dataset_info(chosen.name)
    return _fetch(info) if chosen.action == "fetch" else _verify(info)


def described(info: DatasetInfo) -> str:
    """A data set in a few lines."""
    path = locate(info, data_dir())
    size = f"{info.size_bytes:,} bytes" if info.size_bytes else "small"
    counts = ", ".join(f"{count:,} {noun}" for noun, count in info.counts.items())
    lines = [
        f"{info.name}: {info.title}",
        f"  here:     {path}" if path.is_file() else f"  not here: python -m memeval data fetch {info.name}",
        f"  licence:  {info.licence}",
        f"  size:     {size}" + (f", sha256 {info.sha256}" if info.sha256 else ""),
        f"  holds:    {counts}" if counts else "",
        f"  cite:     {info.citation}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _fetch(info: DatasetInfo) -> int:
    if info.url is not None:
        print(f"{info.name}: licence {info.licence}. {info.citation}")
    path = fetch(info, data_dir(), _show)
    print(f"{path}: sha256 {info.sha256}, as registered" if info.sha256 else f"{path}")
    return 0


def _show(done: int, total: int | None) -> None:
    if sys.stderr.isatty():
        of = f" of {total:,}" if total else ""
        print(f"\r{done:,}{of} bytes", end="", file=sys.stderr, flush=True)
        if done == total:
            print(file=sys.stderr)


def _verify(info: DatasetInfo) -> int:
    found = verify(info, data_dir())
    print(f"{found.path}: sha256 {found.sha256}")
    for problem in found.problems:
        print(f"  {problem}")
    print("as registered" if found.right and info.sha256 else "right" if found.right else "NOT as registered")
    return 0 if found.right else 1
