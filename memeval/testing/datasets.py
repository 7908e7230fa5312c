"""The conformance suite of data sets.

Subclass it, declare how your adapter is built and what it contains, and run pytest:

class TestMine(DatasetContract):
    counts: ClassVar = {"cases": 3, "questions": 60}
    first, tenth, last = ("a/q0", "Who …?"), ("a/q9", "Where …?"), ("c/q19", "When …?")

    def build(self, **settings: Any) -> Dataset:
        return Mine(FILE, Mine.info, MySettings(**settings))
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, ClassVar

from memeval.datasets.contract import GRANULARITIES, OBSERVATION, SUMMARY
from memeval.datasets.granularity import chunks_by
from memeval.datasets.grouping import repeated
from memeval.datasets.stats import counts
from memeval.records import EvalCase, EvalQuestion, Query
from memeval.testing.damaged_files import DamagedFiles
from memeval.testing.sample import turn_ids_of

TELLING = re.compile(
    r"answer|gold|evidence|(?:^|[_\W])abs(?:$|[_\W])|correct|needle|planted", re.IGNORECASE
)
"""Words that must not be in an id that systems see, because they would reveal what is asked about.
"""

GOLD_SIDE = frozenset(
    {
        "question_id",
        "gold",
        "rubric",
        "category",
        "evidence",
        "right_choices",
        "answerable",
        "facets",
        "asked_after",
        "traces",
    }
)
"""Fields of a question that no system sees."""


class DatasetContract(DamagedFiles):
    """The rules of every data set."""

    counts: ClassVar[Mapping[str, int]] = {}
    """Pinned: numbers of cases, sessions, turns and questions; only the given ones are compared."""
    first: tuple[str, str] | None = None
    """Pinned: id and text of the first question."""
    tenth: tuple[str, str] | None = None
    last: tuple[str, str] | None = None
    sessions_ascend: bool = True
    """False for a data set whose source states that its sessions are out of order."""

    def cases(self) -> list[EvalCase]:
        """Every case with all its questions."""
        dataset = self.build()
        dataset.open()
        return list(dataset.read())

    def questions(self) -> list[EvalQuestion]:
        return questions_of(self.cases())

    # The contract: see also `DamagedFiles`

    def test_ids_are_unique(self) -> None:
        cases = self.cases()
        assert cases, "the data set has no cases"
        assert repeated(case.case_id for case in cases) == []
        assert repeated(question.question_id for question in questions_of(cases)) == []
        for case in cases:
            assert repeated(session.session_id for session in case.sessions) == []
            assert repeated(turn.turn_id for turn in case.turns) == []

    def test_times_ascend(self) -> None:
        for case in self.cases():
            if self.sessions_ascend:
                assert ascend(session.started_at for session in case.sessions), (
                    f"{case.case_id}: sessions are out of order"
                )

            for session in case.sessions:
                assert ascend(turn.time for turn in session.turns), (
                    f"{case.case_id} {session.session_id}: turns are out of order"
                )

    def test_evidence_is_among_the_turns(self) -> None:
        for case in self.cases():
            turns = case.turn_ids
            for question in case.questions:
                assert set(question.evidence) <= turns, (
                    f"{question.question_id}: evidence {question.evidence} is not in its case"
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
                    0 <= index < len(question.choices) for index in question.right_choices
                ), question.question_id
                assert question.multi_select or len(question.right_choices) <= 1, (
                    f"{question.question_id}: several choices are right, but only one may be chosen"
                )
            else:
                assert question.gold or not question.answerable, (
                    f"{question.question_id}: it has no gold, but is not unanswerable"
                )

            assert isinstance(question.gold, tuple), f"{question.question_id}: gold is not a tuple"
            assert all(map(str.strip, question.gold)), f"{question.question_id}: a gold is empty"
            assert question.text.strip(), f"{question.question_id}: the question is empty"

    def test_categories_have_names(self) -> None:
        dataset = self.build()
        dataset.open()
        categories = {question.category for question in questions_of(dataset.read())}
        assert not dataset.category_names or categories <= set(dataset.category_names), (
            "a category of the file has no name"
        )
        assert (dataset.headline or frozenset()) <= set(dataset.category_names)

    def test_facets_are_texts_with_names_that_metrics_can_bear(self) -> None:
        for question in self.questions():
            for facet, value in question.facets.items():
                assert re.fullmatch(r"\w+", facet), f"facet '{facet}' is not a plain word"
                assert value.strip() and "/" not in value, (
                    f"{question.question_id}: facet {facet}='{value}'"
                )

    def test_what_systems_see_tells_nothing(self) -> None:
        """Ids name neither gold nor evidence, and evidence turns have ids like all other turns."""
        like_evidence, like_others = set[str](), set[str]()
        for case in self.cases():
            cited = set[str]().union(*(question.evidence for question in case.questions))
            turn_ids = [turn.turn_id for turn in case.turns]
            session_ids = [session.session_id for session in case.sessions]
            for seen in (case.case_id, *session_ids, *turn_ids):
                assert not TELLING.search(seen), f"the id '{seen}' reveals what is asked about"

            like_evidence.update(map(shape, cited.intersection(turn_ids)))
            like_others.update(map(shape, set(turn_ids) - cited))

        # If every turn is evidence, ids can't distinguish evidence from other turns.
        assert not like_others or like_evidence <= like_others, (
            f"its ids reveal the evidence: {like_evidence - like_others}"
        )
        assert GOLD_SIDE.isdisjoint(field.name for field in fields(Query))

    def test_two_reads_are_equal(self) -> None:
        dataset, other = self.build(), self.build()
        assert dataset.open().sha256 == other.open().sha256
        first = list(dataset.read())
        assert first == list(other.read())
        assert first == list(dataset.read()), "a second read of the same object differs"

    def test_limits_are_kept(self) -> None:
        whole = self.cases()
        (case,) = self.open_cases(limit_cases=1, limit_questions=1)
        assert len(case.questions) == 1
        asked = whole[0].questions or questions_of(whole)[:1]
        category = asked[-1].category
        chosen = questions_of(self.open_cases(categories=(category,)))
        assert {question.category for question in chosen} == {category}

    def open_cases(self, **given: Any) -> list[EvalCase]:
        """The cases that are asked about under the given settings."""
        dataset = self.build(**given)
        dataset.open()
        return list(dataset.cases())

    def test_granularities_cut(self) -> None:
        dataset = self.build()
        dataset.open()
        case = next(iter(dataset.cases()))
        turns = case.turn_ids
        names = [name for name in dataset.granularities if name in GRANULARITIES]
        assert names and set(dataset.granularities) <= {*GRANULARITIES, SUMMARY, OBSERVATION}
        for name in names:
            sizes = (64, 8) if name == "chunk" else ()
            kept = turn_ids_of(chunks_by(case, name, *sizes))
            assert kept == turns, f"granularity={name} loses turns"

    def test_counts_are_pinned(self) -> None:
        assert self.counts, "pin `counts` in your subclass: {'cases': …, 'questions': …}"
        counted = counts(self.cases())
        assert {noun: counted[noun] for noun in self.counts} == dict(self.counts)

    def test_the_first_the_tenth_and_the_last_question_are_pinned(self) -> None:
        pins = [(question.question_id, question.text) for question in self.questions()]
        assert self.first and self.last, (
            f"pin `first`, `tenth` and `last` in your subclass: {pins[0]}, {pins[9:10]}, {pins[-1]}"
        )
        assert (pins[0], pins[-1]) == (self.first, self.last)
        assert pins[9:10] == ([self.tenth] if self.tenth else [])


def questions_of(cases: Iterable[EvalCase]) -> list[EvalQuestion]:
    questions: list[EvalQuestion] = []
    for case in cases:
        questions += case.questions

    return questions


def ascend(times: Iterable[datetime | None]) -> bool:
    """Whether the known ones among the times are in order."""
    known = list(filter(None, times))
    return known == sorted(known)


def shape(text: str) -> str:
    """An id without its numbers: `D3:14` becomes `D0:0`."""
    return re.sub(r"\d+", "0", text)
