"""A short conversation whose facts are far apart, for conformance tests."""

from collections.abc import Iterable
from datetime import datetime

from memeval.datasets.granularity import chunks_by
from memeval.records import EvalCase, MemoryChunk, Retrieved, Session

_TALKS = {
    "s1": (
        datetime(2021, 3, 4, 9, 30),
        [
            ("Ilse", "I adopted a greyhound called Quill last weekend."),
            ("Tomas", "A greyhound! Does Quill sleep on the sofa already?"),
            ("Ilse", "All day long. My sister Ottoline gave me a blue blanket for him."),
            ("Tomas", "I am still learning to bake rye bread, the third loaf burnt."),
        ],
    ),
    "s2": (
        datetime(2021, 6, 18, 20, 5),
        [
            ("Tomas", "Yesterday I signed the lease for a workshop in Aarhus."),
            ("Ilse", "Congratulations! What will you build in the workshop?"),
            ("Tomas", "Kayaks, from cedar. The first one is promised to my neighbour Bertil."),
            ("Ilse", "I decided to stop drinking coffee, my doctor advised it."),
        ],
    ),
    "s3": (
        datetime(2021, 11, 2, 7, 45),
        [
            ("Ilse", "Quill won a ribbon at the village fair on Sunday."),
            ("Tomas", "Wonderful. The cedar kayak leaked, so I sealed it with resin."),
            ("Ilse", "Please remind me to send Ottoline the photographs."),
            ("Tomas", "I will. I moved the workshop to Odense in October."),
        ],
    ),
}
QUESTIONS = (
    "What is the name of Ilse's greyhound?",
    "When did Tomas sign the lease for a workshop?",
    "Who gave Ilse a blue blanket?",
    "What does Tomas build from cedar?",
    # Many servers search for words, and find nothing for a whole question.
    "greyhound",
    "cedar",
)
MARKS = {"s1": ("greyhound", "rye"), "s2": ("Aarhus", "Bertil"), "s3": ("ribbon", "Odense")}
"""Words that occur in only one of the sessions."""


def sample_case(case_id: str = "sample", sessions: tuple[str, ...] = tuple(_TALKS)) -> EvalCase:
    """The conversation, or some sessions of it, without questions."""
    made = []
    for name in sessions:
        started_at, talk = _TALKS[name]
        made.append(Session.of(name, talk, time=started_at))

    return EvalCase(case_id=case_id, sessions=tuple(made), questions=(), speakers=("Ilse", "Tomas"))


def sample_chunks(case: EvalCase | None = None, granularity: str = "turn") -> list[MemoryChunk]:
    return chunks_by(case or sample_case(), granularity)


def turn_ids_of(covering: Iterable[MemoryChunk | Retrieved]) -> set[str]:
    """Ids of all turns that any of the chunks covers."""
    return set[str]().union(*(chunk.turn_ids for chunk in covering))
