"""A table for a paper before it is written in any format. `None` means not measured."""

from collections.abc import Iterator

from msgspec import Struct

from memeval.metrics.formats import NONE


class PaperCell(Struct, frozen=True):
    """One figure of one run."""

    value: float | None
    """Unrounded; a share is in [0, 1]."""
    text: str
    """The value as printed; a dash if it was not measured."""
    low: float | None = None
    """Low end of its 95 % interval."""
    high: float | None = None
    interval: str = ""
    """`[28.1, 48.2]`; empty without an interval."""
    letters: str = ""
    """Rows that share a letter within a column can't be told apart; empty if nothing was tested."""
    is_best: bool = False
    """Whether it is better than every other row, and each of these differences is shown."""


NOT_MEASURED = PaperCell(value=None, text=NONE)


class PaperColumn(Struct, frozen=True):
    """One figure of all runs."""

    name: str
    """As in MLflow: `accuracy`, `accuracy/temporal`, `recall_at_10`."""
    title: str
    """With its unit: `turn recall@10 (%)`."""
    cells: tuple[PaperCell, ...]
    """One for each row."""
    group: str = ""
    """Common heading of several neighbouring columns, such as `accuracy by category (%)`."""

    @property
    def full_title(self) -> str:
        """The title with its common heading in front, for formats that write no common headings."""
        return f"{self.group}: {self.title}" if self.group else self.title


class PaperTable(Struct, frozen=True):
    """A table with a row per run and a column per figure."""

    headings: tuple[str, ...]
    """Headings of the columns that name the rows."""
    names: tuple[tuple[str, ...], ...]
    """The names of each row, one for each heading."""
    columns: tuple[PaperColumn, ...]
    flags: tuple[tuple[str, ...], ...]
    """Warnings about each row for the reader."""
    notes: tuple[str, ...]
    """Meaning of the figures and marks, a sentence each."""
    caption: str = ""
    label: str = ""

    @property
    def titles(self) -> tuple[str, ...]:
        """The headings of all columns, for formats that write no common headings."""
        return (*self.headings, *(column.full_title for column in self.columns))

    @property
    def rows(self) -> Iterator[tuple[tuple[str, ...], tuple[PaperCell, ...]]]:
        """The names and the cells of each row."""
        return zip(
            self.names, zip(*(column.cells for column in self.columns), strict=True), strict=True
        )
