"""Counts a data set case by case, for tables like those in papers about data sets."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct, field

from memeval.datasets.granularity import line
from memeval.llm.tokens import count_tokens
from memeval.records import CategoryId, EvalCase

NOUNS = ("cases", "sessions", "turns", "questions")


def counts(cases: Iterable[EvalCase]) -> Counter[str]:
    """Numbers of cases, sessions, turns and questions."""
    total: Counter[str] = Counter()
    for case in cases:
        turns = sum(len(session.turns) for session in case.sessions)
        total.update(
            cases=1, sessions=len(case.sessions), turns=turns, questions=len(case.questions)
        )

    return total


class StatsRow(Struct):
    """One row of the table: the counts of a case, of a category or of all."""

    cases: int = 0
    sessions: int = 0
    turns: int = 0
    tokens: int = 0
    """Tokens of all turns as chunks show them, by the offline count."""
    most_tokens: int = 0
    """Tokens of the largest case."""
    questions: int = 0
    categories: Counter[CategoryId] = field(default_factory=Counter)
    evidence: int = 0
    """Evidence turns, over all questions."""
    with_evidence: int = 0
    """Questions that name evidence."""
    answerable: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, case: EvalCase, tokens: int, category: CategoryId | None = None) -> None:
        """Adds a case with all its questions, or with those of one category."""
        self.cases += 1
        self.sessions += len(case.sessions)
        self.tokens += tokens
        self.most_tokens = max(self.most_tokens, tokens)
        for question in case.questions:
            if category in (None, question.category):
                self.questions += 1
                self.categories[question.category] += 1
                self.evidence += len(question.evidence)
                self.with_evidence += bool(question.evidence)
                self.answerable += question.answerable

        for session in case.sessions:
            self.turns += len(session.turns)
            time = session.started_at
            if time is not None:
                self.first = min(time, self.first or time)
                self.last = max(time, self.last or time)


class Stats(Struct):
    """Content of a data set."""

    by_case: dict[str, StatsRow]
    """Empty if there are more cases than requested, or no more questions than cases."""
    by_category: dict[CategoryId, StatsRow]
    whole: StatsRow
    facets: dict[str, Counter[str]]
    """Questions by value of each facet."""


def measure(cases: Iterable[EvalCase], most_cases: int) -> Stats:
    """Counts the cases as they come; keeps a row for each if there are at most `most_cases`, and
    more questions than cases.
    """
    stats = Stats(by_case={}, by_category={}, whole=StatsRow(), facets={})
    for case in cases:
        tokens = sum(map(count_tokens, map(line, case.turns)))
        stats.whole.add(case, tokens)
        if stats.whole.cases <= most_cases:
            stats.by_case.setdefault(case.case_id, StatsRow()).add(case, tokens)

        for category in dict.fromkeys(question.category for question in case.questions):
            stats.by_category.setdefault(category, StatsRow()).add(case, tokens, category)

        for question in case.questions:
            for facet, value in question.facets.items():
                stats.facets.setdefault(facet, Counter())[value] += 1

    if stats.whole.cases > most_cases or stats.whole.questions <= stats.whole.cases:
        stats.by_case.clear()

    return stats
