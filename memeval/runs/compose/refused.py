"""A sweep of which nothing is run, as some of its cells can't be."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.errors import UserError


class RefusedError(Exception):
    """Cells of a sweep can't be run, and so none was."""

    def __init__(self, errors: Sequence[UserError], cells: int) -> None:
        super().__init__(f"{len(errors)} of {cells} runs can't be made")
        self.errors, self.cells = errors, cells
