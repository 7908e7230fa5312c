"""What a system's `answer` returned, checked and brought to plain types at the one place where it
enters.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from enum import Enum
from itertools import chain
from typing import Any

import numpy as np

from memeval.records import Answer, Retrieved
from memeval.text.shown import one_line

LONGEST_TEXT = 1_000_000
"""Characters of an answer or a raw reply; a longer one is refused, since it would burden every
report.
"""
LONGEST_NOTES = 20_000
"""Characters that an answer's notes take as JSON."""
DEEPEST = 8
"""Levels of notes within notes; deeper ones are shown as text."""
MOST_ITEMS = 2_000
"""Members of a list or mapping in notes."""


class NotAnAnswerError(TypeError):
    """What `answer` returned is not what the contract says."""


def answer_of(value: Any, turns: Mapping[str, Any]) -> Answer:
    """The answer in plain types.

    `turns` holds the case's turn ids. Raises `NotAnAnswerError` that names the part and what it
    holds.
    """
    if not isinstance(value, Answer):
        raise NotAnAnswerError(f"answer() must return an Answer, but returned {_kind(value)}")

    # The order of these checks decides which of several faults the user sees.
    text = _text(value.text, "text")
    retrieved = ranking = raw = context_tokens = None
    if value.retrieved is not None:
        retrieved = tuple(_chunks(value.retrieved, turns))
    if value.ranking is not None:
        ranking = _ranking(value.ranking, turns)
    if value.raw is not None:
        raw = _text(value.raw, "raw")
    if value.context_tokens is not None:
        context_tokens = _count(value.context_tokens, "context_tokens")

    return Answer(
        text=text,
        retrieved=retrieved,
        ranking=ranking,
        raw=raw,
        context_tokens=context_tokens,
        notes=plain_notes(value.notes),
    )


def plain_text(text: str) -> str:
    """`text` as every file and database takes it: lone surrogates and NUL are replaced."""
    if text.isascii() and "\0" not in text:
        return str(text)

    whole = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain_notes(notes: Any) -> dict[str, Any]:
    """Notes as JSON holds them.

    What JSON has no form for is shown as text, and what is too long is cut and says so.
    """
    if notes is None:
        return {}
    if not isinstance(notes, Mapping):
        raise NotAnAnswerError(f"Answer.notes must be a mapping, but is {_kind(notes)}")

    plain = _plain(notes, 0, ())
    size = len(json.dumps(plain, ensure_ascii=False))
    if size <= LONGEST_NOTES:
        return dict(plain)

    # Twice the number: names take room as well as entries.
    share = max(80, LONGEST_NOTES // max(1, 2 * len(plain)))
    cut = {one_line(name, 80): one_line(entry, share) for name, entry in list(plain.items())[:100]}
    return {**cut, "notes": f"cut: they took {size:,} characters"}


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise NotAnAnswerError(f"Answer.{name} must be a string, but is {_kind(value)}")

    if len(value) > LONGEST_TEXT:
        raise NotAnAnswerError(
            f"Answer.{name} has {len(value):,} characters, and may have {LONGEST_TEXT:,}"
        )

    return plain_text(value)


def _count(value: Any, name: str) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = (
            int(value)
            if isinstance(value, float | np.floating) and float(value).is_integer()
            else -1
        )

    # Beyond 2**53 a float, which readers of JSON use, no longer tells neighbours apart.
    if isinstance(value, bool | np.bool_) or not 0 <= count < 2**53:
        raise NotAnAnswerError(
            f"Answer.{name} must be a whole number from 0 on, but is {_kind(value)}"
        )

    return count


def _chunks(chunks: Any, turns: Mapping[str, Any]) -> Iterable[Retrieved]:
    for chunk in _members(chunks, "retrieved"):
        if not isinstance(chunk, Retrieved):
            raise NotAnAnswerError(
                f"Answer.retrieved must hold Retrieved chunks, but holds {_kind(chunk)}"
            )

        yield Retrieved(
            _text(chunk.text, "retrieved.text"),
            _turns(chunk.turn_ids, "retrieved.turn_ids", turns),
            _score(chunk.score),
            time=_time(chunk.time),
        )


def _ranking(ranking: Any, turns: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    # What the built-in systems return, checked as a whole: a ranking holds hundreds of chunks.
    if type(ranking) is tuple and set(map(type, ranking)) == {tuple}:
        kinds = set(map(type, chain.from_iterable(ranking)))
        if kinds <= {str} and turns.keys() >= set(chain.from_iterable(ranking)):
            return ranking

    return tuple(_turns(chunk, "ranking", turns) for chunk in _members(ranking, "ranking"))


def _turns(ids: Any, name: str, turns: Mapping[str, Any]) -> tuple[str, ...]:
    if type(ids) is tuple and all(type(turn) is str and turn in turns for turn in ids):
        return ids

    checked = []
    for turn in _members(ids, name):
        if not isinstance(turn, str):
            raise NotAnAnswerError(
                f"Answer.{name} must hold turn ids, which are strings, but holds {_kind(turn)}"
            )

        if turn not in turns:
            raise NotAnAnswerError(
                f"Answer.{name} names '{one_line(turn, 80)}', which is not a turn of this case"
            )

        checked.append(str(turn))

    return tuple(checked)


def _score(value: Any) -> float | None:
    if value is None:
        return None

    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | np.integer | np.floating
    ):
        raise NotAnAnswerError(f"Retrieved.score must be a number, but is {_kind(value)}")

    try:
        score = float(value)
    except OverflowError:
        score = math.inf

    if not math.isfinite(score):
        raise NotAnAnswerError(f"Retrieved.score must be a finite number, but is {score}")

    return score


def _time(value: Any) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value

    raise NotAnAnswerError(f"Retrieved.time must be a datetime, but is {_kind(value)}")


def _members(value: Any, name: str) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(value.tolist()) if value.ndim else [value.item()]
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise NotAnAnswerError(f"Answer.{name} must be a list or a tuple, but is {_kind(value)}")

    return list(value)


# One line per type.
def _plain(value: Any, depth: int, above: tuple[int, ...]) -> Any:  # noqa: PLR0911
    simple, is_simple = _simple(value)
    if is_simple:
        return simple
    if id(value) in above:
        return "(itself)"
    if depth >= DEEPEST:
        return _show(value)

    within = (*above, id(value))
    if isinstance(value, np.ndarray):
        return (
            _plain(value.tolist(), depth, within)
            if value.size <= MOST_ITEMS
            else f"an array of shape {value.shape}"
        )

    if isinstance(value, Mapping):
        pairs = list(value.items())[:MOST_ITEMS]
        return {
            one_line(_show(name), 200): _plain(entry, depth + 1, within) for name, entry in pairs
        }

    if isinstance(value, Set):
        members = [_plain(entry, depth + 1, within) for entry in list(value)[:MOST_ITEMS]]
        # Sets of strings have another order in each process, and rows are compared byte by byte.
        return sorted(members, key=repr)

    if isinstance(value, list | tuple):
        return [_plain(entry, depth + 1, within) for entry in value[:MOST_ITEMS]]

    return _show(value)


def _simple(value: Any) -> tuple[Any, bool]:  # noqa: PLR0911 - one line per type
    """A value without members as JSON holds it, and whether it is one."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value, True
    if isinstance(value, str):
        return plain_text(value[: LONGEST_NOTES + 1]), True
    if isinstance(value, int):
        return (int(value) if abs(value) < 2**63 else "a huge number"), True
    if isinstance(value, float):
        return (float(value) if math.isfinite(value) else str(float(value))), True
    if isinstance(value, datetime | date | time):
        return value.isoformat(), True
    if isinstance(value, timedelta):
        return str(value), True

    return None, False


def _show(value: Any) -> str:
    try:
        return one_line(value, 200)
    except Exception:  # noqa: BLE001
        # An object of the user's own may fail to say what it is.
        return f"an object of {type(value).__name__}"


def _kind(value: Any) -> str:
    """A value as a message names it: its type, and what it holds where that is short."""
    if value is None:
        return "None"

    name = type(value).__name__
    simple, is_simple = _simple(value)
    return f"{name} {one_line(repr(simple), 60)}" if is_simple else f"{name}"
