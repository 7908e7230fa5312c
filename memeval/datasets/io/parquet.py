"""Reads Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memeval.errors import UserError
from memeval.text.shown import one_line


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a Parquet file.

    Raises `UserError` if it can't be read, or pyarrow is not installed.
    """
    try:
        from pyarrow import ArrowException, parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise UserError(
            f"{path}: reading Parquet needs pyarrow, which is not installed",
            "install it:  pip install pyarrow",
        ) from error

    try:
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    except (OSError, ArrowException, ValueError) as error:
        raise UserError(f"{path} can't be read as Parquet: {one_line(error, 200)}") from error

    return rows
