"""Typed records can be read by several threads at the same time, and freed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import msgspec
import pytest

from memeval.datasets.io.entries import Entry
from memeval.text.typed import fault_in, json_or_none

SCRIPT = """
import sys
from dataclasses import make_dataclass
from threading import Barrier, Thread
from memeval.text.typed import convert, decoder

def fresh_type():
    inner = make_dataclass("Inner", [(f"member_{i}", int, 0) for i in range(30)])
    members = [("inner", inner, None), *((f"other_{i}", int, 0) for i in range(30))]
    return make_dataclass("Outer", members)

def by_decoder(wanted):
    return decoder(wanted).decode(b'{"other_1": 1, "inner": {"member_1": 2}}')

def by_convert(wanted):
    return convert({"other_1": 1, "inner": {"member_1": 2}}, wanted)

def read(wanted):
    barrier.wait()
    record = READER(wanted)
    assert record.inner.member_1 == 2
    whole.append(record)

READER = {"decoder": by_decoder, "convert": by_convert}[sys.argv[1]]
sys.setswitchinterval(1e-6)
whole = []
for _ in range(20):
    wanted = fresh_type()
    barrier = Barrier(3)
    threads = [Thread(target=read, args=(wanted,)) for _ in range(3)]
    for thread in threads:
        thread.start()

    for thread in threads:
        thread.join()

print(len(whole))
"""


@pytest.mark.parametrize("reader", ["decoder", "convert"])
def test_new_type_can_be_read_by_several_threads_at_once(reader: str) -> None:
    """With msgspec's own functions, nearly every run ends with SIGSEGV."""
    command = [sys.executable, "-c", SCRIPT, reader]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "60\n"), done.stderr


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1]}', {"a": [1]}),
        (b"7", 7),
        ("null", None),
        ("", None),
        ("{", None),
        (b"\xff", None),
        ("[" * 100_000, None),
        ("9" * 5000, None),
    ],
    ids=lambda value: str(value)[:12],
)
def test_text_from_outside_that_is_not_json_reads_as_none(text: str | bytes, value: object) -> None:
    assert json_or_none(text) == value


def test_fault_begins_with_the_path_of_the_member() -> None:
    wrong = ValueError("Expected `int`, got `str` - at `$.usage[0].calls`")
    assert fault_in(wrong) == "usage[0].calls: expected `int`, got `str`"
    assert fault_in(ValueError("A text is malformed")) == "a text is malformed"
    assert fault_in(ValueError("JSON is malformed")) == "JSON is malformed"


def test_no_type_allows_a_pattern_and_a_container() -> None:
    for name in ("json.reader", "netops.flat", "io.questions"):
        import_module(f"memeval.datasets.{name}")

    mixed, known = [], [Entry]
    for entry in known:
        known += entry.__subclasses__()
        fields = msgspec.inspect.type_info(entry).fields  # type: ignore[attr-defined]
        mixed += [field.name for field in fields if is_mixed(getattr(field.type, "types", ()))]

    assert len(known) > 10
    assert not mixed, "msgspec crashes when it frees such a type"


def is_mixed(types: Iterable[Any]) -> bool:
    """Whether one of the types of a union has a pattern, and another one has items."""
    patterns, items = False, False
    for one in types:
        patterns |= getattr(one, "pattern", None) is not None
        items |= isinstance(one, msgspec.inspect.CollectionType | msgspec.inspect.DictType)

    return patterns and items
