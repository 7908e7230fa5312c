"""The conformance suite of data sets.

Subclass it, say how your adapter is built and what it holds, and run pytest:

class TestMine(DatasetContract):
    counts: ClassVar = {"cases": 3, "questions": 60}
    first, tenth, last = ("a/q0", "Who …?"), ("a/q9", "Where …?"), ("c/q19", "When …?")

    def build(self, **settings: Any) -> Dataset:
        return Mine(FILE, Mine.info, MySettings(**settings))
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings

from memeval.datasets.contract import GRANULARITIES, Dataset
from memeval.datasets.fetch import counts
from memeval.errors import UserError
from memeval.granularity import Granularity, chunks
from memeval.records import EvalCase, EvalQuestion, Query
from memeval.testing.mutations import damaged_bytes, damaged_records

TELLING = re.compile(
    r"answer|gold|evidence|(?:^|[_\W])abs(?:$|[_\W])|correct|needle|planted", re.IGNORECASE
)
"""Words that must not be in an id that systems see: they would reveal what is asked about."""

GOLD_SIDE = frozenset(
    {"question_id", "gold", "category", "evidence", "right_choices", "answerable", "facets"}
)
"""Fields of a question that no system sees."""


@dataclass(frozen=True)
class Outcome:
    """What was read of a file."""

    questions: int
    notes: tuple[str, ...]
    """What the adapter said of it."""


class DatasetContract:
    """What every data set keeps to."""

    counts: ClassVar[Mapping[str, int]] = {}
    """Pinned: how many cases, sessions, turns and questions there are; those that are named are
    compared.
    """
    first: tuple[str, str] | None = None
    """Pinned: id and text of the first question."""
    tenth: tuple[str, str] | None = None
    last: tuple[str, str] | None = None
    sessions_ascend: bool = True
    """False for a data set whose sessions are stated to come out of order."""
    shows_a_cut: bool = True
    """False for a format, such as CSV, of which the beginning may be a whole file."""
    records_have_ids: bool = True
    """False for rows without an id, of which two alike may both be meant; none is then written
    twice.
    """
    derives_questions: bool = False
    """True for a data set that makes its questions from its records: another record is then other
    questions.
    """
    examples: int = 150
    """How many damaged files of either sort are tried."""

    def build(self, **given: Any) -> Dataset:
        """The data set under settings of its own, `path` and `allow_unpinned` among them; without
        any, the one that the pins are of.
        """
        raise NotImplementedError("say in your subclass how the data set is built")

    def raw(self) -> Sequence[Any] | None:
        """Records as the file has them, a few being enough; None for a data set that reads no file,
        which is then not damaged.
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

    # What the tests stand on

    def cases(self) -> list[EvalCase]:
        """Every case with all its questions."""
        dataset = self.build()
        dataset.open()
        return list(dataset.read())

    def questions(self) -> list[EvalQuestion]:
        return [question for case in self.cases() for question in case.questions]

    def outcome(self, path: Path) -> Outcome | UserError:
        """What a file holds, or how it is refused."""
        try:
            dataset = self.build(path=str(path), allow_unpinned=True)
            loaded = dataset.open()
            questions = sum(len(case.questions) for case in dataset.read())
            return Outcome(questions, (*loaded.notes, *dataset.notes()))
        except UserError as error:
            return error

    def sound(self, path: Path) -> Outcome:
        """What the file holds before anything is damaged."""
        whole = self.outcome(path)
        assert isinstance(whole, Outcome) and whole.questions, (
            f"the sound records are refused: {whole}"
        )
        return whole

    def check_damaged(self, path: Path, whole: Outcome) -> None:
        """A damaged file is refused in one line that names it, or all its questions are there, or a
        note counts those that are not.
        """
        found = self.outcome(path)
        if isinstance(found, UserError):
            assert path.name in found.message, f"the error does not name the file: {found.message}"
            assert "\n" not in found.message, f"the error is more than a line: {found.message}"
        elif not self.derives_questions and found.questions != whole.questions:
            assert found.questions < whole.questions, (
                f"{found.questions} questions were read where there are {whole.questions}"
            )
            assert found.notes != whole.notes, (
                f"{found.questions} questions were read where there are {whole.questions}, and "
                "nothing was said"
            )

    # The contract

    def test_ids_are_unique(self) -> None:
        cases = self.cases()
        assert cases, "there is no case"
        assert repeated(case.case_id for case in cases) == []
        assert repeated(question.question_id for case in cases for question in case.questions) == []
        for case in cases:
            assert repeated(session.session_id for session in case.sessions) == []
            assert (
                repeated(turn.turn_id for session in case.sessions for turn in session.turns) == []
            )

    def test_times_ascend(self) -> None:
        for case in self.cases():
            starts = [session.started_at for session in case.sessions if session.started_at]
            if self.sessions_ascend:
                assert all(one <= other for one, other in pairwise(starts)), (
                    f"{case.case_id}: sessions are out of order"
                )

            for session in case.sessions:
                times = [turn.time for turn in session.turns if turn.time]
                assert all(one <= other for one, other in pairwise(times)), (
                    f"{case.case_id} {session.session_id}: turns are out of order"
                )

    def test_evidence_is_among_the_turns(self) -> None:
        for case in self.cases():
            turns = {turn.turn_id for session in case.sessions for turn in session.turns}
            for question in case.questions:
                assert set(question.evidence) <= turns, (
                    f"{question.question_id}: evidence {question.evidence} is no turn of its case"
                )
                assert repeated(question.evidence) == []

    def test_there_is_a_right_answer_or_a_refusal(self) -> None:
        for question in self.questions():
            if question.choices:
                assert question.right_choices or not question.answerable, (
                    f"{question.question_id}: no choice is right"
                )
                assert list(question.right_choices) == sorted(set(question.right_choices))
                assert all(
                    0 <= place < len(question.choices) for place in question.right_choices
                ), question.question_id
                assert question.multi_select or len(question.right_choices) <= 1, (
                    f"{question.question_id}: several are right, one may be chosen"
                )
            else:
                assert question.gold or not question.answerable, (
                    f"{question.question_id}: there is no gold, and no refusal is due"
                )

            assert all(gold.strip() for gold in question.gold), (
                f"{question.question_id}: a gold is empty"
            )
            assert question.text.strip(), f"{question.question_id}: the question is empty"

    def test_categories_have_names(self) -> None:
        dataset = self.build()
        dataset.open()
        found = {question.category for case in dataset.read() for question in case.questions}
        assert not dataset.category_names or found <= set(dataset.category_names), (
            "a category of the file has no name"
        )
        assert (dataset.headline or frozenset()) <= set(dataset.category_names)

    def test_facets_are_texts_with_names_that_metrics_can_bear(self) -> None:
        for question in self.questions():
            for facet, value in question.facets.items():
                assert re.fullmatch(r"\w+", facet), f"facet '{facet}' is no plain word"
                assert value.strip() and "/" not in value, (
                    f"{question.question_id}: facet {facet}='{value}'"
                )

    def test_what_systems_see_tells_nothing(self) -> None:
        """Ids name neither gold nor evidence, and evidence turns have ids like all others."""
        like_evidence, like_others = set[str](), set[str]()
        for case in self.cases():
            cited = {turn_id for question in case.questions for turn_id in question.evidence}
            turns = [turn.turn_id for session in case.sessions for turn in session.turns]
            for seen in (case.case_id, *(session.session_id for session in case.sessions), *turns):
                assert not TELLING.search(seen), f"the id '{seen}' tells what is asked about"

            like_evidence |= {shape(turn_id) for turn_id in turns if turn_id in cited}
            like_others |= {shape(turn_id) for turn_id in turns if turn_id not in cited}

        assert not like_others or like_evidence <= like_others, (
            f"evidence is told by its ids: {like_evidence - like_others}"
        )
        assert GOLD_SIDE.isdisjoint(field.name for field in fields(Query))

    def test_two_reads_are_equal(self) -> None:
        one, other = self.build(), self.build()
        assert one.open().sha256 == other.open().sha256
        first = list(one.read())
        assert first == list(other.read())
        assert first == list(one.read()), "a second read of the same object differs"

    def test_limits_are_kept(self) -> None:
        whole = self.cases()
        (case,) = self.opened(limit_cases=1, limit_questions=1)
        assert len(case.questions) == 1
        category = (
            whole[0].questions[-1].category if whole[0].questions else self.questions()[0].category
        )
        chosen = [
            question for case in self.opened(categories=(category,)) for question in case.questions
        ]
        assert {question.category for question in chosen} == {category}

    def opened(self, **given: Any) -> list[EvalCase]:
        """The cases that are asked about under settings."""
        dataset = self.build(**given)
        dataset.open()
        return list(dataset.cases())

    def test_granularities_cut(self) -> None:
        dataset = self.build()
        dataset.open()
        case = next(iter(dataset.cases()))
        turns = {turn.turn_id for session in case.sessions for turn in session.turns}
        assert dataset.granularities and set(dataset.granularities) <= set(GRANULARITIES)
        for name in dataset.granularities:
            granularity = Granularity("chunk", 64, 8) if name == "chunk" else Granularity(name)
            kept = {turn_id for chunk in chunks(case, granularity) for turn_id in chunk.turn_ids}
            assert kept == turns, f"granularity={name} loses turns"

    def test_counts_are_pinned(self) -> None:
        assert self.counts, "pin `counts` in your subclass: {'cases': …, 'questions': …}"
        found = counts(self.cases())
        assert {noun: found[noun] for noun in self.counts} == dict(self.counts)

    def test_the_first_the_tenth_and_the_last_question_are_pinned(self) -> None:
        told = [(question.question_id, question.text) for question in self.questions()]
        assert self.first and self.last, (
            f"pin `first`, `tenth` and `last` in your subclass: {told[0]}, {told[9:10]}, {told[-1]}"
        )
        assert (told[0], told[-1]) == (self.first, self.last)
        assert told[9:10] == ([self.tenth] if self.tenth else [])

    def test_a_damaged_record_is_refused_or_loses_no_question(self, tmp_path: Path) -> None:
        records = self.raw()
        if not records:
            pytest.skip("the data set reads no records")

        whole = self.sound(self.write(records, tmp_path))

        @settings(
            max_examples=self.examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
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

        @settings(
            max_examples=self.examples,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(damaged_bytes(content, cut=self.shows_a_cut))
        def play(damaged: bytes) -> None:
            file.write_bytes(damaged)
            self.check_damaged(path, whole)

        play()


def repeated(values: Iterable[str]) -> list[str]:
    """Those that occur more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def shape(text: str) -> str:
    """An id without its numbers: `D3:14` is `D0:0`."""
    return re.sub(r"\d+", "0", text)
