"""The demonstration data set that ships with memeval, checked with only the standard library."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).resolve().parents[2] / "data" / "demo" / "demo.json"
PAGE = PATH.parents[2] / "docs" / "datasets" / "demo.md"
DATE_FORMAT = "%I:%M %p on %d %B, %Y"
WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

# sample: sessions, turns, questions by category 1 to 5. The page states the same figures.
COUNTS = {
    "demo-1": (9, 121, (3, 5, 1, 10, 2)),
    "demo-2": (9, 130, (4, 5, 1, 9, 2)),
    "demo-3": (9, 101, (3, 2, 1, 8, 2)),
    "demo-4": (5, 43, (1, 3, 1, 4, 2)),
    "demo-5": (5, 46, (2, 3, 1, 4, 2)),
    "demo-6": (5, 43, (1, 3, 1, 4, 2)),
    "demo-7": (5, 41, (2, 3, 1, 4, 2)),
    "demo-8": (5, 41, (1, 3, 1, 5, 2)),
    "demo-9": (5, 41, (2, 3, 1, 5, 2)),
    "demo-10": (5, 43, (1, 4, 1, 5, 2)),
}

# Temporal golds that follow from one phrase in a turn and the date of its session.
RESOLVED = [
    ("demo-1", "D1:6", "last Sunday", "8 January 2023"),
    ("demo-1", "D2:1", "last Thursday", "23 February 2023"),
    ("demo-1", "D4:4", "last Friday", "19 May 2023"),
    ("demo-1", "D7:6", "two weeks ago today", "16 September 2023"),
    ("demo-1", "D9:7", "On Thursday", "28 December 2023"),
    ("demo-2", "D2:3", "on Wednesday", "31 January 2024"),
    ("demo-2", "D6:2", "on Monday", "3 June 2024"),
    ("demo-2", "D9:10", "last Friday", "4 October 2024"),
    ("demo-3", "D1:5", "Yesterday", "17 September 2022"),
    ("demo-4", "D1:6", "last Friday", "5 March 2021"),
    ("demo-4", "D2:4", "on Tuesday", "20 April 2021"),
    ("demo-4", "D5:1", "yesterday", "21 May 2022"),
    ("demo-5", "D2:1", "on Friday", "22 March 2024"),
    ("demo-5", "D3:2", "on Wednesday", "15 May 2024"),
    ("demo-5", "D4:4", "last Friday", "26 July 2024"),
    ("demo-6", "D1:2", "on Saturday", "18 January 2020"),
    ("demo-6", "D2:6", "on Thursday", "12 March 2020"),
    ("demo-6", "D4:1", "on Wednesday", "23 September 2020"),
    ("demo-7", "D1:3", "on Monday", "10 April 2023"),
    ("demo-7", "D3:1", "on Friday", "1 September 2023"),
    ("demo-7", "D5:1", "yesterday", "15 March 2024"),
    ("demo-8", "D1:2", "on Saturday", "11 May 2024"),
    ("demo-8", "D2:1", "last Thursday", "13 June 2024"),
    ("demo-8", "D3:2", "on Tuesday", "20 August 2024"),
    ("demo-9", "D2:1", "on Wednesday", "1 December 2021"),
    ("demo-9", "D3:1", "last Thursday", "24 March 2022"),
    ("demo-9", "D4:1", "on Friday", "17 June 2022"),
    ("demo-10", "D1:6", "last Wednesday", "12 February 2025"),
    ("demo-10", "D2:1", "on Thursday", "10 April 2025"),
    ("demo-10", "D3:1", "on Monday", "23 June 2025"),
    ("demo-10", "D5:3", "yesterday", "18 October 2025"),
]

# Golds that occur only in an image caption of their conversation.
CAPTION_ONLY = [
    ("demo-1", "D5:5", "seahorse"),
    ("demo-2", "D6:7", "fire extinguisher"),
    ("demo-3", "D7:6", "doll's arm"),
    ("demo-4", "D3:7", "purple tarpaulin"),
    ("demo-5", "D2:3", "wheelbarrow"),
    ("demo-6", "D3:8", "orange"),
    ("demo-7", "D3:8", "silver trumpet"),
    ("demo-8", "D2:3", "green light"),
    ("demo-9", "D3:6", "red ladder"),
]

DATA: list[dict[str, Any]] = json.loads(PATH.read_text(encoding="utf-8"))
SAMPLES = pytest.mark.parametrize("sample", DATA, ids=[s["sample_id"] for s in DATA])


def sessions(sample: dict[str, Any]) -> dict[int, list[dict[str, Any]]]:
    found = {
        int(m[1]): v
        for k, v in sample["conversation"].items()
        if (m := re.fullmatch(r"session_(\d+)", k))
    }
    return dict(sorted(found.items()))


def turns(sample: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {t["dia_id"]: t for session in sessions(sample).values() for t in session}


def when(sample: dict[str, Any], session: int | str) -> datetime:
    return datetime.strptime(sample["conversation"][f"session_{session}_date_time"], DATE_FORMAT)


def session_of(dia_id: str) -> str:
    return dia_id[1:].split(":", maxsplit=1)[0]


def by_id(sample_id: str) -> dict[str, Any]:
    return next(s for s in DATA if s["sample_id"] == sample_id)


def day(d: date) -> str:
    return f"{d.day} {d:%B %Y}"


def resolve(phrase: str, spoken: date) -> str:
    """The gold that a relative expression means on a given day."""
    words = phrase.lower()
    weekday = next((i for i, name in enumerate(WEEKDAYS) if name.lower() in words), None)
    if weekday is not None:
        back = (spoken.weekday() - weekday) % 7 or 7
        return day(spoken - timedelta(days=back))
    fixed = {
        "yesterday": day(spoken - timedelta(days=1)),
        "two weeks ago today": day(spoken - timedelta(days=14)),
    }
    return fixed[words]


def test_file_is_small_utf8_json_with_indent_1():
    raw = PATH.read_bytes()
    assert len(raw) <= 150_000
    assert raw.decode("utf-8") == json.dumps(DATA, indent=1, ensure_ascii=False) + "\n"


def test_samples_have_the_stated_counts():
    found = {}
    for sample in DATA:
        categories = Counter(q["category"] for q in sample["qa"])
        assert set(categories) == {1, 2, 3, 4, 5}
        found[sample["sample_id"]] = (
            len(sessions(sample)),
            len(turns(sample)),
            tuple(categories[c] for c in range(1, 6)),
        )
    assert found == COUNTS
    assert len(
        {frozenset((s["conversation"]["speaker_a"], s["conversation"]["speaker_b"])) for s in DATA}
    ) == len(DATA)


def test_category_shares_are_near_those_of_locomo():
    total = Counter(q["category"] for s in DATA for q in s["qa"])
    share = {c: n / total.total() for c, n in total.items()}
    assert total.total() >= 80
    for category, expected in {1: 0.15, 2: 0.17, 3: 0.08, 4: 0.40, 5: 0.20}.items():
        assert share[category] == pytest.approx(expected, abs=0.08)


def test_the_page_states_the_counts():
    text = PAGE.read_text(encoding="utf-8").replace("**", "")
    rows = [(name, n, t, sum(qa), *qa) for name, (n, t, qa) in COUNTS.items()]
    rows.append(("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])))
    for row in rows:
        assert "| " + " | ".join(map(str, row)) + " |" in text


@SAMPLES
def test_keys_are_those_of_locomo(sample: dict[str, Any]):
    assert list(sample) == ["qa", "conversation", "sample_id"]
    expected = ["speaker_a", "speaker_b"]
    for n in range(1, len(sessions(sample)) + 1):
        expected += [f"session_{n}_date_time", f"session_{n}"]
    assert list(sample["conversation"]) == expected
    for turn in turns(sample).values():
        assert list(turn) in (
            ["speaker", "dia_id", "text"],
            ["speaker", "blip_caption", "dia_id", "text"],
        )
        assert all(isinstance(v, str) and v and v == v.strip() for v in turn.values())


@SAMPLES
def test_turns_are_numbered_and_spoken_in_alternation(sample: dict[str, Any]):
    speakers = {sample["conversation"]["speaker_a"], sample["conversation"]["speaker_b"]}
    assert len(speakers) == 2
    for n, session in sessions(sample).items():
        assert 7 <= len(session) <= 16
        assert [t["dia_id"] for t in session] == [f"D{n}:{i}" for i in range(1, len(session) + 1)]
        assert {t["speaker"] for t in session} == speakers
        assert all(a["speaker"] != b["speaker"] for a, b in pairwise(session))
    texts = [t["text"] for t in turns(sample).values()]
    assert len(set(texts)) == len(texts)


@SAMPLES
def test_dates_parse_and_ascend(sample: dict[str, Any]):
    dates = [when(sample, n) for n in sessions(sample)]
    assert len(dates) >= 5
    assert all(a < b for a, b in pairwise(dates))
    assert (dates[-1] - dates[0]).days > 180


@SAMPLES
def test_questions_are_well_formed(sample: dict[str, Any]):
    known = turns(sample)
    questions = [q["question"] for q in sample["qa"]]
    assert len(questions) >= 11
    assert len({q.casefold() for q in questions}) == len(questions)
    for q in sample["qa"]:
        assert q["question"].endswith("?")
        assert q["category"] in range(1, 6)
        assert q["evidence"] and set(q["evidence"]) <= set(known), q["question"]
        assert len(set(q["evidence"])) == len(q["evidence"])
        order = [tuple(map(int, e[1:].split(":"))) for e in q["evidence"]]
        assert order == sorted(order)
        if q["category"] == 5:
            assert list(q) == ["question", "evidence", "category", "adversarial_answer"]
            assert isinstance(q["adversarial_answer"], str) and q["adversarial_answer"]
        else:
            assert list(q) == ["question", "answer", "evidence", "category"]
            assert type(q["answer"]) in (str, int) and q["answer"]


def test_evidence_fits_the_category():
    questions = [q for sample in DATA for q in sample["qa"]]
    multi = [q for q in questions if q["category"] == 1]
    assert all(len(q["evidence"]) >= 2 for q in multi)
    across = [q for q in multi if len({session_of(e) for e in q["evidence"]}) >= 2]
    assert len(across) >= 0.8 * len(multi)
    for q in questions:
        if q["category"] == 4:
            assert len({session_of(e) for e in q["evidence"]}) == 1, q["question"]


def test_golds_have_the_form_of_their_category():
    golds = [(q["category"], q["answer"]) for s in DATA for q in s["qa"] if q["category"] != 5]
    assert [(c, a) for c, a in golds if isinstance(a, int)] == [(2, 2019), (2, 1961)]
    assert all(";" in a for c, a in golds if c == 3)
    assert not any(";" in str(a) for c, a in golds if c != 3)
    assert sum("," in a for c, a in golds if c == 1) >= 8
    for _, a in (g for g in golds if g[0] == 2):
        assert re.search(r"\b(19|20)\d\d$", str(a))


def test_integer_golds_occur_in_their_evidence():
    for sample in DATA:
        known = turns(sample)
        for q in sample["qa"]:
            if isinstance(q.get("answer"), int):
                assert any(str(q["answer"]) in known[e]["text"] for e in q["evidence"])


@pytest.mark.parametrize(("sample_id", "dia_id", "phrase", "gold"), RESOLVED)
def test_relative_dates_resolve_to_the_gold(sample_id: str, dia_id: str, phrase: str, gold: str):
    sample = by_id(sample_id)
    assert phrase in turns(sample)[dia_id]["text"]
    assert resolve(phrase, when(sample, session_of(dia_id)).date()) == gold
    assert any(
        q["category"] == 2 and dia_id in q["evidence"] and q["answer"] == gold for q in sample["qa"]
    )


def test_nearly_every_temporal_gold_is_resolved_above():
    """The remaining ones are stated directly: a feast, a year."""
    resolved = {(s, gold) for s, _, _, gold in RESOLVED}
    rest = {
        q["answer"]
        for s in DATA
        for q in s["qa"]
        if q["category"] == 2 and (s["sample_id"], q["answer"]) not in resolved
    }
    assert rest == {"31 December 2023", 2019, 1961}


@pytest.mark.parametrize(("sample_id", "dia_id", "detail"), CAPTION_ONLY)
def test_caption_only_details_occur_only_in_captions(sample_id: str, dia_id: str, detail: str):
    known = turns(by_id(sample_id))
    assert detail in known[dia_id]["blip_caption"]
    assert not any(detail in t["text"].lower() for t in known.values())
    assert any(q["category"] == 4 and dia_id in q["evidence"] for q in by_id(sample_id)["qa"])
