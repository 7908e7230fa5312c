"""Checks what a system's methods returned, and converts it to plain types."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Annotated, Any
from uuid import UUID

from msgspec import Meta, Struct, to_builtins

from memeval.pipeline.isolate.call import show
from memeval.records import MOST, Answer, Retrieved
from memeval.text.shown import one_line
from memeval.text.typed import convert, fault_in

LONGEST_TEXT = 1_000_000
"""Maximum number of characters of an answer or a raw reply: more would burden every report."""
LONGEST_NOTES = 20_000
"""Maximum number of characters of an answer's notes as JSON."""
DEEPEST = 8
"""Levels of notes within notes; deeper ones become text."""
MAX_ITEMS = 2_000
"""Maximum number of members of a list or mapping in notes."""


class NotAnAnswerError(TypeError):
    """A returned value breaks the contract."""


Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Turns = tuple[str, ...]


_KEPT = (bytes, bytearray, memoryview, datetime, date, time, timedelta, UUID, Decimal)
"""Types that msgspec must refuse: it would make strings of them."""


class _Returned(Struct):
    text: Text
    retrieved: tuple[Retrieved, ...] | None
    ranking: tuple[Turns, ...] | None
    raw: Text | None


def answer_of(value: Any, turns: Mapping[str, Any] | None) -> Answer:
    """The answer in plain types; `turns` has the case's ids, and None allows any id. Raises
    `NotAnAnswerError`.
    """
    if not isinstance(value, Answer):
        raise NotAnAnswerError(f"answer() must return an Answer, but returned {_describe(value)}")

    plain = _read(value)
    retrieved = plain.retrieved
    if retrieved is not None:
        _check_turns("Answer.retrieved.turn_ids", [chunk.turn_ids for chunk in retrieved], turns)
    if plain.ranking is not None:
        _check_turns("Answer.ranking", plain.ranking, turns)

    tokens = value.context_tokens
    return Answer(
        text=plain_text(plain.text),
        retrieved=None if retrieved is None else tuple(map(_retrieved, retrieved)),
        ranking=plain.ranking,
        raw=None if plain.raw is None else plain_text(plain.raw),
        context_tokens=None if tokens is None else plain_count(tokens, "Answer.context_tokens"),
        notes=plain_notes(value.notes),
    )


def _read(answer: Answer) -> _Returned:
    for name in ("retrieved", "ranking"):
        if isinstance(getattr(answer, name), Set):
            raise NotAnAnswerError(f"Answer.{name} must be a list or a tuple: a set has no order")

    content = {name: getattr(answer, name) for name in _Returned.__struct_fields__}
    if isinstance(answer.retrieved, Sequence):
        content["retrieved"] = list(map(_exact, answer.retrieved))

    try:
        plain = to_builtins(content, builtin_types=_KEPT, enc_hook=_builtin, order="deterministic")
        return convert(plain, _Returned)
    except ValueError as error:
        raise NotAnAnswerError(f"Answer.{fault_in(error)}") from error
    except RecursionError as error:
        raise NotAnAnswerError("the Answer is nested too deeply") from error


def _exact(chunk: Any) -> Retrieved:
    if not isinstance(chunk, Retrieved):
        raise NotAnAnswerError(
            f"Answer.retrieved must contain Retrieved only, but contains {_describe(chunk)}"
        )

    # The further fields of a subclass may contain any object.
    return Retrieved(chunk.text, chunk.turn_ids, chunk.score, time=chunk.time)


def _builtin(value: Any) -> Any:
    """Converts values that msgspec can't: those of numpy, and of subclasses of Python's types."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)

    if isinstance(value, datetime):
        # A missing time of pandas does not equal itself.
        is_missing = value != value  # noqa: PLR0124
        return None if is_missing else datetime.combine(value.date(), value.timetz())
    if _is_numpy(value, "generic", "ndarray"):
        return value.tolist()
    if isinstance(value, Sequence):
        return list(value)

    raise NotAnAnswerError(f"an Answer can't contain {_describe(value)}")


def _check_turns(name: str, chunks: Iterable[Turns], turns: Mapping[str, Any] | None) -> None:
    if turns is None:
        return

    unknown = set(chain.from_iterable(chunks)) - turns.keys()
    if unknown:
        raise NotAnAnswerError(
            f"{name} names '{one_line(min(unknown), 80)}', which is not a turn of this case"
        )


def _retrieved(chunk: Retrieved) -> Retrieved:
    return Retrieved(plain_text(chunk.text), chunk.turn_ids, chunk.score, time=chunk.time)


def plain_text(text: str) -> str:
    """`text` as every file and database accepts it: lone surrogates and NUL are replaced."""
    if text.isascii() and "\0" not in text:
        return str(text)

    replaced = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return replaced.replace("\0", "\N{REPLACEMENT CHARACTER}")


def plain_count(value: Any, name: str) -> int:
    """A count as stored in rows. Raises `NotAnAnswerError`, which calls the value `name`."""
    number = value.item() if _is_numpy(value, "generic") else value
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    # No comparison with NaN is true.
    if not is_number or not 0 <= number <= MOST or number != int(number):
        raise NotAnAnswerError(
            f"{name} must be a whole number from 0 to {MOST:,}, but is {_describe(value)}"
        )

    return int(number)


def plain_notes(notes: Any) -> dict[str, Any]:
    """Notes in JSON's types: other values become text, long ones are cut."""
    if notes is None:
        return {}
    if not isinstance(notes, Mapping):
        raise NotAnAnswerError(f"notes and dump() items must be mappings, not {_describe(notes)}")

    plain = _plain(notes)
    size = len(json.dumps(plain, ensure_ascii=False))
    if size <= LONGEST_NOTES:
        return dict(plain)

    # Twice the number: names take up room as well as entries.
    share = max(80, LONGEST_NOTES // max(1, 2 * len(plain)))
    cut = {one_line(name, 80): one_line(entry, share) for name, entry in list(plain.items())[:100]}
    return {**cut, "notes": f"cut: they took {size:,} characters"}


def _plain(value: Any, above: tuple[int, ...] = ()) -> Any:  # noqa: PLR0911 - one per type
    """A value in JSON's types; `above` contains the ids of the objects around it."""
    if isinstance(value, Enum):
        value = value.value
    if _is_numpy(value, "generic", "ndarray") and value.size < MAX_ITEMS:
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
        pairs = list(value.items())[:MAX_ITEMS]
        return {_show(name): _plain(entry, within) for name, entry in pairs}

    if len(above) < DEEPEST and isinstance(value, list | tuple | Set):
        members = [_plain(entry, within) for entry in list(value)[:MAX_ITEMS]]
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


def _describe(value: Any) -> str:
    """A value as described in messages: its type, and its content if that is short."""
    if value is None:
        return "None"

    name = type(value).__name__
    if isinstance(value, str | int | float) or _is_numpy(value, "generic"):
        return f"{name} {one_line(repr(_plain(value)), 60)}"

    return name
