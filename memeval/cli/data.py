"""`python -m memeval data ACTION`: lists, fetches, describes, checks and writes data sets.

`make` also takes settings, and the published files or folders that a data set is made from.
"""

import re
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from memeval.api.overrides import as_word
from memeval.cli.data_own import OWN_ACTIONS, TAKES_OVERRIDES
from memeval.cli.data_settings import chosen_dataset, chosen_settings
from memeval.cli.main import load
from memeval.cli.parser import Parser
from memeval.config.paths import data_dir
from memeval.config.plugins import plugins
from memeval.datasets.contract import Dataset, DatasetInfo, FileInfo
from memeval.datasets.fetch import fetch, verify
from memeval.datasets.locate import locate
from memeval.datasets.registry import DATASETS, GROUP, dataset_info, has_adapter, writable
from memeval.datasets.transfer import FetchLimits
from memeval.errors import UserError, check_number
from memeval.results.private import new_file
from memeval.runs.display.terminal import drawing_stream
from memeval.text.shown import all_counted, counted, in_shell

DATA_SET = """
name NAME                      data set, as `data list` names it
settings* dataset.field=value  its settings, such as dataset.tier=100k
"""
USAGE_OF_FETCH = f"""
download a data set, verify it, show its licence

{DATA_SET}
--max-bytes N:int  largest download in bytes (default: the registered size plus 1 %%)
--sha256 HEX       expected sha256 if the data set has no registered one
"""
USAGE_OF_VERIFY = f"""
compare the local file with the registered one, and list the repaired records

{DATA_SET}
"""
USAGE_OF_STATS = f"""
show cases, sessions, turns, tokens and questions by category as a table

{DATA_SET}
"""
USAGE_OF_MAKE = """
write a data set to a file: generated or derived (synthetic, locomo_mc10), or from published files
(incidents, memory_agent_bench)

name NAME                           data set, as `data list` names it
file FILE                           file to write
settings* dataset.field=value|FROM  its settings, and the published files or folders
"""
ACTIONS = {
    "list": (
        "memeval.cli.data:list_all",
        "list data sets: licence, size, sha256, counts, and whether they are on this machine",
    ),
    **OWN_ACTIONS,
    "fetch": ("memeval.cli.data:fetch_chosen", USAGE_OF_FETCH),
    "verify": ("memeval.cli.data:verify_chosen", USAGE_OF_VERIFY),
    "stats": ("memeval.cli.data_stats:show_stats", USAGE_OF_STATS),
    "make": ("memeval.cli.data:make", USAGE_OF_MAKE),
}
PARSER = Parser.of_actions(
    "data",
    "lists, downloads, verifies and describes data sets, and makes your own",
    {name: usage for name, (_, usage) in ACTIONS.items()},
)


def data(arguments: Sequence[str]) -> int:
    """Shows, downloads, checks, counts or writes data sets; returns the action's exit status."""
    # argparse rejects list words on both sides of an option: the unparsed words are the list.
    chosen, words = PARSER.parse_known_args(list(arguments))
    if words and chosen.action not in TAKES_OVERRIDES:
        action = Parser.of(f"data {chosen.action}", ACTIONS[chosen.action][1])
        action.error(f"unrecognized arguments: {' '.join(words)}")

    chosen.words = words
    act: Callable[[Namespace], int] = load(ACTIONS[chosen.action][0])
    return act(chosen)


def fetch_chosen(chosen: Namespace) -> int:
    """Downloads a data set, or the parts of it that settings choose."""
    info = dataset_info(chosen.name)
    check_number("--max-bytes", chosen.max_bytes, {"least": 1})
    if chosen.sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", chosen.sha256):
        raise UserError("--sha256 must be 64 hexadecimal digits")

    if chosen.sha256 is not None and (info.sha256 or info.files):
        raise UserError(
            f"--sha256 is not needed: '{info.name}' has a registered sha256",
            f"use:  python -m memeval data fetch {info.name}",
        )

    # In lower case, as hashlib writes it: the two are compared as strings.
    limits = FetchLimits(chosen.max_bytes, chosen.sha256 and chosen.sha256.lower())
    files = _files(info, chosen.settings)
    if (info.url is not None and (info.sha256 or limits.sha256)) or info.files:
        print(f"{info.name}: licence {info.licence}. {info.citation}")

    path = fetch(info, data_dir(), _show, limits, files)
    if info.files:
        print(path)
    elif info.sha256:
        print(f"{path}: sha256 {info.sha256}, as registered")
    else:
        given = f"sha256 {limits.sha256}, as given by --sha256"
        print(f"{path}: {given}; unpinned: none is registered")

    return 0


def list_all(_: Namespace) -> int:
    """Prints every data set; for a package's that can't be imported, the error on one line."""
    for info in DATASETS.values():
        print(describe(info))

    for name in sorted(plugins(GROUP)):
        try:
            print(describe(dataset_info(name)))
        except UserError as error:
            print(f"{name}: {error}\n")

    return 0


def _files(info: DatasetInfo, words: Sequence[str]) -> Sequence[FileInfo] | None:
    """The files of a folder that settings on the command line choose; None for all of them.

    Raises `UserError` for settings that choose nothing.
    """
    if not words:
        return None

    # A data set without its own `files_read` has no parts.
    if has_adapter(info.name):
        dataset = chosen_dataset(info.name, words)
        if type(dataset).files_read is not Dataset.files_read:
            return dataset.files_read()

    raise UserError(
        f"data set '{info.name}' has no parts to select with {' '.join(words)}",
        f"use:  python -m memeval data fetch {info.name}",
    )


def describe(info: DatasetInfo) -> str:
    """A data set in a few lines."""
    lines = [
        f"{info.name}: {info.title}",
        _availability(info),
        f"  licence:  {info.licence}",
        f"  size:     {_size(info)}",
    ]
    if info.counts:
        lines.append(f"  holds:    {all_counted(info.counts)}")

    lines.append(f"  cite:     {info.citation}")
    return "\n".join(lines) + "\n"


def _availability(info: DatasetInfo) -> str:
    """Whether it is on this machine, completely or in part, or else how to get it."""
    if not info.file:
        how = "generated" if info.name in DATASETS else "read by its package"
        return f"  here:     {how}: python -m memeval dataset={info.name}"

    path = locate(info, data_dir())
    if path.exists():
        for excerpt in info.excerpts:
            if path == data_dir() / excerpt.file:
                return f"  here:     {path} (an excerpt: {excerpt.what})"

        return f"  here:     {path}"

    if info.by_hand and info.url is None and not any(file.url for file in info.files):
        return f"  not here: {info.how_to_get}"

    return f"  not here: python -m memeval data fetch {info.name}"


def _size(info: DatasetInfo) -> str:
    if not info.file:
        return "depends on its settings" if info.name in DATASETS else "not registered"
    if info.files:
        known = [file.size_bytes for file in info.files if file.size_bytes is not None]
        more = "" if len(known) == len(info.files) else " and more"
        return f"{sum(known):,} bytes{more} in {counted(len(info.files), 'file')}"

    size = "small"
    if info.size_bytes:
        size = f"{info.size_bytes:,} bytes"
    elif info.url or info.by_hand:
        size = "not registered"

    if info.sha256:
        size += f", sha256 {info.sha256}"

    return size


def _show(done: int, total: int | None) -> None:
    # Only on a terminal: a line that is rewritten repeatedly would fill a log.
    if sys.stderr.isatty():
        size = f"{done:,} of {total:,}" if total else f"{done:,}"
        print(f"\r{size} bytes", end="", file=drawing_stream(sys.stderr), flush=True)
        if done == total:
            print(file=sys.stderr)


def verify_chosen(chosen: Namespace) -> int:
    """Compares a data set with the registered one."""
    info = dataset_info(chosen.name)
    verified = verify(info, data_dir(), chosen_settings(info.name, chosen.settings))
    print(f"{verified.path or 'generated'}: sha256 {verified.sha256}")

    if verified.counts:
        print(f"  read: {all_counted(verified.counts)}")

    for line in (*verified.problems, *verified.notes):
        print(f"  {line}")

    for repair in verified.repairs:
        print(f"  repaired: {repair}")

    print(_outcome(info, verified.right, verified.excerpt))
    return int(not verified.right)


def _outcome(info: DatasetInfo, right: bool, excerpt: str) -> str:
    if excerpt:
        return f"as registered, but an excerpt: {excerpt}"
    if not right:
        return "NOT as registered"
    if info.sha256 or info.files:
        return "as registered"
    if info.url:
        return "unpinned: no sha256 is registered to compare it with"
    if has_adapter(info.name):
        return "right"

    return "present; no sha256 is registered to compare it with"


def make(chosen: Namespace) -> int:
    """Writes the data set; the file gets its name once it is complete.

    Settings, `dataset.field=value`, may be mixed with the files or folders that it is made from.
    """
    name, path = chosen.name, Path(chosen.file)
    sources, settings = [], []
    for word in chosen.settings:
        if "=" in word:
            settings.append(word)
        else:
            sources.append(Path(word))

    dataset = chosen_dataset(name, settings)
    if sources:
        return _write_from(dataset, path, sources)

    if type(dataset).write_from is not Dataset.write_from:
        raise UserError(
            f"data set '{name}' is made from published files or folders: name at least one",
            f"use:  python -m memeval data make {name} {in_shell(path)} FROM…",
        )

    if type(dataset).write is Dataset.write:
        raise UserError(
            f"data set '{name}' can't be written as a file", f"these can:  {', '.join(writable())}"
        )

    with new_file(path) as file:
        cases, questions = dataset.write(file)

    written = all_counted({"cases": cases, "questions": questions})
    print(f"{path}: {written}, {path.stat().st_size:,} bytes")
    for note in dataset.notes():
        print(f"  {note}")

    print(f"run it:  python -m memeval dataset={name} {as_word('dataset.path', path)}")

    return 0


def _write_from(dataset: Dataset, path: Path, sources: Sequence[Path]) -> int:
    with new_file(path) as file:
        notes = dataset.write_from(file, sources)

    print(f"{path}: {path.stat().st_size:,} bytes")
    for note in notes:
        print(f"  {note}")

    return 0
