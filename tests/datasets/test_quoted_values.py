"""Values that a message quotes from a data file are shortened, on one line, and can't control a
terminal.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from locomo_samples import locomo, sample, write
from longmemeval_samples import item

from memeval.datasets.io.fields import Fields
from memeval.datasets.locate import build
from memeval.errors import UserError

NASTY = "\x1b[2J\u202e\n\r\t[red]" + "x" * 100_000


def refused(path: Path, dataset: str) -> str:
    with pytest.raises(UserError) as caught:
        list(build(dataset, path.parent, path=str(path), allow_unpinned=True).read())
    return caught.value.message


def changed(place: list[Any], value: Any) -> Any:
    content: Any = sample()
    target = content
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return content


LOCOMO_CASES = [
    [changed(["conversation", "session_1_date_time"], NASTY)],
    [changed(["conversation", "session_1", 1, "dia_id"], NASTY) | {"sample_id": NASTY}, 5],
    [{**sample(), "sample_id": NASTY}, {**sample(), "sample_id": NASTY}],
    [{**changed(["qa", 0, "category"], 9), "sample_id": NASTY}],
    [{**changed(["qa", 0], 9), "sample_id": NASTY}],
    [{**changed(["conversation"], []), "sample_id": NASTY}],
    [{**changed(["conversation"], {}), "sample_id": NASTY}],
]


@pytest.mark.parametrize("content", LOCOMO_CASES)
def test_quoted_values_of_locomo_are_short_and_harmless(tmp_path: Path, content: Any) -> None:
    path = write(tmp_path, content)
    with pytest.raises(UserError) as caught:
        list(locomo(path, allow_unpinned=True).read())
    check(caught.value.message)


@pytest.mark.parametrize(
    "field", ["question_id", "question_type", "question_date", "haystack_dates"]
)
def test_quoted_values_of_longmemeval_are_short_and_harmless(tmp_path: Path, field: str) -> None:
    value: Any = [NASTY] * len(item()["haystack_dates"]) if field == "haystack_dates" else NASTY
    path = tmp_path / "data.json"
    path.write_text(json.dumps([item(**{field: value})] * 2), encoding="utf-8")
    check(refused(path, "longmemeval_s"))


def test_record_is_named_even_if_its_id_is_long(tmp_path: Path) -> None:
    path = write(tmp_path, [{**changed(["qa", 3], 9), "sample_id": "y" * 5000}])
    with pytest.raises(UserError, match=r"qa\[3\] is an integer, not an object"):
        list(locomo(path, allow_unpinned=True).read())


def test_braces_in_an_id_are_not_formatted() -> None:
    fields = Fields(Path("f.json"), "r", {"qa": [{}, {}]})
    assert [one.record for one in fields.objects("qa", "{}{0}{x} qa[{}]")] == [
        "{}{0}{x} qa[0]",
        "{}{0}{x} qa[1]",
    ]


def check(message: str) -> None:
    assert len(message) < 1500
    assert "\n" not in message and "\x1b" not in message and "\u202e" not in message
