"""`python -m memeval data make NAME FILE`: a data set that is generated or derived, as a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.data_settings import chosen_dataset
from memeval.datasets.contract import Dataset
from memeval.datasets.registry import writable
from memeval.errors import UserError


def make(name: str, path: Path, words: Sequence[str]) -> int:
    """Writes the data set record by record; the file appears under its name once it is whole."""
    dataset = chosen_dataset(name, words)
    if type(dataset).write is Dataset.write:
        raise UserError(
            f"data set '{name}' can't be written as a file: it is neither generated nor derived",
            f"these can:  {', '.join(writable())}",
        )

    if path.exists():
        raise UserError(f"{path} already exists.", "move it away, or name another file")

    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            cases, questions = dataset.write(file)

        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}.") from error
    finally:
        temporary.unlink(missing_ok=True)

    print(f"{path}: {cases:,} cases, {questions:,} questions, {path.stat().st_size:,} bytes")
    for note in dataset.notes():
        print(f"  {note}")

    print(f"run it:  python -m memeval dataset={name} dataset.path={path}")

    return 0
