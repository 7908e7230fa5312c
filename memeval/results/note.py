"""Caveats of a run, and reasons not to compare runs. Code checks the kind; people read the text."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from memeval.records import Count


class NoteKind(StrEnum):
    """Subject of a note."""

    REMARK = "remark"
    """Any caveat that no code checks for."""

    STOPPED = "stopped"
    """The run ended before all questions were done."""
    NOTHING_FOUND = "nothing_found"
    """No question got anything from the memory."""
    NO_SCORE = "no_score"
    """Records have no score."""
    CORRECTED = "corrected"
    """The labels of the corrected accuracy."""

    # Why two runs are not compared.
    COMMON = "common"
    """Fewer than two questions have a value in both runs: `--force` can't help."""
    DATASET = "dataset"
    DATA = "data"
    """The data files have different sha256 digests."""
    QUESTIONS = "questions"
    WEIGHTS = "weights"
    """Questions of two samples represent different numbers of questions."""
    LABELS = "labels"
    JUDGE = "judge"
    COVERAGE = "coverage"
    ONLY = "only"
    """A run asked only the questions that another run got wrong, so it has no score."""
    PRICES = "prices"
    """The costs of a run use prices other than those in force."""


_HEADINGS = {NoteKind.CORRECTED: "Corrected accuracy: "}


class Note(Struct, frozen=True, omit_defaults=True):
    """One caveat or reason."""

    kind: NoteKind
    text: str
    count: Count | None = None
    """Number of records, questions or labels that it is about; None if it counts nothing."""

    def __str__(self) -> str:
        return _HEADINGS.get(self.kind, "") + self.text


def remarks(texts: Iterable[str]) -> list[Note]:
    """Notes of the kind `REMARK`, one per text."""
    return [Note(NoteKind.REMARK, text) for text in texts]


def with_kinds(content: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON of a run, with a kind for each note.

    Earlier files contain only texts; in a stopped run, the first one gives the reason.
    """
    notes: Any = content.get("notes")
    if not isinstance(notes, list):
        return dict(content)

    kind = NoteKind.STOPPED if content.get("status") == "stopped" else NoteKind.REMARK
    read = []
    for note in notes:
        read.append({"kind": kind, "text": note} if isinstance(note, str) else note)
        kind = NoteKind.REMARK

    return {**content, "notes": read}
