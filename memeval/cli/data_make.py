"""`python -m memeval data make synthetic FILE`: a generated data set as a file in LoCoMo's schema."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.data_settings import chosen_dataset
from memeval.datasets.synthetic import Synthetic
from memeval.datasets.synthetic_file import write_cases
from memeval.errors import UserError


def make(name: str, path: Path, words: Sequence[str]) -> int:
    """Writes the cases one after another; the file appears under its name once it is whole."""
    if name != "synthetic":
        raise UserError(f"data set '{name}' can't be written as a file; synthetic can.")
    dataset = chosen_dataset(name, words)
    if not isinstance(dataset, Synthetic) or dataset.settings.path:
        raise UserError("data make writes what is generated, and dataset.path reads what is there.", "leave dataset.path out")
    if path.exists():
        raise UserError(f"{path} is there already.", "move it away, or name another file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            cases, questions = write_cases(dataset.cases(), file)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path} can't be written: {error.strerror or error}.") from error
    print(f"{path}: {cases:,} cases, {questions:,} questions, {path.stat().st_size:,} bytes")
    for note in dataset.notes():
        print(f"  {note}")
    print(f"run it:  python -m memeval dataset=synthetic dataset.path={path}")
    return 0
