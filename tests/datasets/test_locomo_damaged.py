from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from locomo_samples import locomo, sample, write

from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError


def failure(folder: Path, content: Any) -> UserError:
    with pytest.raises(UserError) as caught:
        list(locomo(write(folder, content), allow_unpinned=True).cases())
    assert "locomo10.json" in str(caught.value)
    return caught.value


def test_a_missing_file_tells_how_to_get_it(tmp_path: Path) -> None:
    path = tmp_path / "locomo10.json"
    with pytest.raises(UserError) as caught:
        Locomo(path, info=DATASETS["locomo"]).open()
    assert caught.value.message == f"data set 'locomo' is not on this machine: {path} is missing."
    assert caught.value.hints == (
        "get it:      python -m memeval data fetch locomo",
        "or offline:  python -m memeval dataset=demo",
    )


def test_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be read: Is a directory"):
        Locomo(tmp_path, info=DATASETS["locomo"]).open()


def test_truncated_file_is_refused_with_the_position(tmp_path: Path) -> None:
    text = json.dumps([sample()])[:-2]
    assert f"at line 1, column {len(text) + 1} (the file ends there: is it cut off?)" in str(
        failure(tmp_path, text)
    )
    assert "is it cut off?" not in str(failure(tmp_path, text + " } }"))


def test_damaged_file_is_refused_with_its_reason(tmp_path: Path) -> None:
    assert "is not JSON: Expecting value at line 1, column 1 (the file ends there" in str(
        failure(tmp_path, "")
    )
    assert "is not JSON: Expecting value at line 1, column 1." in str(
        failure(tmp_path, "<html></html>")
    )
    assert "is not UTF-8 text: byte 12 can't be decoded" in str(
        failure(tmp_path, '[{"text": "é"}]'.encode("latin-1").replace(b'"\xe9', b'"x\xe9'))
    )
    assert "is not UTF-8 text" in str(failure(tmp_path, json.dumps([sample()]).encode("utf-16")))
    assert "contains an object, not a list of conversations" in str(failure(tmp_path, sample()))
    assert failure(tmp_path, {"cases": []}).hints[0].startswith("for your own data:  dataset=json")
    assert "contains no conversations" in str(failure(tmp_path, []))
    assert "record 1 is null, not an object" in str(failure(tmp_path, [sample(), None]))
    assert "sample_id 'conv-1' occurs 2 times" in str(failure(tmp_path, [sample(), sample()]))
    assert "is not readable JSON" in str(failure(tmp_path, "[" * 100_000))


def changed(path: list[Any], value: Any) -> list[Any]:
    content: Any = [sample()]
    place = content[0]
    for step in path[:-1]:
        place = place[step]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    result: list[Any] = content
    return result


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["sample_id"], ..., "record 0: field 'sample_id' is missing"),
        (["sample_id"], 7, "record 0: field 'sample_id' is an integer, not a string"),
        (["sample_id"], " ", "record 0: field 'sample_id' is empty"),
        (["conversation"], [], "record 0: field 'conversation' is a list, not an object"),
        (
            ["conversation"],
            {"speaker_a": "A", "speaker_b": "B"},
            "conv-1 conversation contains no sessions",
        ),
        (["conversation", "speaker_b"], ..., "conv-1 conversation: field 'speaker_b' is missing"),
        (
            ["conversation", "session_2_date_time"],
            ...,
            "conv-1 conversation: field 'session_2_date_time' is missing",
        ),
        (
            ["conversation", "session_2_date_time"],
            "yesterday",
            "field 'session_2_date_time' is 'yesterday', not a date like",
        ),
        (
            ["conversation", "session_2"],
            "text",
            "conv-1 conversation: field 'session_2' is a string, not a list",
        ),
        (
            ["conversation", "session_02"],
            [],
            "conv-1 conversation: field 'session_02' must be written session_2",
        ),
        (["conversation", "session_1", 1], None, "conv-1 session_1[1] is null, not an object"),
        (
            ["conversation", "session_1", 1, "text"],
            ...,
            "conv-1 session_1[1]: field 'text' is missing",
        ),
        (
            ["conversation", "session_1", 1, "blip_caption"],
            ["x"],
            "conv-1 session_1[1]: field 'blip_caption' is a list, not a string",
        ),
        (["conversation", "session_2", 0, "dia_id"], "D1:1", "'D1:1' occurs 2 times"),
        (
            ["conversation", "session_1", 0, "text"],
            "\ud800",
            "conv-1 session_1[0]: field 'text' contains a lone surrogate",
        ),
        (["qa"], {}, "record 0: field 'qa' is an object, not a list"),
        (["qa", 3], "x", "conv-1 qa[3] is a string, not an object"),
        (["qa", 0, "question"], ..., "conv-1 qa[0]: field 'question' is missing"),
        (["qa", 0, "question"], " ", "conv-1 qa[0]: field 'question' is empty"),
        (["qa", 0, "answer"], ..., "conv-1 qa[0]: field 'answer' is missing"),
        (
            ["qa", 0, "answer"],
            True,
            "conv-1 qa[0]: field 'answer' is a boolean, not a string or a number",
        ),
        (["qa", 0, "answer"], None, "conv-1 qa[0]: field 'answer' is null"),
        (["qa", 0, "answer"], "", "conv-1 qa[0]: field 'answer' is empty"),
        (["qa", 0, "answer"], float("nan"), "field 'answer' is nan, not a string or a number"),
        (["qa", 0, "category"], "4", "conv-1 qa[0]: field 'category' is a string, not an integer"),
        (["qa", 0, "category"], True, "conv-1 qa[0]: field 'category' is a boolean"),
        (
            ["qa", 0, "category"],
            6,
            "conv-1 qa[0]: field 'category' is 6, not one of [1, 2, 3, 4, 5]",
        ),
        (["qa", 0, "evidence"], "D1:1", "conv-1 qa[0]: field 'evidence' is a string, not a list"),
        (
            ["qa", 0, "evidence"],
            [1],
            "conv-1 qa[0]: field 'evidence' contains something that is not a string",
        ),
    ],
)
def test_a_damaged_record_is_named_with_its_field(
    tmp_path: Path, path: list[Any], value: Any, message: str
) -> None:
    assert message in str(failure(tmp_path, changed(path, value)))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["D1:1", "conv-1", 1, 4, 5]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["qa", "session_1", "session_3", "text", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """The sample with one to three of its values replaced, removed or duplicated."""
    content: Any = [sample(), sample(sample_id="conv-2")]
    for _ in range(draw(st.integers(1, 3))):
        place = content
        while True:
            keys = list(range(len(place))) if isinstance(place, list) else list(place)
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(place[key], dict | list) and draw(st.integers(0, 4)):
                place = place[key]
                continue
            action = draw(st.sampled_from(["replace", "remove", "double"]))
            if action == "replace":
                place[key] = draw(JSON)
            elif action == "remove":
                del place[key]
            elif isinstance(place, list):
                place.append(place[key])
            else:
                place[draw(st.text(max_size=6))] = place[key]
            break
    return content


def survives(folder: Path, content: Any) -> None:
    dataset = locomo(write(folder, content), allow_unpinned=True)
    try:
        dataset.open()
        cases = list(dataset.read())
    except UserError:
        return
    read = json.loads(dataset.path.read_text(encoding="utf-8-sig"))
    assert [len(case.questions) for case in cases] == [len(record["qa"]) for record in read]
    for case in cases:
        turns = [turn.turn_id for session in case.sessions for turn in session.turns]
        assert len(turns) == len(set(turns))
        assert all(set(question.evidence) <= set(turns) for question in case.questions)
        assert all(bool(question.gold) == question.answerable for question in case.questions)
        json.dumps([repr(case)], ensure_ascii=False).encode()


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(content=mutated())
def test_mutated_records_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: Any
) -> None:
    survives(tmp_path_factory.getbasetemp(), content)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mutated_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray(json.dumps([sample()]).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(raw)))
        raw[start : start + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    survives(tmp_path_factory.getbasetemp(), bytes(raw))
