"""Damage for the records of a data set, drawn by Hypothesis: as a broken download or a typing error
leaves it.
"""

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
"""Values that may replace another value."""


@st.composite
def damaged_records(draw: st.DrawFn, records: Sequence[Any], *, twice: bool = True) -> list[Any]:
    """The records with one fault.

    A field is missing, a value has another type, or (if `twice`) a record occurs twice. Lists keep
    their elements: a missing one could not be noticed.
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
        return damaged

    of_other_type = [wrong for wrong in WRONG if type(wrong) is not type(value)]
    # Another string may be wrong as well; another number of the right type may be right.
    candidates = WRONG if isinstance(value, str) else of_other_type
    holder[key] = draw(st.sampled_from(candidates))

    return damaged


@st.composite
def _place(draw: st.DrawFn, records: list[Any], position: int) -> tuple[Any, Any]:
    """A value within a record: its container, and its key or index there.

    One time in ten it is the record itself.
    """
    holder: Any = records
    key: Any = position
    while (inner := holder[key]) and isinstance(inner, dict | list) and draw(st.integers(0, 9)):
        keys = list(inner) if isinstance(inner, dict) else range(len(inner))
        holder, key = inner, draw(st.sampled_from(keys))

    return holder, key


@st.composite
def damaged_bytes(draw: st.DrawFn, content: bytes, *, cut: bool) -> bytes:
    """A file's content with one fault.

    It is cut off (if `cut`), has a byte that is not UTF-8, is in another encoding, or next to
    nothing is left of it. It is never cut at the end of a line, which would leave a sound file.
    """
    kinds = ["byte", "encoding", "next to nothing", *(["cut"] if cut else [])]
    kind = draw(st.sampled_from(kinds))

    if kind == "cut":
        within_lines = st.integers(1, len(content.rstrip()) - 1).filter(
            lambda end: b"\n" not in content[end - 1 : end + 1]
        )
        return content[: draw(within_lines)]

    if kind == "byte":
        position = draw(st.integers(0, len(content) - 1))
        return content[:position] + b"\xff" + content[position:]  # no UTF-8 holds this byte

    if kind == "encoding":
        return content.decode("utf-8").encode("utf-16")

    return draw(st.sampled_from([b"", b"\n", b"null", b"0", b"\x00"]))
