"""`python -m memeval data ACTION`: lists, fetches, describes, checks and writes data sets.

`make` also takes settings, and the published files or folders that a data set is made from.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.data_own import OWN_ACTIONS, TAKES_OVERRIDES, add_own_actions
from memeval.cli.data_settings import chosen_dataset, read_words
from memeval.cli.parser import Parser
from memeval.config.paths import data_dir
from memeval.config.plugins import plugins
from memeval.datasets.contract import Dataset, DatasetInfo, FileInfo
from memeval.datasets.fetch import fetch, verify
from memeval.datasets.locate import locate
from memeval.datasets.registry import DATASETS, GROUP, dataset_info, has_adapter
from memeval.datasets.transfer import FetchLimits
from memeval.display.terminal import drawn
from memeval.errors import UserError


def data(arguments: Sequence[str]) -> int:
    """Shows, downloads, checks, counts or writes data sets.

    Exit status 1 if a file is not what it should be.
    """
    whole = parser()
    # argparse takes no words of a list on both sides of an option: they are what it leaves.
    chosen, words = whole.parse_known_args(list(arguments))
    if words and chosen.action not in TAKES_OVERRIDES:
        whole.error(f"unrecognized arguments: {' '.join(words)}")

    chosen.words = words
    if chosen.action == "list":
        _list()
        return 0

    if chosen.action in OWN_ACTIONS:
        module, _, function = OWN_ACTIONS[chosen.action].partition(":")
        status: int = getattr(importlib.import_module(module), function)(chosen)
        return status

    name = chosen.name
    if chosen.action == "stats":
        from memeval.cli.data_stats import show_stats

        return show_stats(name, chosen.settings)

    if chosen.action == "make":
        from memeval.cli.data_make import make

        return make(name, Path(chosen.file), chosen.settings)

    info = dataset_info(name)
    if chosen.action == "verify":
        return _verify(info, chosen.settings)
    if chosen.max_bytes is not None and chosen.max_bytes < 1:
        raise UserError(f"--max-bytes must be at least 1, not {chosen.max_bytes}")
    if chosen.sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", chosen.sha256):
        raise UserError("--sha256 must be 64 hexadecimal digits")

    if chosen.sha256 is not None and (info.sha256 or info.files):
        raise UserError(
            f"--sha256 is not needed: '{info.name}' has a registered sha256",
            f"use:  python -m memeval data fetch {info.name}",
        )

    # In lower case, as hashlib writes it: the two are compared as strings.
    limits = FetchLimits(chosen.max_bytes, chosen.sha256 and chosen.sha256.lower())
    return _fetch(info, limits, _files(info, chosen.settings))


def _list() -> None:
    """Prints every data set; for one of a package that can't be imported, why, on one line."""
    for info in DATASETS.values():
        print(describe(info))

    for name in sorted(plugins(GROUP)):
        try:
            print(describe(dataset_info(name)))
        except UserError as error:
            print(f"{name}: {error}\n")


def _files(info: DatasetInfo, words: Sequence[str]) -> Sequence[FileInfo] | None:
    """The files that settings on the command line choose of a folder; None for all of it.

    Raises `UserError` for settings that choose nothing.
    """
    if not words:
        return None

    dataset = chosen_dataset(info.name, words) if has_adapter(info.name) else None
    # Without its own `files_read` a data set is one whole.
    if dataset is None or type(dataset).files_read is Dataset.files_read:
        raise UserError(
            f"data set '{info.name}' has no parts: {' '.join(words)} chooses nothing",
            f"use:  python -m memeval data fetch {info.name}",
        )

    return dataset.files_read()


def parser() -> Parser:
    whole = Parser.of("data", "lists, downloads, verifies and describes data sets")
    actions = whole.add_subparsers(dest="action", required=True)
    actions.add_parser(
        "list",
        help="list each data set: licence, size, sha256, counts, and whether it is on this machine",
    )

    add_own_actions(actions)

    for action, what in (
        ("fetch", "download a data set, verify it, show its licence"),
        (
            "verify",
            "compare the local file with the registered one, and list every repaired record",
        ),
        ("stats", "show cases, sessions, turns, tokens and questions by category as a table"),
        (
            "make",
            "write a data set to a file: generated or derived (synthetic, locomo_mc10), or from "
            "published files (incidents, memory_agent_bench)",
        ),
    ):
        own = actions.add_parser(action, help=what)
        own.add_argument("name")
        if action == "make":
            own.add_argument("file")

        if action == "fetch":
            own.add_argument(
                "--max-bytes",
                type=int,
                metavar="N",
                help="largest download in bytes (default: the registered size plus 1 %%)",
            )
            own.add_argument(
                "--sha256",
                metavar="HEX",
                help="expected sha256 of a data set that has no registered one",
            )

        if action in ("fetch", "verify", "stats", "make"):
            metavar = "dataset.field=value | FROM" if action == "make" else "dataset.field=value"
            own.add_argument("settings", nargs="*", metavar=metavar)

    return whole


def describe(info: DatasetInfo) -> str:
    """A data set in a few lines."""
    counts = ", ".join(f"{count:,} {noun}" for noun, count in info.counts.items())
    lines = [
        f"{info.name}: {info.title}",
        _whereabouts(info),
        f"  licence:  {info.licence}",
        f"  size:     {_size(info)}",
        f"  holds:    {counts}" if counts else "",
        f"  cite:     {info.citation}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _whereabouts(info: DatasetInfo) -> str:
    """Whether it is on this machine, whole or in part, and else how to get it."""
    if not info.file:
        return f"  here:     generated: python -m memeval dataset={info.name}"

    path = locate(info, data_dir())
    if path.exists():
        part = next(
            (excerpt for excerpt in info.excerpts if path == data_dir() / excerpt.file), None
        )
        return f"  here:     {path}" + (f" (an excerpt: {part.what})" if part else "")

    if info.by_hand and info.url is None and not any(file.url for file in info.files):
        return f"  not here: {info.by_hand}"

    return f"  not here: python -m memeval data fetch {info.name}"


def _size(info: DatasetInfo) -> str:
    if not info.file:
        return "depends on its settings"
    if info.files:
        known = [file.size_bytes for file in info.files if file.size_bytes is not None]
        more = "" if len(known) == len(info.files) else " and more"
        return f"{sum(known):,} bytes{more} in {len(info.files)} files"

    if info.size_bytes:
        size = f"{info.size_bytes:,} bytes"
    else:
        size = "not registered" if info.url else "small"

    return size + (f", sha256 {info.sha256}" if info.sha256 else "")


def _fetch(info: DatasetInfo, limits: FetchLimits, files: Sequence[FileInfo] | None) -> int:
    if (info.url is not None and (info.sha256 or limits.sha256)) or info.files:
        print(f"{info.name}: licence {info.licence}. {info.citation}")

    path = fetch(info, data_dir(), _show, limits, files)
    checked = f"sha256 {info.sha256}, as registered"
    if not info.sha256:
        checked = f"sha256 {limits.sha256}, as given with --sha256; unpinned: none is registered"

    print(f"{path}" if info.files else f"{path}: {checked}")

    return 0


def _show(done: int, total: int | None) -> None:
    # A line that is written over again and again would fill a log.
    if sys.stderr.isatty():
        of = f" of {total:,}" if total else ""
        print(f"\r{done:,}{of} bytes", end="", file=drawn(sys.stderr), flush=True)
        if done == total:
            print(file=sys.stderr)


def _verify(info: DatasetInfo, words: Sequence[str]) -> int:
    verified = verify(info, data_dir(), read_words(words))
    print(f"{verified.path or 'generated'}: sha256 {verified.sha256}")

    if verified.counts:
        print(
            f"  read: {', '.join(f'{count:,} {noun}' for noun, count in verified.counts.items())}"
        )

    for line in (*verified.problems, *verified.notes):
        print(f"  {line}")

    for repair in verified.repairs:
        print(f"  repaired: {repair}")

    print(_outcome(info, verified.right, verified.excerpt))

    return 0 if verified.right else 1


def _outcome(info: DatasetInfo, right: bool, excerpt: str) -> str:
    if excerpt:
        return f"as registered, an excerpt: {excerpt}"
    if not right:
        return "NOT as registered"
    if info.sha256 or info.files:
        return "as registered"
    if info.url:
        return "unpinned: no digest is registered to compare it with"
    if has_adapter(info.name):
        return "right"

    return "present; no digest is registered to compare it with"
