"""`python -m memeval data make NAME FILE`: a data set that is generated or derived, as a file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.data_settings import chosen_dataset
from memeval.datasets.contract import Dataset
from memeval.datasets.io.new_file import new_file
from memeval.datasets.registry import writable
from memeval.errors import UserError
from memeval.text.shown import all_counted


def make(chosen: Namespace) -> int:
    """Writes the data set; the file appears under its name once it is whole.

    Its settings, `dataset.field=value`, come with the files or folders that it is made from.
    """
    name, path, words = chosen.name, Path(chosen.file), chosen.settings
    sources = [Path(word) for word in words if "=" not in word]
    dataset = chosen_dataset(name, [word for word in words if "=" in word])
    if sources:
        return _make_from(dataset, path, sources)

    if type(dataset).write_from is not Dataset.write_from:
        raise UserError(
            f"data set '{name}' is made from published files or folders: name at least one",
            f"as:  python -m memeval data make {name} {path} FROM…",
        )

    if type(dataset).write is Dataset.write:
        raise UserError(
            f"data set '{name}' can't be written as a file",
            f"these can:  {', '.join(writable())}",
        )

    with new_file(path) as file:
        cases, questions = dataset.write(file)

    written = all_counted({"cases": cases, "questions": questions})
    print(f"{path}: {written}, {path.stat().st_size:,} bytes")
    for note in dataset.notes():
        print(f"  {note}")

    print(f"run it:  python -m memeval dataset={name} dataset.path={path}")

    return 0


def _make_from(dataset: Dataset, path: Path, sources: Sequence[Path]) -> int:
    """Writes the data set's file from published files or folders."""
    with new_file(path) as file:
        notes = dataset.write_from(file, sources)

    print(f"{path}: {path.stat().st_size:,} bytes")
    for note in notes:
        print(f"  {note}")

    return 0
