"""Damage for the records of a data set, drawn by Hypothesis: what a broken download or a slip of the pen leaves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

WRONG: Sequence[Any] = (
    None,
    True,
    0,
    -1,
    10**400,
    1.5,
    float("nan"),
    "",
    " ",
    "\ud800",
    "x",
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": {"y": []}},
)
"""What may stand where something else should."""


@st.composite
def damaged_records(draw: st.DrawFn, records: Sequence[Any], *, twice: bool = True) -> list[Any]:
    """The records with one thing wrong: a field dropped, a value of another type, or (if `twice`) a record that occurs twice.

    No element is taken out of a list, and no list made empty: what is not there can't be missed.
    """
    damaged = copy.deepcopy(list(records))
    position = draw(st.integers(0, len(damaged) - 1))
    if twice and draw(st.integers(0, 9)) == 0:
        damaged.append(copy.deepcopy(damaged[position]))
        return damaged
    holder, key = draw(_place(damaged, position))
    value = holder[key]
    if isinstance(holder, dict) and draw(st.booleans()):
        del holder[key]
    else:
        holder[key] = draw(
            st.sampled_from(
                [
                    wrong
                    for wrong in WRONG
                    if type(wrong) is not type(value) or isinstance(value, str)
                ]
            )
        )
    return damaged


@st.composite
def _place(draw: st.DrawFn, records: list[Any], position: int) -> tuple[Any, Any]:
    """A value within a record, as what holds it and under which key or index; the record itself one time in ten."""
    holder: Any = records
    key: Any = position
    while (inner := holder[key]) and isinstance(inner, dict | list) and draw(st.integers(0, 9)):
        holder, key = (
            inner,
            draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner)))),
        )
    return holder, key


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes, *, cut: bool) -> bytes:
    """A file's content cut off (if `cut`), with a byte that is no UTF-8, in another encoding, or replaced by next to nothing.

    It is never cut at the end of a line: of a file of lines that leaves a whole one.
    """
    kinds = ["byte", "encoding", "next to nothing", *(["cut"] if cut else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "cut":
        end = draw(
            st.integers(1, len(content.rstrip()) - 1).filter(
                lambda place: b"\n" not in content[place - 1 : place + 1]
            )
        )
        return content[:end]
    if kind == "byte":
        place = draw(st.integers(0, len(content) - 1))
        return content[:place] + b"\xff" + content[place:]
    if kind == "encoding":
        return content.decode("utf-8").encode("utf-16")
    return draw(st.sampled_from([b"", b"\n", b"null", b"0", b"\x00"]))
