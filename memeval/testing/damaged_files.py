"""The part of the conformance suite of data sets that damages their files, like a broken download
or a typing error.
"""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memeval.datasets.contract import Dataset
from memeval.errors import UserError

WRONG: Sequence[Any] = (
    None,
    True,
    0,
    -1,
    10**400,
    1.5,
    float("nan"),
    "",
    " ",
    "\ud800",
    "x",
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": {"y": []}},
)
"""Values that may replace another value."""


@st.composite
def damaged_records(draw: st.DrawFn, records: Sequence[Any], *, twice: bool = True) -> list[Any]:
    """The records with one fault.

    A field is missing, a value has another type, or (if `twice`) a record occurs twice. Lists keep
    their elements: a missing one could not be noticed.
    """
    damaged = copy.deepcopy(list(records))
    position = draw(st.integers(0, len(damaged) - 1))
    if twice and draw(st.integers(0, 9)) == 0:
        damaged.append(copy.deepcopy(damaged[position]))
        return damaged

    holder, key = draw(_place(damaged, position))
    value = holder[key]
    if isinstance(holder, dict) and draw(st.booleans()):
        del holder[key]
        return damaged

    of_other_type = [wrong for wrong in WRONG if type(wrong) is not type(value)]
    # Another string may be wrong as well; another number of the right type may be right.
    candidates = WRONG if isinstance(value, str) else of_other_type
    holder[key] = draw(st.sampled_from(candidates))

    return damaged


@st.composite
def _place(draw: st.DrawFn, records: list[Any], position: int) -> tuple[Any, Any]:
    """A value within a record: its container, and its key or index there.

    One time in ten it is the record itself.
    """
    holder: Any = records
    key: Any = position
    while (inner := holder[key]) and isinstance(inner, dict | list) and draw(st.integers(0, 9)):
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        holder, key = inner, draw(st.sampled_from(keys))

    return holder, key


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes, *, cut: bool) -> bytes:
    """A file's content with one fault.

    It is cut off (if `cut`), has a byte that is not UTF-8, is in another encoding, or is nearly
    empty. It is never cut at the end of a line, which would leave a valid file.
    """
    kinds = ["byte", "encoding", "next to nothing", *(["cut"] if cut else [])]
    kind = draw(st.sampled_from(kinds))

    if kind == "cut":
        within_lines = st.integers(1, len(content.rstrip()) - 1).filter(
            lambda end: b"\n" not in content[end - 1 : end + 1]
        )
        return content[: draw(within_lines)]

    if kind == "byte":
        position = draw(st.integers(0, len(content) - 1))
        return content[:position] + b"\xff" + content[position:]  # UTF-8 never contains this byte

    if kind == "encoding":
        return content.decode("utf-8").encode("utf-16")

    return draw(st.sampled_from([b"", b"\n", b"null", b"0", b"\x00"]))


@dataclass(frozen=True)
class ReadOutcome:
    questions: int
    notes: tuple[str, ...]
    """Notes of the data set."""


class DamagedFiles:
    """A damaged file is refused in one line, or a note counts the questions that it loses."""

    shows_a_cut: bool = True
    """False for a format, such as CSV, whose beginning may be a whole file."""
    records_have_ids: bool = True
    """False for rows without an id, if two equal rows may both be intended; none is then
    duplicated.
    """
    derives_questions: bool = False
    """True for a data set that derives its questions from its records: a changed record then gives
    different questions.
    """
    examples: int = 150
    """Number of damaged files of each kind."""

    def build(self, **given: Any) -> Dataset:
        """The data set under the given settings, such as `path` and `allow_unpinned`.

        Without settings, the data set that the pins describe.
        """
        raise NotImplementedError("define build() in your subclass")

    def raw(self) -> Sequence[Any] | None:
        """A few records in the form of the file; None for a data set that reads no file, so that
        nothing is damaged.
        """
        return None

    def write(self, records: Sequence[Any], folder: Path) -> Path:
        """Writes records as a file of the data set's format. The default is a JSON list."""
        path = folder / "damaged.json"
        path.write_text(json.dumps(list(records)), encoding="utf-8")
        return path

    def file_of(self, path: Path) -> Path:
        """The file in which `write` put the records, for a data set that is a folder."""
        return path

    def _play(self) -> settings:
        """The same damage in each run, no folder of examples, and no deadline, for slow disks."""
        return settings(
            max_examples=self.examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )

    def outcome(self, path: Path) -> ReadOutcome | UserError:
        """The content of a file, or the error that refuses it."""
        try:
            dataset = self.build(path=str(path), allow_unpinned=True)
            loaded = dataset.open()
            questions = sum(len(case.questions) for case in dataset.read())
            return ReadOutcome(questions, (*loaded.notes, *dataset.notes()))
        except UserError as error:
            return error

    def sound(self, path: Path) -> ReadOutcome:
        """The content of the file before any damage."""
        whole = self.outcome(path)
        assert isinstance(whole, ReadOutcome) and whole.questions, (
            f"the undamaged records are refused: {whole}"
        )
        return whole

    def check_damaged(self, path: Path, whole: ReadOutcome) -> None:
        """A damaged file is refused in one line that names it, or all its questions are read, or a
        note counts the missing ones.
        """
        outcome = self.outcome(path)
        if isinstance(outcome, UserError):
            assert path.name in outcome.message, (
                f"the error does not name the file: {outcome.message}"
            )
            assert "\n" not in outcome.message, (
                f"the error is longer than one line: {outcome.message}"
            )
        elif not self.derives_questions and outcome.questions != whole.questions:
            assert outcome.questions < whole.questions, (
                f"{outcome.questions} questions were read instead of {whole.questions}"
            )
            assert outcome.notes != whole.notes, (
                f"{outcome.questions} questions were read instead of {whole.questions}, without "
                "a note"
            )

    def test_a_damaged_record_is_refused_or_loses_no_question(self, tmp_path: Path) -> None:
        records = self.raw()
        if not records:
            pytest.skip("the data set reads no records")

        whole = self.sound(self.write(records, tmp_path))

        @self._play()
        @given(damaged_records(records, twice=self.records_have_ids))
        def play(damaged: list[Any]) -> None:
            self.check_damaged(self.write(damaged, tmp_path), whole)

        play()

    def test_a_damaged_file_is_refused_or_loses_no_question(self, tmp_path: Path) -> None:
        records = self.raw()
        if not records:
            pytest.skip("the data set reads no records")

        path = self.write(records, tmp_path)
        file = self.file_of(path)
        whole, content = self.sound(path), file.read_bytes()

        @self._play()
        @given(damaged_bytes(content, cut=self.shows_a_cut))
        def play(damaged: bytes) -> None:
            file.write_bytes(damaged)
            self.check_damaged(path, whole)

        play()
