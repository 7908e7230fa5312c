"""Reads JSON of memeval's files into typed records. A record's type defines the members. msgspec
checks them: its errors name the member (`$.usage[0].calls`) and the expected type.
"""

from array import array
from datetime import datetime
from json import dumps, loads
from typing import Annotated, Any, TypeVar

from msgspec import DecodeError, Meta, ValidationError, json, to_builtins

from memeval.records import MOST, Finite
from memeval.text.typed import convert, decode, decoder

T = TypeVar("T")
Json = dict[str, Any]

Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | Finite
"""Like `Finite`, but a whole number stays an integer, so that it is written as it was read."""
Share = Annotated[float, Meta(ge=0, le=1)]
Rank = Annotated[int, Meta(ge=1, le=MOST)]
Weight = Annotated[float, Meta(gt=0, le=MOST)]
"""Number of questions that a question of a sample represents."""


def read_json(content: bytes) -> Any:
    """JSON as the standard library reads it, in a third of the time. Raises `ValueError`."""
    try:
        return decode(content)
    except (DecodeError, UnicodeDecodeError):
        # Lone surrogates, NaN and infinities: only Python's own parser accepts them.
        return loads(content)


def as_read(content: Json) -> Json:
    """JSON as read back after writing: tuples become lists."""
    try:
        return dict(decode(json.encode(content)))
    except UnicodeEncodeError:
        return dict(loads(dumps(content)))


def read_as(content: Any, wanted: type[T], at: str = "$") -> T:
    """JSON as a typed record; `at` is its path in the file.

    Raises `ValueError` naming the path of the invalid member.
    """
    try:
        return convert(content, wanted)
    except ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise ValueError(f"{message} - at `{at}{path.rstrip('`')}`") from error


def decode_as(line: bytes, wanted: type[T]) -> T:
    """A line of JSON as a typed record, three times as fast as through a dictionary.

    Raises `ValueError` like `read_as`, and for invalid JSON.
    """
    try:
        return decoder(wanted).decode(line)
    except DecodeError as error:
        raise ValueError(str(error)) from error


def as_plain(record: Any) -> Json:
    """A record as JSON, members in their order; times and bytes stay, arrays become lists."""
    # msgspec would write `Z` for `+00:00`, and bytes as a string.
    plain: Json = to_builtins(record, builtin_types=(datetime, bytes), enc_hook=array.tolist)
    return plain
