"""ConvoMem's schema: a file is a JSON list of test cases, each with conversations and questions
about them. Its folders' names give the questions' category and the number of evidence messages.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from memeval.datasets.io.fields import Fields
from memeval.records import CategoryId, EvalCase, EvalQuestion, Session

ABSTENTION = "abstention_evidence"
PREFERENCE = "preference_evidence"
IMPLICIT = "implicit_connection_evidence"
USER = "user_evidence"
CATEGORIES: Mapping[CategoryId, str] = {
    USER: "user facts",
    "assistant_facts_evidence": "assistant facts",
    "changing_evidence": "changing facts",
    ABSTENTION: "abstention",
    PREFERENCE: "preferences",
    IMPLICIT: "implicit connections",
}
"""Names of the categories by the folder that holds their files."""

_FOLDER = re.compile(r"([1-9][0-9]?)_evidence")


class File(Struct, frozen=True):
    """One file, and the facts in the names of its folders."""

    path: Path
    category: str
    evidence: int
    """Number of messages that contain the answer to each question."""


def find_files(folder: Path) -> Iterator[File]:
    """The files `<category>/<n>_evidence/<name>.json` below a folder, by category and name."""
    for category in map(str, CATEGORIES):
        for path in sorted((folder / category).glob("*_evidence/*.json")):
            if match := _FOLDER.fullmatch(path.parent.name):
                yield File(path=path, category=category, evidence=int(match[1]))


def read_case(fields: Fields, case_id: str, file: File) -> tuple[EvalCase, int, int]:
    """The case of a test case, the size of its context, and the number of questions that cite a
    message that does not match exactly one turn. Raises `UserError` naming record and field.
    """
    talks = fields.objects("conversations", f"{fields.record} conversations[{{}}]")
    sessions = []
    # Evidence is cited by text: the files have no ids of messages.
    turns: dict[tuple[str, str], list[str]] = {}
    for number, talk in enumerate(talks, start=1):
        messages = talk.objects("messages", f"{talk.record} messages[{{}}]")
        spoken = [(message.text("speaker"), message.text("text")) for message in messages]
        session = Session.of(f"s{number}", spoken)
        sessions.append(session)
        for turn in session.turns:
            turns.setdefault(_key(turn.speaker, turn.text), []).append(turn.turn_id)

    if not turns:
        raise fields.wrong("conversations", "contains no messages")

    size = len(sessions)
    if fields.values.get("contextSize") is not None:
        size = fields.integer("contextSize")

    items = fields.objects("evidenceItems", f"{fields.record} evidenceItems[{{}}]")
    if not items:
        raise fields.wrong("evidenceItems", "is empty")

    questions = []
    unplaced = 0
    for number, item in enumerate(items):
        evidence = _evidence(item, turns)
        unplaced += evidence is None
        question_id = f"{case_id}/q{number}"
        questions.append(_question(item, question_id, file, evidence=evidence or (), size=size))

    case = EvalCase(case_id=case_id, sessions=tuple(sessions), questions=tuple(questions))
    return case, size, unplaced


def _question(
    item: Fields, question_id: str, file: File, *, evidence: tuple[str, ...], size: int
) -> EvalQuestion:
    gold: tuple[str, ...] = (item.answer("answer"),)
    answerable = file.category != ABSTENTION
    if not answerable:
        # The messages that an abstention question cites do not contain an answer.
        gold = evidence = ()

    return EvalQuestion(
        question_id=question_id,
        text=item.answer("question"),
        category=file.category,
        gold=gold,
        evidence=evidence,
        answerable=answerable,
        whole_answer=file.category == PREFERENCE,
        facets={"context_size": str(size), "n_evidence": str(file.evidence)},
    )


def _evidence(
    item: Fields, turns: Mapping[tuple[str, str], Sequence[str]]
) -> tuple[str, ...] | None:
    """The turns of all cited messages. None if a message does not match exactly one turn, because
    the remaining turns would count as all the evidence.
    """
    evidence: dict[str, None] = {}
    is_placed = True
    for message in item.objects("message_evidences", f"{item.record} message_evidences[{{}}]"):
        places = turns.get(_key(message.text("speaker"), message.text("text")), ())
        evidence |= dict.fromkeys(places)
        is_placed = is_placed and len(places) == 1

    return tuple(evidence) if is_placed else None


def _key(speaker: str, text: str) -> tuple[str, str]:
    """Speaker and text for comparing messages, regardless of white space and the speaker's case."""
    return speaker.strip().lower(), " ".join(text.split())
