from __future__ import annotations

import locale
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from locomo_samples import SAMPLE, locomo, sample, write

from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.locomo.names import LOCOMO_NAMES, category_names
from memeval.datasets.locomo.schema import parse_date, repair_evidence
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase


def load(folder: Path, content: Any = None, **settings: Any) -> list[EvalCase]:
    path = write(folder, [sample()] if content is None else content)
    return list(locomo(path, allow_unpinned=True, **settings).cases())


def test_sessions_that_exist_are_read_in_numeric_order(tmp_path: Path) -> None:
    (case,) = load(tmp_path)
    assert [session.session_id for session in case.sessions] == ["s1", "s2", "s10"]
    assert [session.started_at for session in case.sessions] == [
        datetime(2023, 5, 8, 13, 56),
        datetime(2023, 5, 9, 12, 30),
        datetime(2023, 6, 1, 0, 5),
    ]
    assert case.case_id == "conv-1"
    assert case.speakers == ("Ann", "Bob")
    assert all(
        turn.time == session.started_at for session in case.sessions for turn in session.turns
    )


def test_questions_keep_their_index_their_gold_and_their_category(tmp_path: Path) -> None:
    (case,) = load(tmp_path)
    rows = [(q.question_id, q.category, q.gold, q.answerable) for q in case.questions]
    assert rows == [
        ("conv-1/q0", 4, ("a kayak",), True),
        ("conv-1/q1", 2, ("2023",), True),
        ("conv-1/q2", 5, (), False),
        ("conv-1/q3", 5, (), False),
        ("conv-1/q4", 3, ("Yes; it floats",), True),
        ("conv-1/q5", 1, ("a kayak, a paddle",), True),
    ]


def test_evidence_is_repaired_deduplicated_and_counted(tmp_path: Path) -> None:
    (case,) = load(tmp_path)
    assert [q.evidence for q in case.questions] == [
        ("D1:1",),
        ("D10:1", "D2:1", "D1:1"),
        ("D1:1",),
        ("D1:2",),
        (),
        ("D1:1",),
    ]
    notes = locomo(tmp_path / "locomo10.json", allow_unpinned=True).open().notes
    assert notes == (
        "evidence: 4 of 9 strings are not turn ids: 2 repaired, 2 dropped",
        "evidence: 1 of 6 questions have no evidence",
        "category 5: 1 of 2 questions carry an answer, which is ignored: the right answer is a "
        "refusal",
    )


def test_answers_that_an_export_wrote_as_null_are_none(tmp_path: Path) -> None:
    record = sample()
    for number in (2, 3):
        record["qa"][number]["answer"] = None

    notes = locomo(write(tmp_path, [record]), allow_unpinned=True).open().notes
    assert not any(note.startswith("category 5") for note in notes)


def test_repair_evidence_keeps_only_existing_turns() -> None:
    turns = {"D8:6", "D9:17", "D11:26", "D30:5"}
    assert repair_evidence(["D8:6; D9:17"], turns) == ("D8:6", "D9:17")
    assert repair_evidence(["D:11:26"], turns) == ("D11:26",)
    assert repair_evidence(["D30:05", "D30:5", "D"], turns) == ("D30:5",)
    assert repair_evidence(["D1" * 5000 + ":" + "9" * 5000], turns) == ()


def test_images_setting_shows_or_hides_captions(tmp_path: Path) -> None:
    assert [turn.caption for turn in load(tmp_path)[0].sessions[0].turns] == [None, "a red kayak"]
    assert [turn.caption for turn in load(tmp_path, images="none")[0].sessions[0].turns] == [
        None,
        None,
    ]


def test_limits_and_categories_keep_ids(tmp_path: Path) -> None:
    content = [sample(), sample(sample_id="conv-2")]
    cases = load(tmp_path, content, limit_cases=1, categories=(1, 3), limit_questions=1)
    assert [[q.question_id for q in case.questions] for case in cases] == [["conv-1/q4"]]
    cases = load(tmp_path, content, categories=(5,))
    assert [[q.question_id for q in case.questions] for case in cases] == [
        [f"conv-{c}/q2", f"conv-{c}/q3"] for c in (1, 2)
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"labels": "corected"},
            "unknown value of dataset.labels 'corected'. Did you mean: corrected",
        ),
        ({"images": "yes"}, "unknown value of dataset.images 'yes'"),
        ({"categories": ()}, "dataset.categories=[]"),
        (
            {"categories": (1, 6)},
            "dataset.categories=[1, 6]: must be one or more of [1, 2, 3, 4, 5]",
        ),
        ({"limit_cases": 0}, "dataset.limit_cases must be at least 1, not 0"),
        ({"limit_questions": -1}, "dataset.limit_questions must be at least 1, not -1"),
        (
            {"category_names": "mirx"},
            "unknown value of dataset.category_names 'mirx'. Did you mean: mirix",
        ),
        (
            {"category_names": "zep"},
            "dataset.category_names=zep was removed: no published table has these names",
        ),
        ({"colour": "red"}, "unknown option 'dataset.colour'"),
    ],
)
def test_invalid_settings_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        locomo(tmp_path / "x", **settings)
    assert message in str(caught.value)


def test_unknown_file_is_refused_unless_allow_unpinned(tmp_path: Path) -> None:
    path = write(tmp_path, [sample()])
    with pytest.raises(UserError, match="is not the registered file: its sha256 is") as caught:
        Locomo(path, info=DATASETS["locomo"]).open()
    assert any("dataset.allow_unpinned=true" in hint for hint in caught.value.hints)
    opened = locomo(path, allow_unpinned=True).open()
    assert (opened.pinned, opened.path, len(opened.sha256)) == (False, path, 64)


def test_audited_labels_are_refused_for_any_other_file(tmp_path: Path) -> None:
    for labels in ("exclude", "corrected"):
        with pytest.raises(
            UserError,
            match=f"dataset.labels={labels}: the audit is about the registered locomo10.json",
        ):
            load(tmp_path, labels=labels)


def test_dates_do_not_depend_on_the_locale() -> None:
    assert parse_date("12:00 am on 29 February, 2024") == datetime(2024, 2, 29)
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("de_DE.UTF-8", "C.UTF-8", "C"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue
            assert parse_date("1:56 pm on 8 May, 2023") == datetime(2023, 5, 8, 13, 56)
    finally:
        locale.setlocale(locale.LC_TIME, before)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "8 May, 2023",
        "13:56 pm on 8 May, 2023",
        "1:60 pm on 8 May, 2023",
        "1:56 pm on 31 June, 2023",
        "1:56 pm on 8 Mai, 2023",
        "1:56 pm on 8 May, 0000",
        "0:10 am on 8 May, 2023",
        "١:٥٦ pm on 8 May, 2023",
    ],
)
def test_invalid_dates_are_not_parsed(text: str) -> None:
    assert parse_date(text) is None


@given(st.datetimes(min_value=datetime(1000, 1, 1)))
def test_any_date_is_parsed_back(time: datetime) -> None:
    months = (
        "January February March April May June July August September October November December"
    ).split()
    hour, half = time.hour % 12 or 12, "am" if time.hour < 12 else "pm"
    text = f"{hour}:{time.minute:02d} {half} on {time.day} {months[time.month - 1]}, {time.year}"
    assert parse_date(text) == time.replace(second=0, microsecond=0)


def test_category_names_match_each_naming() -> None:
    official = category_names()
    assert official == {
        1: "multi_hop",
        2: "temporal",
        3: "open_domain",
        4: "single_hop",
        5: "adversarial",
    }
    assert all(
        set(names) == {1, 2, 3, 4, 5} and len(set(names.values())) == 5
        for names in LOCOMO_NAMES.values()
    )
    assert category_names("cogcanvas")[3] == category_names("mc10")[2] == official[1]
    published = {
        "mem0_paper": ("single_hop", "temporal", "multi_hop", "open_domain"),
        "mirix": ("single_hop", "multi_hop", "open_domain", "temporal"),
    }
    for naming, names in published.items():
        assert tuple(category_names(naming).values()) == (*names, "adversarial")
    data = Locomo(Path("x"), info=DATASETS["locomo"])
    assert (data.category_names, data.headline) == (official, {1, 2, 3, 4})


def test_loading_does_not_change_the_sample(tmp_path: Path) -> None:
    before = repr(SAMPLE)
    load(tmp_path)
    assert repr(SAMPLE) == before
