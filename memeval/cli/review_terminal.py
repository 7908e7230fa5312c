"""A review on the terminal: questions are asked one by one, and shown as text."""

import time
from collections.abc import Iterator, Sequence
from itertools import chain

from memeval.cli.show import wrap
from memeval.datasets.json.review import LONGEST_S, ReviewChange, ReviewFile, ShownQuestion
from memeval.errors import UserError
from memeval.records import EvalCase
from memeval.runs.display.terminal import ask
from memeval.text.shown import one_line

KEYS = "a(ccept) r(eject) e(dit) t(urns) j(next) k(previous) u(ndo) q(uit)"
NONE, APART = "-", "|"
"""Input for no answer or no evidence, and the separator between several answers."""


def review_in_terminal(opened: ReviewFile) -> None:
    """Asks until all questions are decided, the user ends it, or the input ends."""
    questions = opened.questions()
    index = next_undecided(questions, -1)
    is_new, since = True, 0.0
    while True:
        if is_new:
            # A key is for the question shown: the file is read again only before another is shown.
            questions = opened.questions()
            if not questions:
                print("  the file has no questions any more")
                return

            index = min(index, len(questions) - 1)
            for line in question_lines(questions, index, opened.case(questions[index].case)):
                print(line)

            since = time.monotonic()

        key = ask(f"  {KEYS}: ")
        if key is None or key == "q":
            return

        try:
            seconds = min(time.monotonic() - since, LONGEST_S)
            now = _handle_key(opened, questions, index, key, seconds)
        except UserError as error:
            # A mistake, or a question that was changed elsewhere, does not end the review.
            print(f"  not saved: {one_line(error, 1000)}")
            is_new = True
            continue

        if key in ("a", "r") and not any(question.is_left for question in opened.questions()):
            return

        is_new = now != index or key in ("e", "u")
        index = now


def question_lines(questions: Sequence[ShownQuestion], index: int, case: EvalCase) -> Iterator[str]:
    """A question with its answers and its evidence."""
    question = questions[index]
    left = sum(question.is_left for question in questions)
    yield ""
    facts = f"{question.name}  {question.kind}  {question.state}"
    if question.reason:
        facts += f": {question.reason}"

    yield f"{index + 1:,} of {len(questions):,}, {left:,} left  {one_line(facts, 400)}"
    yield from wrap("question", question.question)
    if not question.answers:
        yield "  answer: none; the right answer is a refusal"

    for name, values in {"answer": question.answers, **question.given}.items():
        for value in values:
            yield from wrap(name, value)

    yield from turn_lines(case, question.evidence)


def turn_lines(case: EvalCase, chosen: Sequence[int] | None) -> Iterator[str]:
    """Turns with their positions: the chosen ones, or all of them."""
    turns = list(case.turns)
    places = range(len(turns)) if chosen is None else chosen
    for position in places:
        yield from wrap(f"turn {position}, {turns[position].speaker}", turns[position].text)


def next_undecided(questions: Sequence[ShownQuestion], index: int) -> int:
    """Position of the next undecided question after `index`, wrapping around; else `index`."""
    # Also if `index` is past the end: another command may have removed questions.
    for at in chain(range(index + 1, len(questions)), range(len(questions))):
        if questions[at].is_left:
            return at

    return max(index, 0)


def _handle_key(
    opened: ReviewFile, questions: Sequence[ShownQuestion], index: int, key: str, seconds: float
) -> int:
    """Performs the action of a key. Returns the position of the question to show next."""
    question = questions[index]
    if key == "a":
        accepted = ReviewChange(decision="accepted", seconds=seconds)
        opened.save(question.name, question.version, accepted)
        return next_undecided(opened.questions(), index)

    if key == "r":
        rejected = ReviewChange(decision="rejected", reason=ask("  why? ") or "", seconds=seconds)
        opened.save(question.name, question.version, rejected)
        return next_undecided(opened.questions(), index)

    if key == "e":
        opened.save(question.name, question.version, _ask_change())
    elif key == "t":
        for line in turn_lines(opened.case(question.case), None):
            print(line)
    elif key == "j":
        return min(index + 1, len(questions) - 1)
    elif key == "k":
        return max(index - 1, 0)
    elif key == "u":
        undone = opened.undo()
        if undone is not None:
            return [question.name for question in questions].index(undone.name)

        print("  nothing to undo")
    else:
        print(f"  type one of {KEYS}")

    return index


def _ask_change() -> ReviewChange:
    """Input for the fields of a question; an empty line leaves a field as it is.

    Raises `UserError` for evidence that is not a list of numbers.
    """
    text = ask("  question (empty: unchanged): ")
    answers = ask(f"  answers, separated by {APART} ({NONE}: none): ")
    evidence = ask(f"  turns of the evidence, such as 3 12 ({NONE}: none): ")
    parts = places = None
    if evidence:
        words = evidence.replace(NONE, "").split()
        if not all(word.isascii() and word.isdigit() for word in words):
            raise UserError(f"'{one_line(evidence)}' is not a list of turns, such as 3 12")

        places = list(map(int, words))

    if answers == NONE:
        parts = []
    elif answers:
        parts = list(filter(str.strip, answers.split(APART)))

    return ReviewChange(question=text or None, answers=parts, evidence=places)
