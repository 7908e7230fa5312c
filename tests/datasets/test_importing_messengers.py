"""`data import` of messengers: realistic exports of Telegram and WhatsApp, through the command."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from memeval.cli.data import data
from memeval.errors import UserError

Turn = tuple[str, str, str]


def imported(folder: Path, *words: object) -> dict[str, list[list[Turn]]]:
    """Time, speaker and text of each turn, by session and case."""
    target = folder / "mine.json"
    target.unlink(missing_ok=True)
    assert data(["import", *map(str, words), "--into", str(target)]) == 0
    return {
        case["case_id"]: [
            [(turn.get("time", ""), turn["speaker"], turn["text"]) for turn in session["turns"]]
            for session in case["sessions"]
        ]
        for case in json.loads(target.read_bytes())["cases"]
    }


def said(number: int, name: str | None, text: Any, **more: Any) -> dict[str, Any]:
    """A message as Telegram Desktop exports it, one per hour from 6 May 2024, 22:00 in Berlin."""
    at = 1_715_025_600 + 3600 * number
    hour = 22 + number
    return {
        "id": number,
        "type": "message",
        "date": f"2024-05-{6 + hour // 24:02}T{hour % 24:02}:00:00",
        "date_unixtime": str(at),
        "from": name,
        "from_id": f"user{len(name or '')}",
        "text": text,
        "text_entities": [],
        **more,
    }


MESSAGES = [
    {"id": 0, "type": "service", "actor": "Ida", "action": "create_group", "text": ""},
    said(1, "Ida", "Where is the key?"),
    said(2, "Bo", ["Under the ", {"type": "bold", "text": "third"}, " pot, see ", "x.org"]),
    said(3, None, "", file_name="map.pdf", media_type="document"),
    said(4, "Bo", "", photo="(File not included.)"),
]
TURNS = [
    [("2024-05-06T21:00:00Z", "Ida", "Where is the key?")],
    [
        ("2024-05-06T22:00:00Z", "Bo", "Under the third pot, see x.org"),
        ("2024-05-06T23:00:00Z", "user0", "[file: map.pdf]"),
    ],
]


def chat(name: str | None, number: int) -> dict[str, Any]:
    return {"name": name, "type": "private_group", "id": number, "messages": MESSAGES}


def test_chat_of_telegram_has_a_session_per_day(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "result.json").write_text(json.dumps(chat("House", 7), indent=1))
    assert imported(tmp_path, tmp_path / "result.json") == {"House": TURNS}
    output = capsys.readouterr().out
    assert "an export of Telegram" in output
    assert "left out: 1 message of the system" in output
    assert "left out: 1 message without text" in output


def test_all_chats_of_telegram_are_cases(tmp_path: Path) -> None:
    chats = [chat("House", 7), chat("Work", 8), chat("Work", 9), chat(None, 10)]
    export = {"about": "x", "personal_information": {}, "chats": {"about": "y", "list": chats}}
    (tmp_path / "result.json").write_text(json.dumps(export))
    cases = imported(tmp_path, tmp_path / "result.json")
    assert list(cases) == ["House", "Work (8)", "Work (9)", "result (10)"]
    assert all(turns == TURNS for turns in cases.values())


IPHONE = """\
\u200e[06.05.24, 09:30:15] House: \u200eMessages and calls are end-to-end encrypted.
[06.05.24, 09:30:59] Ida: Where is the key?
I need it: now.
[06.05.24, 09:31:02] ~\u202fBo: Under the third pot
\u200e[06.05.24, 09:31:40] ~\u202fBo: \u200eimage omitted
[13.05.24, 18:02:00] Ida: Thanks
"""
ANDROID = """\
5/6/24, 9:30\u202fAM - Messages and calls are end-to-end encrypted.
5/6/24, 9:30\u202fAM - Ida created group "House: ours"
5/6/24, 9:30\u202fAM - Ida: Where is the key?
I need it: now.
5/6/24, 9:31\u202fAM - \u202a+49 170 1234567\u202c: Under the third pot
5/6/24, 9:31\u202fAM - Ida: <Media omitted>
5/13/24, 6:02\u202fPM - Ida: Thanks
"""


CHAT = ("Ida: Where is the key?\nI need it: now.", "Bo: Under the third pot", "Ida: Thanks")
FORMS = [
    (
        ("6.5.2024 klo 9.30 - ", "6.5.2024 klo 9.31 - ", "13.5.2024 klo 18.02 - "),
        ("00", "00"),
    ),
    (
        ("[6.5.2024 klo 9.30.59] ", "[6.5.2024 klo 9.31.02] ", "[13.5.2024 klo 18.02.00] "),
        ("59", "02"),
    ),
    (
        ("06/05/2024 à 09:30 - ", "06/05/2024 à 09:31 - ", "13/05/2024 à 18:02 - "),
        ("00", "00"),
    ),
    (
        (
            "٦\u200f/٥\u200f/٢٠٢٤، ٩:٣٠ ص - ",
            "٦\u200f/٥\u200f/٢٠٢٤، ٩:٣١ ص - ",
            "١٣\u200f/٥\u200f/٢٠٢٤، ٦:٠٢ م - ",
        ),
        ("00", "00"),
    ),
    (
        ("[2024/5/6 上午9:30:59] ", "[2024/5/6 上午9:31:02] ", "[2024/5/13 下午6:02:00] "),
        ("59", "02"),
    ),
    (
        ("2024. 5. 6. 오전 9:30 - ", "2024. 5. 6. 오전 9:31 - ", "2024. 5. 13. 오후 6:02 - "),
        ("00", "00"),
    ),
]
"""Beginnings of messages in other languages, and the seconds of the first two."""


@pytest.mark.parametrize(
    ("text", "second", "seconds"),
    [
        (IPHONE, "Bo", ("59", "02")),
        (ANDROID, "+49 170 1234567", ("00", "00")),
        (
            ANDROID.replace("\u202fAM", " a.m.").replace("\u202fPM", " p.m."),
            "+49 170 1234567",
            2 * ("00",),
        ),
        (
            IPHONE.replace("06.05.24,", "2024-05-06").replace("13.05.24", "2024-05-13"),
            "Bo",
            ("59", "02"),
        ),
        *(
            (
                "".join(f"{begin}{text}\n" for begin, text in zip(begins, CHAT, strict=True)),
                "Bo",
                ends,
            )
            for begins, ends in FORMS
        ),
    ],
)
def test_whatsapp_is_read_in_the_forms_of_telephones(
    text: str, second: str, seconds: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "WhatsApp Chat with House.txt"
    path.write_text(text, encoding="utf-8")
    assert imported(tmp_path, path) == {
        "WhatsApp Chat with House": [
            [
                (f"2024-05-06T09:30:{seconds[0]}", "Ida", "Where is the key?\nI need it: now."),
                (f"2024-05-06T09:31:{seconds[1]}", second, "Under the third pot"),
            ],
            [("2024-05-13T18:02:00", "Ida", "Thanks")],
        ]
    }


def test_archives_of_whatsapp_are_named_by_their_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("House", "Work"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("_chat.txt", IPHONE)
            archive.writestr("00000002-PHOTO.jpg", b"\xff\xd8")

    cases = imported(tmp_path, tmp_path / "House.zip", tmp_path / "Work.zip")
    assert list(cases) == ["House", "Work"]
    output = capsys.readouterr().out
    assert "an export of WhatsApp" in output and "left out: 2 files of other kinds" in output
    assert "left out: 4 rows without a text" in output


def test_day_and_month_of_whatsapp_may_need_the_date_format(tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(ANDROID.split("\n5/13", maxsplit=1)[0], encoding="utf-8")
    with pytest.raises(UserError, match="day and month can't be told apart") as refused:
        imported(tmp_path, path)

    date_format = refused.value.hints[0].split("'")[3]
    assert date_format == "%m/%d/%y %H:%M"
    with pytest.raises(UserError, match="no time matches --date-format; one is") as refused:
        imported(tmp_path, path, "--date-format", "%m/%d/%y")

    assert "such as '%d/%m/%Y %H:%M'" in refused.value.hints[0]
    ((first, _),) = imported(tmp_path, path, "--date-format", date_format)["chat"]
    assert first[0] == "2024-05-06T09:30:00"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("notes.txt", f"My notes\n{ANDROID}", ()),
        ("notes.txt", f"My notes\n{ANDROID}", ("--as", "whatsapp")),
        ("service.txt", "[2024-05-06 09:30:12] ERROR: no reply\n", ()),
        ("chat.txt", ANDROID, ("--as", "messages")),
        ("chat.json", json.dumps(chat("House", 7)), ("--as", "whatsapp")),
    ],
)
def test_other_text_is_not_read_as_a_chat(
    name: str, text: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="unknown format"):
        imported(tmp_path, tmp_path / name, *words)
