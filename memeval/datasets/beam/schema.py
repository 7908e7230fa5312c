"""BEAM's files: a chat as batches of turns, each a list of messages, and its questions by ability.

Messages get ids by their position in the chat, because the file's own ids are not always unique.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memeval.datasets.io.fields import Fields, kind_of, parse_json, quoted
from memeval.datasets.io.json_stream import stream_list
from memeval.errors import UserError
from memeval.records import MONTHS, EvalQuestion, Session, Turn
from memeval.results.files import reading

ABILITIES = (
    "abstention",
    "contradiction_resolution",
    "event_ordering",
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
)
ABSTENTION = "abstention"
REFERENCE = {
    ABSTENTION: "ideal_response",
    "contradiction_resolution": "ideal_answer",
    "summarization": "ideal_summary",
    "instruction_following": None,
    "preference_following": None,
}
"""Field of the reference answer by ability, if it is not `answer`; None if there is none."""

ROLES = ("user", "assistant")
PLAN = re.compile(r"plan-[0-9]{1,3}")
# Match only up to the end of the line: a message of 1M has text after its marker. Assistants repeat
# the marker as well, 41 times in chat 5 of 100K.
MARKER = re.compile(r"\s*->->[^\n]*")
"""The marker that gives the position of a user's question in the chat's plan."""
DATE = re.compile(r"([A-Z][a-z]{2,8})-([0-9]{1,2})-([0-9]{4})")


class Chat(Struct):
    """The sessions of a chat, and the irregularities of its file."""

    sessions: list[Session] = field(default_factory=list)
    places: dict[int, list[int]] = field(default_factory=dict)
    """Positions of the messages by the file's id: several if an id is repeated."""
    irregularities: Counter[str] = field(default_factory=Counter)
    count: int = 0
    """Messages so far."""


def read_chat(path: Path, *, cut_markers: bool) -> Chat:
    """The chat in a file; each batch is a session.

    Only one batch, or one plan of a chat of 10M tokens, is in memory as JSON at a time. Raises
    `UserError` naming file, record and field if a value does not fit.
    """
    chat = Chat()
    for record, batch in _batches(path):
        chat.sessions.append(_session(chat, record, batch, cut_markers=cut_markers))

    if not chat.count:
        raise UserError(f"{path} contains no messages.")

    known = [session.started_at for session in chat.sessions if session.started_at is not None]
    chat.irregularities["undated"] += len(chat.sessions) - len(known)
    chat.irregularities["earlier"] += sum(later < before for before, later in pairwise(known))
    chat.irregularities["repeated_ids"] += chat.count - len(chat.places)
    return chat


def _batches(path: Path) -> Iterator[tuple[str, Fields]]:
    """The batches of a chat, or of its plans in order, each with its name for errors."""
    for index, value in enumerate(stream_list(path)):
        record = f"batch {index}"
        item = Fields.of(path, record, value)
        if "turns" in item.values:
            yield record, item
            continue

        # In 10M, a record is one plan of the chat. An export has all ten keys, nine of them null.
        filled = [name for name, batches in item.values.items() if batches is not None]
        if len(filled) != 1 or not PLAN.fullmatch(filled[0]):
            raise UserError(f"{path}: record {index} is neither a batch nor one plan of batches.")

        for number, batch in enumerate(item.items(filled[0])):
            record = f"{filled[0]} batch {number}"
            yield record, Fields.of(path, record, batch)


def _session(chat: Chat, record: str, batch: Fields, *, cut_markers: bool) -> Session:
    messages: list[Fields] = []
    for number, turn in enumerate(batch.items("turns")):
        place = f"{record} turn {number}"
        if not isinstance(turn, list):
            raise UserError(f"{batch.path}: {place} is {kind_of(turn)}, not a list of messages.")

        for index, message in enumerate(turn):
            messages.append(Fields.of(batch.path, f"{place} message {index}", message))

    # Only the first message of a batch has a date (the batch's own field is always null); it
    # applies to all of them.
    started_at = None
    if messages and messages[0].values.get("time_anchor") is not None:
        started_at = messages[0].time("time_anchor", _parse_date, "March-15-2024")

    turns = []
    for message in messages:
        role, text = message.one_of("role", ROLES), message.text("content")
        # A marker, sometimes followed by pieces of the chat's plan, reveals later content.
        if cut_markers and "->->" in text:
            text = MARKER.sub("", text)
            chat.irregularities["markers"] += 1

        # Ids may repeat within a file: batch 10 of chat 5 in 1M starts again at 0.
        chat.places.setdefault(message.integer("id"), []).append(chat.count)
        turns.append(Turn(turn_id=turn_id(chat.count), speaker=role, text=text, time=started_at))
        chat.count += 1

    name = f"s{len(chat.sessions) + 1}"
    return Session(session_id=name, started_at=started_at, turns=tuple(turns))


def turn_id(position: int) -> str:
    """The id of the message at a position in its chat, starting at 0."""
    return f"m{position}"


def _parse_date(text: str) -> datetime | None:
    match = DATE.fullmatch(text.strip())
    if match is None or match[1] not in MONTHS:
        return None

    return datetime(int(match[3]), MONTHS.index(match[1]) + 1, int(match[2]))


def read_questions(path: Path, prefix: str, chat: Chat) -> tuple[EvalQuestion, ...]:
    """The questions of a chat; their ids begin with `prefix`.

    Raises `UserError` naming file, record and field if a value does not fit.
    """
    with reading(path, end="."):
        content = path.read_bytes()

    whole = Fields.of(path, "the file", parse_json(content, path))
    for ability in whole.values:
        if ability not in ABILITIES:
            raise UserError(
                f"{path}: {quoted(ability)} is not an ability of BEAM; the abilities are "
                f"{', '.join(ABILITIES)}."
            )

    questions = []
    for ability in ABILITIES:
        if ability not in whole.values:
            continue

        for number, item in enumerate(whole.objects(ability, f"{ability}[{{}}]")):
            question_id = f"{prefix}/{ability}/{number}"
            questions.append(_question(item, ability, question_id, chat))

    if not questions:
        raise UserError(f"{path} contains no questions.")

    return tuple(questions)


def _question(item: Fields, ability: str, question_id: str, chat: Chat) -> EvalQuestion:
    text = item.filled("question")
    # The rubric decides, not the reference: in some temporal questions they contradict each other.
    rubric = tuple(item.texts("rubric"))
    if not rubric or not all(map(str.strip, rubric)):
        raise item.wrong("rubric", "is empty, or contains an empty string")

    reference = REFERENCE.get(ability, "answer")
    gold = "; ".join(rubric)
    if reference is not None:
        gold = item.answer(reference)

    difficulty = item.values.get("difficulty")
    facets = {}
    if isinstance(difficulty, str) and difficulty.strip():
        facets["difficulty"] = difficulty.strip().replace("/", " ")

    return EvalQuestion(
        question_id=question_id,
        text=text,
        category=ability,
        gold=(gold,),
        rubric=rubric,
        evidence=_evidence(item, ability, chat),
        answerable=ability != ABSTENTION,
        # The official reader's prompt is the same for all abilities: different prompts would reveal
        # the ability to the reader.
        whole_answer=True,
        facets=facets,
    )


def _evidence(item: Fields, ability: str, chat: Chat) -> tuple[str, ...]:
    """Ids of the turns that the question cites: all integers in `source_chat_ids`."""
    # By ability: a list, an object of two lists, or nested lists. One leaf of 10M is "--".
    cited = _leaves(item.values.get("source_chat_ids"))
    ids = list(filter(is_id, cited))
    chat.irregularities["leaves"] += len(cited) - len(ids)
    # In 100K, 253 of the 1,094 cited messages are the assistant's: a memory of only the user's
    # messages can't find them.
    chat.irregularities["uncited"] += int(not ids and ability != ABSTENTION)

    evidence = []
    for number in sorted(set(ids)):
        places = chat.places.get(number, [])
        if len(places) == 1:
            evidence.append(turn_id(places[0]))
        elif places:
            chat.irregularities["ambiguous"] += 1
        else:
            chat.irregularities["absent"] += 1

    return tuple(evidence)


def is_id(leaf: Any) -> bool:
    """Whether a value is the id of a message. A boolean is an `int` in Python."""
    return isinstance(leaf, int) and not isinstance(leaf, bool)


def _leaves(value: Any) -> Sequence[Any]:
    """All values in nested lists and objects; none for null."""
    if value is None:
        return ()
    if isinstance(value, Mapping):
        value = list(value.values())
    if not isinstance(value, list):
        return (value,)

    leaves: list[Any] = []
    for inner in value:
        leaves.extend(_leaves(inner))

    return leaves
