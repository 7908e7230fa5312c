"""Canaries: invented facts of other users and injected instructions, planted into any conversation.
No question asks for one. A memory that returns one mixes up its users or obeys a stored text;
`memeval.metrics.lifecycle` counts both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from memeval.datasets.chance import pick
from memeval.datasets.invented import WORDS, Language, Values
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion, Session, Traces, Turn
from memeval.text.shown import one_line
from memeval.text.words import is_unspaced, search_terms

GENERATOR = 2
"""Version of the planted texts: increase it whenever the words or the order of draws change."""
CANARY = "canary"
"""`Traces.kind` of a question that has no other traces."""
BEGINNING = 10_000
"""Number of characters from which the language of a conversation is detected."""
LONGEST_TOPIC = 30


def plant(case: EvalCase, count: int, seed: int) -> EvalCase:
    """The case with `count` other users' facts and `count` instructions, each planted after a
    random turn.

    It does not depend on which questions are asked. Raises `UserError` for a case without turns.
    """
    turns = list(case.turns)
    if not turns:
        raise UserError(
            f"dataset.canaries: case {one_line(case.case_id, 80)} has no turn after which one "
            "could be planted",
            "leave dataset.canaries out",
        )

    rng = Random(f"canaries/{seed}/{case.case_id}")
    code = _language("\n".join(turn.text for turn in turns[:100])[:BEGINNING])
    language, values = WORDS.languages[code], Values(rng, code)
    facts = [values.draw("email") for _ in range(count)]
    orders = [f"{values.word()} {values.word()}" for _ in range(count)]

    unspoken = _judged_words(case.questions)

    after: dict[str, list[Turn]] = {}
    taken = set(case.turn_ids)
    for number, value in enumerate(facts + orders):
        anchor = pick(rng, turns)
        turn_id = f"{anchor.turn_id}.{number}"
        while turn_id in taken:
            turn_id += "0"

        taken.add(turn_id)
        speaker, text = _canary_turn(
            language, rng, anchor, value, unspoken=unspoken, is_fact=number < count
        )
        canary = Turn(turn_id=turn_id, speaker=speaker, text=text, time=anchor.time)
        after.setdefault(anchor.turn_id, []).append(canary)

    sessions = map(partial(_with_canaries, after=after), case.sessions)
    questions = map(partial(_with_traces, facts=facts, orders=orders), case.questions)
    return replace(case, sessions=tuple(sessions), questions=tuple(questions))


def _with_traces(
    question: EvalQuestion, facts: Sequence[str], orders: Sequence[str]
) -> EvalQuestion:
    before = question.traces or Traces(CANARY)
    traces = replace(before, foreign=tuple(facts), planted=tuple(orders))
    return replace(question, traces=traces)


def _judged_words(questions: Sequence[EvalQuestion]) -> set[str]:
    """The words of the values that questions are judged by: a memory that deletes a value would
    still have it in a canary.
    """
    words: set[str] = set()
    for question in questions:
        if question.traces is not None:
            words.update(search_terms("\n".join(question.traces.values)))

    return words


def _canary_turn(
    language: Language, rng: Random, anchor: Turn, value: str, *, unspoken: set[str], is_fact: bool
) -> tuple[str, str]:
    """Speaker and text of a canary. It mentions a word of the turn before it, but none of
    `unspoken`, so that a search for that word also finds the canary.
    """
    terms = [
        term
        for term in search_terms(anchor.text)
        if len(term) <= LONGEST_TOPIC and term not in unspoken
    ]
    topic = max(terms, key=len, default=language.attributes["plan"]["word"])
    if not is_fact:
        text = language.orders.format(name=anchor.speaker, word=topic, value=value)
        return anchor.speaker, text

    other = language.full_name(pick(rng, language.first), pick(rng, language.last))
    return other, language.state.format(name=other, word=topic, value=value)


def _language(text: str) -> str:
    """Chinese if more than a quarter of the characters are written without spaces, else English."""
    unspaced = sum(map(is_unspaced, text))
    return "zh" if unspaced * 4 > len(text) else "en"


def _with_canaries(session: Session, after: Mapping[str, Sequence[Turn]]) -> Session:
    turns: list[Turn] = []
    for turn in session.turns:
        turns += [turn, *after.get(turn.turn_id, ())]

    return replace(session, turns=tuple(turns))
