"""Rows in LoCoMo-MC10's schema, made from a file in LoCoMo's schema: the same questions, with wrong
choices drawn from other questions' answers.

They replace the published file if it is not available. The published wrong choices were written for
each question, but these were not, so the figures of the two can't be compared.
"""

import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from memeval.datasets.io.fields import Fields
from memeval.datasets.locomo.names import ADVERSARIAL, LOCOMO_NAMES
from memeval.datasets.locomo.schema import read_case
from memeval.metrics.refusal import is_refusal
from memeval.records import CategoryId, EvalCase

VERSION = "1"
"""Increased whenever the same file and seed give different rows."""

CHOICES = 10
NOT_ANSWERABLE = "Not answerable"
"""The right choice of category 5, and of no other."""

Pool = Mapping[CategoryId, Mapping[str, Sequence[str]]]
"""Answers by category and conversation."""


def derive_rows(samples: Sequence[Fields], seed: int) -> Iterator[Fields]:
    """A row for each question, in the file's order.

    Raises `UserError` if a conversation does not parse.

    Wrong choices are other answers of the same category: first those of the same conversation, then
    those of others, then answers of other categories, each group in a random order. No wrong choice
    has a set of words that contains that of another choice, or is contained in it, and none says
    that there is no answer. For category 5, the answers are those that its questions falsely
    suggest (`adversarial_answer`), the question's own first.
    """
    cases = [read_case(sample, captions=False) for sample in samples]
    answers = list(map(_answers, samples, cases))
    pool = _pool(cases, answers)
    for sample, case, of_case in zip(samples, cases, answers, strict=True):
        haystack = _haystack(case)
        asked = zip(case.questions, of_case, strict=True)
        for index, (question, answer) in enumerate(asked):
            # A generator for each question, so that its choices do not depend on the questions
            # before it.
            drawn = random.Random(f"{seed} {question.question_id}")
            candidates = _candidates(pool, question.category, case.case_id, drawn)
            right = answer
            if question.category == ADVERSARIAL:
                right, candidates = NOT_ANSWERABLE, chain([answer], candidates)

            choices = _choices(right, candidates)
            drawn.shuffle(choices)
            row = {
                "question_id": f"{case.case_id}_q{index}",
                "question": question.text,
                "question_type": LOCOMO_NAMES["mc10"][question.category],
                "answer": right,
                "choices": choices,
                "correct_choice_index": choices.index(right),
                "num_choices": len(choices),
                **haystack,
            }
            yield Fields(path=sample.path, record=f"{case.case_id} qa[{index}]", values=row)


def _pool(cases: Sequence[EvalCase], answers: Sequence[Sequence[str]]) -> Pool:
    pool: dict[CategoryId, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for case, of_case in zip(cases, answers, strict=True):
        for question, answer in zip(case.questions, of_case, strict=True):
            pool[question.category][case.case_id].append(answer)

    return pool


def _answers(sample: Fields, case: EvalCase) -> list[str]:
    """Gold of each question; for category 5, the answer that it falsely suggests; empty if none."""
    answers = []
    raw = sample.objects("qa", f"{case.case_id} qa[{{}}]")
    for question, qa in zip(case.questions, raw, strict=True):
        answer = ""
        if "adversarial_answer" in qa.values:
            answer = qa.answer("adversarial_answer")
        if question.gold:
            answer = question.gold[0]

        answers.append(answer.strip())

    return answers


def _haystack(case: EvalCase) -> dict[str, Any]:
    roles = dict(zip(case.speakers, ("user", "assistant"), strict=True))
    ids, times, talks = [], [], []
    for session in case.sessions:
        ids.append(f"session_{session.session_id[1:]}")
        times.append(session.started_at.isoformat() if session.started_at else "")
        talk = []
        for turn in session.turns:
            content = f"[{turn.speaker.upper()}]: {turn.text}"
            talk.append({"role": roles.get(turn.speaker, "assistant"), "content": content})

        talks.append(talk)

    return {
        "num_sessions": len(case.sessions),
        "haystack_session_ids": ids,
        "haystack_session_datetimes": times,
        "haystack_sessions": talks,
    }


def _candidates(
    pool: Pool, category: CategoryId, conversation: str, drawn: random.Random
) -> Iterator[str]:
    """Candidates for wrong choices, the nearest first."""
    near = pool[category].get(conversation, ())
    same: list[str] = []
    for other, answers in pool[category].items():
        if other != conversation:
            same += answers

    rest: list[str] = []
    for other_category, talks in pool.items():
        if other_category not in (category, ADVERSARIAL):
            rest += chain.from_iterable(talks.values())

    for group in (near, same, rest):
        if group:
            yield from drawn.sample(group, len(group))


def _choices(right: str, candidates: Iterable[str]) -> list[str]:
    """The right choice and wrong ones, all different; none says that there is no answer."""
    chosen = [right]
    chosen_words = [_words(right)]
    for answer in candidates:
        words = _words(answer)
        is_known = any(words <= other or other <= words for other in chosen_words)
        if words and not is_known and not is_refusal(answer):
            chosen.append(answer)
            chosen_words.append(words)

        if len(chosen) == CHOICES:
            break

    return chosen


def _words(text: str) -> frozenset[str]:
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold())
    return frozenset(words) - {"a", "an", "the", "and"}
