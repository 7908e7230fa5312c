"""Reads JSON, and data parsed from JSON or YAML, into typed records. Thread-safe.

msgspec (0.22) caches its information about a class on the class itself, before it is complete. A
second thread that uses the class at that moment dereferences a null pointer, which crashes the
process. So each type is prepared here, with all types that it contains, by one thread at a time.
"""

import json
import re
from threading import Lock
from typing import Any, TypeVar

import msgspec
from msgspec.json import Decoder

T = TypeVar("T")

_BOUND_OF_FINITE = re.compile(r"`float` [<>]= -?1\.797\d*e\+308")

decode = msgspec.json.decode
"""Reads JSON as plain data; `decoder` reads it as typed records."""

_lock = Lock()
_decoders: dict[Any, Decoder[Any]] = {}


def decoder(wanted: type[T]) -> Decoder[T]:
    """A decoder that reads JSON as `wanted`."""
    prepared = _decoders.get(wanted)
    if prepared is None:
        with _lock:
            prepared = _decoders[wanted] = Decoder(wanted)

    return prepared


def convert(content: Any, wanted: type[T]) -> T:
    """Plain data as a typed record.

    Raises `msgspec.ValidationError`, which names the path of the invalid member.
    """
    decoder(wanted)
    return msgspec.convert(content, wanted)


def json_or_none(text: str | bytes) -> Any:
    """The value of JSON from outside; None for null, and for a string that is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def fault_in(error: Exception) -> str:
    """msgspec's message, after the path of the member: `usage[0].calls: expected …`."""
    message, _, path = str(error).partition(" - at `$")
    if not message.startswith("JSON"):
        message = message[:1].lower() + message[1:]

    message = _BOUND_OF_FINITE.sub("a finite number", message)
    path = path.rstrip("`").removeprefix(".")
    return f"{path}: {message}" if path else message
