"""The page of a comparison, beside its other files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from memeval.errors import StorageError

if TYPE_CHECKING:
    from memeval.comparison import Comparison

MOST_CELLS = 20
"""Cells of one page: more are slow to open, and too many to look at beside each other."""


def write_page_of(comparison: Comparison, folders: Sequence[Path], target: Path) -> bool:
    """Writes the page of compared runs, and returns whether it did.

    It does not for more than `MOST_CELLS` runs, nor where nothing could be compared. Raises
    `StorageError` where the disk refuses.
    """
    if len(folders) > MOST_CELLS or not comparison.differences:
        return False

    from memeval.comparison.sentences import lead, sentence
    from memeval.comparison.words import dominating_conversations
    from memeval.report.page import write_comparison_page
    from memeval.text.redaction import redacted_in

    first = [*lead(comparison), *dominating_conversations(comparison)]
    sentences = [sentence(comparison, difference) for difference in comparison.differences]
    try:
        write_comparison_page(folders, target, redacted_in(comparison.to_json()), first, sentences)
    except OSError as error:
        raise StorageError(f"{target} can't be written: {error.strerror or error}") from error

    return True
