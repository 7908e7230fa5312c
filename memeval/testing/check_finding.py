"""Rules of finding: stored facts are found, and no others are made up.

All other rules depend on the first one: a memory that finds nothing satisfies most of them.
"""

import re
from datetime import datetime
from itertools import cycle, starmap

from memeval.llm.metering import Ledger, metered
from memeval.records import EvalCase, Session
from memeval.systems.base import NOTHING_FITS
from memeval.testing.sample import sample_chunks
from memeval.testing.under_test import (
    NotApplicableError,
    NotShownError,
    SystemUnderTest,
    expect,
    quoted,
)

FACTS = {
    "ferry": "Quorvex",
    "cottage": "Blimtar",
    "canoe": "Zandrill",
    "bakery": "Womfret",
    "parrot": "Yelquist",
    "violin": "Drombley",
    "tractor": "Gravnost",
    "orchard": "Plimsatt",
    "lighthouse": "Vexmoor",
    "sledge": "Krantiva",
    "windmill": "Ostrelic",
    "teapot": "Farnobel",
    "greenhouse": "Jubrintz",
    "choir": "Molvastra",
    "tandem": "Hexbury",
    "goat": "Trindlepop",
    "regatta": "Calvonest",
    "sundial": "Umbraquil",
    "kiosk": "Snorvaldi",
    "meadow": "Bexlipane",
}
"""Things and their names, each said once. No text contains these names by chance."""
NEVER_SAID = "Xyrqualbondt"
_WORD = re.compile(r"[a-z]{5,}|ilse")  # a graph may only have the name of a speaker


async def finds_what_it_was_given(sut: SystemUnderTest) -> None:
    """Of twenty facts with rare words, at least one is found by its own words."""
    if not sut.remembers:
        raise NotApplicableError("it is the control without a memory")

    memory = await sut.fill_system(case=facts_case())
    if memory.system.wants_evidence:
        raise NotApplicableError("it is handed the evidence, and searches for nothing")

    with metered(Ledger()) as ledger:
        for thing, name in FACTS.items():
            for question in questions_about(thing, name):
                if await sut.finds(memory, question, name):
                    return

    raise NotShownError(
        ledger.remarks.get(NOTHING_FITS)
        or f"none of {len(FACTS)} facts was found, neither by their rare words nor by the whole "
        "sentence"
    )


async def makes_nothing_up(sut: SystemUnderTest) -> None:
    """A search for something that was never said finds nothing, or something that was said."""
    memory = await sut.fill_system()
    retrieved = (await sut.ask(memory, NEVER_SAID)).retrieved
    if retrieved is None:
        raise NotApplicableError("it does not show its results")

    stored_words: set[str] = set()
    for stored in sample_chunks():
        stored_words.update(_WORD.findall(stored.text.casefold()))

    for chunk in retrieved:
        expect(
            bool(chunk.turn_ids or stored_words.intersection(_WORD.findall(chunk.text.casefold()))),
            f"{quoted([chunk.text])} as a memory, for a word that was never stored",
            "no result; for a service's own wording, set system.no_results=...; for JSON from an "
            "MCP server, system.results=...",
        )


def questions_about(thing: str, name: str) -> tuple[str, ...]:
    """Searches for a fact: many servers find nothing for a whole question."""
    return f"What is the {thing} called?", name, sentence_of(thing, name)


def sentence_of(thing: str, name: str) -> str:
    """Sentence that states a fact."""
    return f"We named the {thing} {name}."


def facts_case() -> EvalCase:
    """A case of all the facts, one turn for each."""
    time = datetime(2022, 2, 3, 18, 45)
    statements = zip(cycle(("Tomas", "Ilse")), starmap(sentence_of, FACTS.items()), strict=False)
    return EvalCase("facts", (Session.of("facts", statements, time=time),), (), ("Ilse", "Tomas"))
