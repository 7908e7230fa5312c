"""Answers to each question, if the data's licence allows publishing its texts."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from memeval.errors import UserError
from memeval.metrics.tokens import normalise
from memeval.packages.board.entries import BoardEntry
from memeval.packages.board.records import BoardAnswer, BoardQuestion, BoardRow
from memeval.packages.read import open_package
from memeval.records import Label
from memeval.results import Record
from memeval.results.run import Run
from memeval.text.redaction import redacted
from memeval.text.shown import one_line

RIGHT, WRONG, ABSTAINED, UNSCORED = "right", "wrong", "abstained", "not scored"
LONGEST_TEXT = 2_000
"""Characters of a question, a gold or an answer."""
MIN_ALIKE = 3
"""Minimum number of wrong answers that can make a gold suspect."""

RunsByAnswer = dict[tuple[str, str], Counter[str]]
"""How often each run gave an answer, by outcome and text."""


def questions_of(
    entries: Sequence[BoardEntry], rows: Sequence[BoardRow]
) -> tuple[BoardQuestion, ...]:
    """The questions that the runs of a table asked, with each run's answer; none if no package
    contains the texts of the data.

    Raises `UserError` if records can't be read.
    """
    # Level 1 refuses texts that may not be redistributed.
    if not any(entry.has_texts for entry in entries):
        return ()

    asked: dict[str, Record] = {}
    runs_by_answer: dict[str, RunsByAnswer] = {}
    labels = {row.key: row.label for row in rows}
    by_package: dict[Path, list[BoardEntry]] = {}
    for entry in entries:
        by_package.setdefault(entry.package.path, []).append(entry)

    for entry, records in chain.from_iterable(map(_records_of, by_package.values())):
        for record in records:
            if entry.has_texts:
                asked.setdefault(record.question_id, record)

            key = _outcome(record), _text(record.hypothesis or "")
            answers = runs_by_answer.setdefault(record.question_id, {})
            answers.setdefault(key, Counter())[labels[entry.run.key]] += 1

    return tuple(question_of(record, runs_by_answer[name]) for name, record in asked.items())


def _records_of(entries: Sequence[BoardEntry]) -> Iterator[tuple[BoardEntry, list[Record]]]:
    """The records of entries of one package, which is opened again."""
    first = entries[0].package
    with open_package(first.path) as package:
        if package.id != first.id:
            raise UserError(f"{one_line(first.path.name)} changed while the board was being made")

        for entry in entries:
            folder = package.folder / "runs" / entry.run.folder.name
            yield entry, Run(folder, entry.run.summary).read_records()


def question_of(record: Record, runs_by_answer: RunsByAnswer) -> BoardQuestion:
    """A question with all answers, the right ones first."""
    order = (RIGHT, WRONG, ABSTAINED, UNSCORED)
    answers = [BoardAnswer(outcome, text, who) for (outcome, text), who in runs_by_answer.items()]
    answers.sort(
        key=lambda answer: (order.index(answer.outcome), -len(answer.systems), answer.text)
    )
    return BoardQuestion(
        id=one_line(record.question_id),
        category=one_line(record.category_name or record.category, 80),
        text=_text(record.question),
        gold=tuple(map(_text, record.gold)),
        right=_count(answers, RIGHT),
        scored=_count(answers, RIGHT, WRONG, ABSTAINED),
        is_suspect=_is_suspect(answers),
        answers=tuple(answers),
    )


def _count(answers: Iterable[BoardAnswer], *outcomes: str) -> int:
    return sum(answer.count for answer in answers if answer.outcome in outcomes)


def _is_suspect(answers: Sequence[BoardAnswer]) -> bool:
    """Whether no answer is right, and at least half of three or more wrong ones are the same; the
    repeats of a run count once.
    """
    alike: Counter[str] = Counter()
    for answer in answers:
        if answer.outcome == RIGHT:
            return False

        if answer.outcome == WRONG:
            alike[normalise(answer.text)] += len(answer.systems)

    wrong = alike.total()
    return wrong >= MIN_ALIKE and 2 * max(alike.values()) >= wrong


def _outcome(record: Record) -> str:
    if record.score is None or record.verdict is None:
        return UNSCORED
    if record.verdict.label is Label.ABSTAINED:
        return ABSTAINED

    return RIGHT if record.is_right else WRONG


def _text(text: str) -> str:
    clean = redacted(text[: 2 * LONGEST_TEXT])
    return clean if len(clean) <= LONGEST_TEXT else f"{clean[: LONGEST_TEXT - 1]}…"
