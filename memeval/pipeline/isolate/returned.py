"""Checks what a system's methods returned, and converts it to plain types."""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from datetime import date, datetime, time
from enum import Enum
from itertools import chain
from typing import Any, TypeVar

from memeval.pipeline.isolate.call import show
from memeval.records import MOST, Answer, Retrieved
from memeval.text.shown import one_line

T = TypeVar("T")
LONGEST_TEXT = 1_000_000
"""Maximum number of characters of an answer or a raw reply: more would burden every report."""
LONGEST_NOTES = 20_000
"""Maximum number of characters of an answer's notes as JSON."""
DEEPEST = 8
"""Levels of notes within notes; deeper ones become text."""
MOST_ITEMS = 2_000
"""Maximum number of members of a list or mapping in notes."""


class NotAnAnswerError(TypeError):
    """A returned value breaks the contract."""


def answer_of(value: Any, turns: Mapping[str, Any]) -> Answer:
    """The answer in plain types; `turns` has the case's ids. Raises `NotAnAnswerError`."""
    if not isinstance(value, Answer):
        raise NotAnAnswerError(f"answer() must return an Answer, but returned {_describe(value)}")

    # The order decides which of several faults the user sees.
    return Answer(
        text=_text(value.text, "Answer.text"),
        retrieved=_unless_none(value.retrieved, lambda chunks: _chunks(chunks, turns)),
        ranking=_unless_none(value.ranking, lambda ranking: _ranking(ranking, turns)),
        raw=_unless_none(value.raw, lambda raw: _text(raw, "Answer.raw")),
        context_tokens=_unless_none(
            value.context_tokens, lambda tokens: plain_count(tokens, "Answer.context_tokens")
        ),
        notes=plain_notes(value.notes),
    )


def plain_text(text: str) -> str:
    """`text` as every file and database accepts it: lone surrogates and NUL are replaced."""
    if text.isascii() and "\0" not in text:
        return str(text)

    replaced = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return replaced.replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain_count(value: Any, name: str) -> int:
    """A count as stored in rows. Raises `NotAnAnswerError`, which calls the value `name`."""
    expected = f"a whole number from 0 to {MOST:,}"
    number = _number(value, name, expected)
    if number != int(number) or not 0 <= number <= MOST:
        raise _refusal(name, expected, value)

    return int(number)


def plain_notes(notes: Any) -> dict[str, Any]:
    """Notes in JSON's types: other values become text, long ones are cut."""
    if notes is None:
        return {}
    if not isinstance(notes, Mapping):
        raise _refusal("Answer.notes", "a mapping", notes)

    plain = _plain(notes)
    size = len(json.dumps(plain, ensure_ascii=False))
    if size <= LONGEST_NOTES:
        return dict(plain)

    # Twice the number: names take up room as well as entries.
    share = max(80, LONGEST_NOTES // max(1, 2 * len(plain)))
    cut = {one_line(name, 80): one_line(entry, share) for name, entry in list(plain.items())[:100]}
    return {**cut, "notes": f"cut: they took {size:,} characters"}


def _unless_none(value: Any, check: Callable[[Any], T]) -> T | None:
    return None if value is None else check(value)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise _refusal(name, "a string", value)
    if len(value) > LONGEST_TEXT:
        raise NotAnAnswerError(
            f"{name} has {len(value):,} characters; at most {LONGEST_TEXT:,} are allowed"
        )

    return plain_text(value)


def _number(value: Any, name: str, expected: str) -> int | float:
    number = value.item() if _is_numpy(value, "generic") else value
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    # Not `isfinite`, which fails for a larger int.
    if not is_number or not abs(number) <= sys.float_info.max:
        raise _refusal(name, expected, value)

    plain: int | float = number
    return plain


def _chunks(chunks: Any, turns: Mapping[str, Any]) -> tuple[Retrieved, ...]:
    return tuple(_chunk(chunk, turns) for chunk in _members(chunks, "Answer.retrieved"))


def _chunk(chunk: Any, turns: Mapping[str, Any]) -> Retrieved:
    if not isinstance(chunk, Retrieved):
        raise NotAnAnswerError(
            f"Answer.retrieved must contain Retrieved chunks, but contains {_describe(chunk)}"
        )

    text = _text(chunk.text, "Answer.retrieved.text")
    turn_ids = _turns(chunk.turn_ids, "Answer.retrieved.turn_ids", turns)
    score = None
    if chunk.score is not None:
        score = float(_number(chunk.score, "Retrieved.score", "a finite number"))

    if chunk.time is not None and not isinstance(chunk.time, datetime):
        raise _refusal("Retrieved.time", "a datetime", chunk.time)

    return Retrieved(text, turn_ids, score, time=chunk.time)


def _ranking(ranking: Any, turns: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    # Fast path for the type that built-in systems return: a ranking contains hundreds of chunks.
    if type(ranking) is tuple and set(map(type, ranking)) == {tuple}:
        with suppress(TypeError):  # an unhashable value is not an id
            if turns.keys() >= set(chain.from_iterable(ranking)):
                return ranking

    name = "Answer.ranking"
    return tuple(_turns(chunk, name, turns) for chunk in _members(ranking, name))


def _turns(ids: Any, name: str, turns: Mapping[str, Any]) -> tuple[str, ...]:
    members = _members(ids, name)
    for turn in members:
        if not isinstance(turn, str):
            raise NotAnAnswerError(
                f"{name} must contain turn ids, which are strings, but contains {_describe(turn)}"
            )
        if turn not in turns:
            raise NotAnAnswerError(
                f"{name} names '{one_line(turn, 80)}', which is not a turn of this case"
            )

    return tuple(map(str, members))


def _members(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, tuple):
        return value
    if _is_numpy(value, "ndarray"):
        return value.tolist() if value.ndim else [value.item()]
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise _refusal(name, "a list or a tuple", value)

    return list(value)


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:  # noqa: PLR0911 - one per type
    """A value in JSON's types; `above` contains the ids of the objects around it."""
    if isinstance(value, Enum):
        value = value.value
    if _is_numpy(value, "generic", "ndarray") and value.size < MOST_ITEMS:
        value = value.tolist()

    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_text(value[: LONGEST_NOTES + 1])
    if isinstance(value, int) and abs(value) < 2**63:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if id(value) in above:
        return "(itself)"

    within = (*above, id(value))
    if len(above) < DEEPEST and isinstance(value, Mapping):
        pairs = list(value.items())[:MOST_ITEMS]
        return {_show(name): _plain(entry, within) for name, entry in pairs}

    if len(above) < DEEPEST and isinstance(value, list | tuple | Set):
        members = [_plain(entry, within) for entry in list(value)[:MOST_ITEMS]]
        # Sets of strings differ in order between processes, and rows are compared byte by byte.
        return sorted(members, key=repr) if isinstance(value, Set) else members

    return _show(value)


def _show(value: Any) -> str:
    return show(value, f"an object of {type(value).__name__}", 200)


def _is_numpy(value: Any, *type_names: str) -> bool:
    """Whether a value is of one of these types of numpy: `generic` (scalars) or `ndarray`."""
    # Importing numpy is slow (as forty modules); unless it is loaded, no value is of its types.
    numpy = sys.modules.get("numpy")
    return isinstance(value, tuple(getattr(numpy, kind, ()) for kind in type_names))


def _refusal(name: str, expected: str, value: Any) -> NotAnAnswerError:
    return NotAnAnswerError(f"{name} must be {expected}, but is {_describe(value)}")


def _describe(value: Any) -> str:
    """A value as described in messages: its type, and its content if that is short."""
    if value is None:
        return "None"

    name = type(value).__name__
    if isinstance(value, str | int | float) or _is_numpy(value, "generic"):
        return f"{name} {one_line(repr(_plain(value)), 60)}"

    return name
