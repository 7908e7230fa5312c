"""The judged answers of a run, used for labels and for the agreement of judges, and a random sample
of them to label: stratified, and the same for the same seed.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from memeval.errors import UserError
from memeval.records import Status
from memeval.results import Record
from memeval.results.run import Run
from memeval.text.names import text_digest
from memeval.text.shown import one_line

AnswerKey = tuple[str, int]
"""A question's id and a repeat, from 0."""


class JudgedAnswer(Struct, frozen=True):
    """An answer of a run, with the verdict of its judge."""

    question_id: str
    repeat: int
    case_id: str
    category: str
    question: str
    gold: tuple[str, ...]
    """Empty if the right answer is a refusal."""
    answer: str
    right: bool | None
    """Whether the judge called it right; None if its verdict could not be read, or it failed."""
    weight: float = 1.0
    """Number of questions that it represents, divided among the repeats of its question."""

    @property
    def key(self) -> AnswerKey:
        return self.question_id, self.repeat

    @property
    def answer_id(self) -> str:
        """A digest that identifies the answer that a label is about."""
        return text_digest(self.answer)[:16]


def read_answers(run: Run) -> list[JudgedAnswer]:
    """The answers of a run that count for its accuracy, those without a verdict included.

    Raises `UserError` for unreadable records, and for multiple-choice or graded answers.
    """
    headline = run.summary.headline
    answers = []
    for record in run.read_records():
        # A rule reads choices: there is no judge whose errors could be corrected.
        if record.choices:
            raise UserError(
                f"run {one_line(run.key)} is multiple choice: it has no judge to correct"
            )

        if headline and str(record.category) not in headline:
            continue
        if record.verdict is not None and record.verdict.graded:
            raise UserError(
                f"run {one_line(run.key)} has graded scores, not verdicts of right and wrong, "
                "so a judge's errors can't be corrected"
            )

        if record.status in _JUDGED and record.hypothesis is not None:
            answers.append(_answer(record))

    return answers


# A judge that failed has judged nothing, but other judges may have: agreement needs the answer.
_JUDGED = (Status.OK, Status.UNPARSED, Status.JUDGE_FAILED)


def _answer(record: Record) -> JudgedAnswer:
    right = None if record.score is None else record.score == 1.0
    return JudgedAnswer(
        question_id=record.question_id,
        repeat=record.repeat,
        case_id=record.case_id,
        category=record.category_name or str(record.category),
        question=record.question,
        gold=record.gold,
        answer=record.hypothesis or "",
        right=right,
        weight=record.weight,
    )


def scored_answers(run: Run) -> list[JudgedAnswer]:
    """The answers that have a verdict: their weighted mean is `accuracy`.

    Raises `UserError` if no answer has a verdict.
    """
    answers = [answer for answer in read_answers(run) if answer.right is not None]
    if not answers:
        raise UserError(f"run {one_line(run.key)} has no answer with a verdict")

    # Repeats of a question are averaged first: each gets a part of its weight.
    repeats = Counter(map(QUESTION_OF, answers))
    return [
        replace(answer, weight=answer.weight / repeats[answer.question_id]) for answer in answers
    ]


def by_key(answers: Iterable[JudgedAnswer]) -> dict[AnswerKey, JudgedAnswer]:
    """The answers, by question and repeat."""
    return {answer.key: answer for answer in answers}


def verdicts_of(answers: Sequence[JudgedAnswer]) -> list[float]:
    """1 for each answer that the judge called right, 0 for the others."""
    return [float(bool(answer.right)) for answer in answers]


def weights_of(answers: Sequence[JudgedAnswer]) -> list[float]:
    """Number of questions that each answer represents."""
    return list(map(attrgetter("weight"), answers))


Cluster = Callable[[JudgedAnswer], str]
QUESTION_OF: Cluster = attrgetter("question_id")
CASE_OF: Cluster = attrgetter("case_id")


def cluster_of(answers: Sequence[JudgedAnswer]) -> Cluster | None:
    """The cluster of an answer, within which answers are correlated: its conversation, or its
    question if each question has its own conversation. None if all answers are independent, or in
    one cluster, from which no error can be estimated.
    """
    cases, questions = len(set(map(CASE_OF, answers))), len(set(map(QUESTION_OF, answers)))
    if 1 < cases < questions:
        return CASE_OF
    if cases >= questions and 1 < questions < len(answers):
        return QUESTION_OF

    return None


STRATA: Mapping[str, Callable[[JudgedAnswer], str]] = {
    "category": lambda answer: answer.category,
    "case": CASE_OF,
    "none": lambda _: "",
}
"""Properties by which a sample can be stratified."""


def draw_sample(
    answers: Sequence[JudgedAnswer], count: int, *, by: str, seed: int, run_key: str
) -> list[JudgedAnswer]:
    """`count` answers, each stratum in proportion to its size, in random order.

    The first few answers are also a random sample. A smaller sample is part of a larger one under
    the same seed, up to rounding.
    """
    # The run is part of the seed: two runs of one data set have different questions labelled.
    draw = random.Random(f"{run_key}/{seed}")
    strata: dict[str, list[JudgedAnswer]] = {}
    for answer in answers:
        strata.setdefault(STRATA[by](answer), []).append(answer)

    for stratum in strata.values():
        draw.shuffle(stratum)

    sizes = {name: len(stratum) for name, stratum in strata.items()}
    sample = []
    for name, quota in allocate(sizes, min(count, len(answers))).items():
        sample += strata[name][:quota]

    # Otherwise a person who stops halfway would have labelled only the first strata.
    draw.shuffle(sample)
    return sample


def allocate(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Allocation of `count` to the strata: their shares, rounded by the largest remainders."""
    total = sum(sizes.values())
    quotas = {name: count * size // total for name, size in sizes.items()}
    # Rounding each share separately would draw more or fewer than `count`.
    remainders = sorted(sizes, key=lambda name: -(count * sizes[name] % total))
    for name in remainders[: count - sum(quotas.values())]:
        quotas[name] += 1

    return quotas
