from __future__ import annotations

from pathlib import Path

import pytest
from storm_oracle import prove, read

from memeval.datasets.alert_storm.adapter import LOG_FILE
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.records import EvalCase

HEADER = (
    "LineId,Label,Timestamp,Date,Node,Time,NodeRepeat,Type,Component,Level,Content,EventId,"
    "EventTemplate"
)


def line(number: int, label: str, node: str, time: str) -> str:
    return f'{number},{label},0,d,{node},{time},{node},RAS,KERNEL,FATAL,"bad, read  {number}",E1,x'


ROWS = [
    line(1, "-", "R02-M1", "2005-06-03-15.42.50.675872"),
    line(2, "APPREAD", "R02-M1", "2005-06-03-15.43.50.675872"),
    line(3, "KERN", "R02-M0", "2005-06-03-15.43.50.675999"),
    line(4, "APPREAD", "R02-M0", "2005-06-04-15.43.51.000001"),
    line(5, "APPREAD", "R02-M1", "2005-06-04-15.43.52.5"),
]


def write(folder: Path, rows: list[str] = ROWS, header: str = HEADER) -> Path:
    path = folder / "log.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def cases(path: Path) -> list[EvalCase]:
    return list(build("alert_storm", Path(), source="log", path=str(path)).cases())


def test_only_alerts_are_shown_and_asked_about(tmp_path: Path) -> None:
    (case,) = cases(write(tmp_path))
    assert [(one.turn, one.device, one.kind, one.time, one.severity) for one in read(case)][
        ::3
    ] == [
        ("s1t1", "R02_M1", "APPREAD", "2005-06-03 15:43:50.675", "fatal"),
        ("s2t2", "R02_M1", "APPREAD", "2005-06-04 15:43:52.500", "fatal"),
    ]
    prove(case)
    assert {question.category for question in case.questions} == {"IE", "MR", "TR", "KU", "ABS"}
    assert not any("2005-06-03 15:43:50.675" in question.text for question in case.questions)


def test_open_notes_how_many_lines_are_alerts(tmp_path: Path) -> None:
    path = write(tmp_path)
    opened = build("alert_storm", Path(), source="log", path=str(path)).open()
    assert opened.notes == ("log: 4 of 5 lines are alerts; the others are left out",)
    assert opened.path == path


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            line(6, "APP", "R1", "2005-06-03"),
            "line 7: field 'Time' is '2005-06-03', not a time like",
        ),
        (line(6, "APP", "", "2005-06-03-15.42.50.675872"), "line 7: field 'Node' is empty"),
        (
            line(6, "APP", "::", "2005-06-03-15.42.50.675872"),
            "line 7: field 'Node' contains neither letters nor digits",
        ),
        (line(6, "", "R1", "2005-06-03-15.42.50.675872"), "line 7: field 'Label' is empty"),
        (
            line(3, "APP", "R1", "2005-06-03-15.42.50.675872"),
            "line 7: field 'LineId' is 3, as on line 4",
        ),
        ("6,APP,0,d,R1", "line 7: 5 cells, but the header has 13 columns: is the file cut off?"),
    ],
)
def test_a_damaged_row_is_named_with_its_field(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        cases(write(tmp_path, [*ROWS, row]))
    assert message in caught.value.message and "log.csv" in caught.value.message


def test_damaged_log_is_refused_with_its_reason(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    for content, message in (
        (b"", "is empty"),
        (HEADER.encode(), "contains no rows below its header"),
        (whole.replace(b"Label", b"Mark", 1), "line 1: column 'Label' is missing"),
        (whole.replace(b"bad", b"b\xe4d", 1), "is not UTF-8 text"),
        (whole.replace(b"bad", b"b\0d", 1), "line 2 contains a NUL byte"),
        ("\n".join([HEADER, ROWS[0]]).encode(), "contains no alerts: every line has the label '-'"),
        (whole[:-5], "is the file cut off?"),
        (whole[:-12], "unexpected end of data"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            cases(path)
        assert message in caught.value.message, message
    with pytest.raises(UserError, match="is missing"):
        cases(tmp_path / "none.csv")


@pytest.mark.real_data
def test_published_log_has_its_recorded_alerts(data_dir: Path) -> None:
    dataset = build("alert_storm", data_dir, source="log")
    opened = dataset.open()
    assert (opened.path, opened.notes) == (
        data_dir / LOG_FILE,
        ("log: 143 of 2000 lines are alerts; the others are left out",),
    )
    (case,) = dataset.cases()
    lines = read(case)
    assert len(lines) == 143
    assert [(one.device, one.kind, one.time) for one in (lines[0], lines[9], lines[-1])] == [
        ("R04_M1_N4_I_J18_U11", "APPREAD", "2005-06-04 00:24:32.432"),
        ("R30_M0_N9_C_J16_U01", "KERNDTLB", "2005-06-11 18:03:02.884"),
        ("R32_M0_NC_I_J18_U01", "APPSEV", "2005-12-14 23:16:59.947"),
    ]
    prove(case)
