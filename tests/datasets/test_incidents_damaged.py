from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from incident_tables_sample import HEADER, ROWS, write_table

from memeval.datasets.locate import build
from memeval.errors import UserError


def failure(path: Path, name: str = "demo_incidents") -> str:
    with pytest.raises(UserError) as caught:
        list(build(name, Path(), path=str(path)).cases())
    message = caught.value.message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "north,,2024-13-01 08:00:00,gate,pod,leak,",
            "line 2: field 'datetime_local' is '2024-13-01 08:00:00', not a local time like",
        ),
        (
            "north,,2024-03-01,gate,pod,leak,",
            "line 2: field 'datetime_local' is '2024-03-01', not a local time like",
        ),
        (
            "north,,2024-03-01 08:00:00+02:00,gate,pod,leak,",
            "field 'datetime_local' is '2024-03-01 08:00:00+02:00', not a local time",
        ),
        ("north,,,gate,pod,leak,", "field 'datetime_local' is '', not a local time"),
        (
            "north,soon,2024-03-01 08:00:00,gate,pod,leak,",
            "line 2: field 'timestamp' is 'soon', not seconds since 1970",
        ),
        ("north,,2024-03-01 08:00:00,,pod,leak,", "line 2: field 'component' is empty"),
        (",,2024-03-01 08:00:00,gate,pod,leak,", "line 2: field 'dataset' is empty"),
        (
            "north,,2024-03-01 08:00:00,gate,pod,leak,long",
            "line 2: field 'duration_s' is 'long', not a number of seconds",
        ),
        (
            "north,,2024-03-01 08:00:00,gate,pod,leak,-1",
            "field 'duration_s' is '-1', not a duration",
        ),
        (
            "north,,2024-03-01 08:00:00,gate,pod,leak,nan",
            "field 'duration_s' is 'nan', not a duration",
        ),
        (
            "north,,2024-03-01 08:00:00,gate,pod",
            "line 2: 5 cells, but the header has 7 columns: is the file cut off?",
        ),
        (
            "north,,2024-03-01 08:00:00,gate,pod,leak,,x",
            "line 2: 8 cells, but the header has 7 columns",
        ),
        (
            "north,,2024-03-01 08:00:00,---,pod,leak,",
            "the name '---' contains neither letters nor digits",
        ),
        ('north,,2024-03-01 08:00:00,"gate"x,pod,leak,', "line 2: ',' expected after '\"'"),
    ],
)
def test_a_damaged_row_is_named_with_its_field(tmp_path: Path, row: str, message: str) -> None:
    found = failure(write_table(tmp_path, [row, *ROWS]))
    assert message in found and "table.csv" in found


def test_names_that_would_be_shown_alike_are_refused(tmp_path: Path) -> None:
    rows = [*ROWS, "north,,2024-03-12 08:00:00,Gate 1,node,disk full,"]
    assert "the names 'gate-1' and 'Gate 1' would both be shown as 'Gate_1'" in failure(
        write_table(tmp_path, rows)
    )


def test_damaged_table_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = write_table(tmp_path)
    whole = path.read_bytes()
    for content, message in (
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (HEADER.encode(), "contains no rows below its header"),
        (whole.replace(b"fault_type", b"fault"), "line 1: column 'fault_type' is missing"),
        (whole.replace(b"level", b"component", 1), "line 1: column 'component' occurs 2 times"),
        (whole.replace(b"dataset,", b",,level,", 1), "line 1: column 'level' occurs 2 times"),
        (whole.replace(b"gate-2", b"g\xe4te", 1), "is not UTF-8 text: byte"),
        (whole.decode().encode("utf-16"), "is not UTF-8 text"),
        (whole.replace(b"gate-2", b"ga\0te", 1), "line 3 contains a NUL byte"),
        (whole[:-12], "is the file cut off?"),
        (whole.replace(b"gate-2", b'"gate', 1), "unexpected end of data"),
    ):
        path.write_bytes(content)
        assert message in failure(path)


def test_missing_file_and_empty_folder_are_refused(tmp_path: Path) -> None:
    assert failure(tmp_path / "none.csv").endswith("none.csv is missing.")
    assert "contains neither *-fault_list.json (Nezha) nor agent-*.csv (OpenRCA)" in failure(
        tmp_path
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "the file is a list, not an object"),
        ('{"03": {}}', "the file: field '03' is an object, not a list"),
        ('{"03": [1]}', "03[0] is an integer, not an object"),
        (
            '{"03": [{"inject_time": "2022-01-02 03:00:00", "inject_type": "x"}]}',
            "03[0]: field 'inject_pod' is missing",
        ),
        (
            '{"03": [{"inject_time": 3, "inject_pod": "cart-579b9bff58-t2dbm", '
            '"inject_type": "x"}]}',
            "field 'inject_time' is an integer, not a string",
        ),
        (
            '{"03": [{"inject_time": "?", "inject_pod": "cart", "inject_type": "x"}]}',
            "field 'inject_pod' is not a pod name",
        ),
        ('{"03": [', "is not JSON"),
    ],
)
def test_damaged_nezha_list_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "2022-01-02-fault_list.json").write_text(content, encoding="utf-8")
    assert message in failure(tmp_path)


def test_damaged_openrca_and_dejavu_tables_are_refused(tmp_path: Path) -> None:
    write_table(tmp_path, ['"level: pod\ncomponent: a\nreason: b"'], "groundtruth", "agent-X.csv")
    assert "line 4 groundtruth: field 'datetime' is missing" in failure(tmp_path)
    header = "timestamp,root_cause_node"
    assert "line 2: field 'root_cause_node' names no node" in failure(
        write_table(tmp_path, ["1, ; ;"], header)
    )
    assert "line 2: field 'timestamp' is '1e400', not seconds since 1970" in failure(
        write_table(tmp_path, ["1e400,a"], header)
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mutated_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = write_table(tmp_path_factory.getbasetemp(), name="mutated.csv")
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(raw)))
        raw[start : start + data.draw(st.integers(0, 4))] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b",", b'"', b"\n", b"\r"])
        )
    path.write_bytes(raw)
    try:
        cases = list(build("demo_incidents", Path(), path=str(path)).cases())
    except UserError as error:
        assert "mutated.csv" in error.message
        return
    for case in cases:
        turns = [turn.turn_id for session in case.sessions for turn in session.turns]
        assert len(turns) == len(set(turns))
        assert all(set(question.evidence) <= set(turns) for question in case.questions)
        json.dumps(repr(case), ensure_ascii=False).encode()
