"""`python -m memeval data make NAME FILE`: a data set that is generated or derived, as a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from memeval.cli.data_check import check
from memeval.cli.data_settings import chosen_dataset
from memeval.datasets.contract import Dataset
from memeval.datasets.json.convert import CONVERTERS
from memeval.datasets.registry import writable
from memeval.errors import UserError
from memeval.process.private import open_private

USAGE_OF_CONVERTERS = "python -m memeval data make {} FILE FROM [QUESTIONS.csv]"


def make(name: str, path: Path, words: Sequence[str]) -> int:
    """Writes the data set; the file appears under its name once it is whole.

    `words` are settings, `dataset.field=value`, and the files or folders that it is made from.
    """
    sources = [Path(word) for word in words if "=" not in word]
    if name in CONVERTERS:
        return _convert(name, path, sources)

    dataset = chosen_dataset(name, [word for word in words if "=" in word])
    if sources:
        return _make_from(dataset, path, sources)

    if type(dataset).write_from is not Dataset.write_from:
        raise UserError(
            f"data set '{name}' is made from published files or folders: name one or more",
            f"as:  python -m memeval data make {name} {path} FROM…",
        )

    if type(dataset).write is Dataset.write:
        raise UserError(
            f"data set '{name}' can't be written as a file: it is neither generated nor derived",
            f"these can:  {', '.join(writable())}",
        )

    with _whole_file(path) as file:
        cases, questions = dataset.write(file)

    print(f"{path}: {cases:,} cases, {questions:,} questions, {path.stat().st_size:,} bytes")
    for note in dataset.notes():
        print(f"  {note}")

    print(f"run it:  python -m memeval dataset={name} dataset.path={path}")

    return 0


def _make_from(dataset: Dataset, path: Path, sources: Sequence[Path]) -> int:
    """Writes the data set's file from published files or folders."""
    with _whole_file(path) as file:
        notes = dataset.write_from(file, sources)

    print(f"{path}: {path.stat().st_size:,} bytes")
    for note in notes:
        print(f"  {note}")

    return 0


def _convert(name: str, path: Path, sources: Sequence[Path]) -> int:
    """Writes a file for `dataset=json` from other forms, and says what is left to do."""
    if not sources:
        raise UserError(
            f"data make {name} needs a file to read", f"as:  {USAGE_OF_CONVERTERS.format(name)}"
        )

    # Either order is clear: the one that is there is read.
    if len(sources) == 1 and path.exists() and not sources[0].exists():
        path, sources = sources[0], [path]

    converted = CONVERTERS[name](sources)
    with _whole_file(path) as file:
        converted.write(file, lines=path.suffix == ".jsonl")

    print(f"{path}: {path.stat().st_size:,} bytes")
    for note in converted.notes:
        print(f"  {note}")

    return check(path)


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[str]]:
    """A file to write, which appears under its name once it is whole.

    Raises `UserError` if one is there already, or it can't be written.
    """
    if path.exists():
        raise UserError(f"{path} already exists.", "move it away, or name another file")

    # Beside the target: a rename works only within a file system.
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # An export of someone's chats is for its owner alone.
        descriptor = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file

        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)
