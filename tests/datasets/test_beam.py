"""BEAM's adapter on small chats: what is read, what is left out, what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from hashlib import sha1
from pathlib import Path
from typing import Any

import pytest
from beam_samples import batch, beam, question, registered, write_chat

from memeval.datasets.contract import DatasetInfo, FileInfo
from memeval.datasets.locate import build
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase

BEAM = DATASETS["beam"]

CHAT = [batch("Tea, please. ->-> 1,1", "Gladly.")]


def only_case(root: Path, **settings: Any) -> EvalCase:
    dataset = beam(root, **settings)
    dataset.open()
    (case,) = dataset.cases()
    return case


def texts(case: EvalCase) -> list[str]:
    return [turn.text for session in case.sessions for turn in session.turns]


def test_a_batch_is_a_session_dated_by_its_first_message(tmp_path: Path) -> None:
    chat = [batch("a", "b"), batch("c", "d", first=2, date=None)]
    first, second = only_case(write_chat(tmp_path, chat)).sessions
    assert (first.started_at, second.started_at) == (datetime(2024, 3, 15), None)
    assert [turn.time for turn in first.turns] == [datetime(2024, 3, 15)] * 2
    assert [(turn.turn_id, turn.speaker) for turn in second.turns] == [
        ("m2", "user"),
        ("m3", "assistant"),
    ]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("How? ->-> 1,12", "How?"),
        ("How? \n ->-> N/A", "How?"),
        ("How? ->-> 1,2 and a piece of the plan\nAnd why?", "How?\nAnd why?"),
        ("a -> b", "a -> b"),
    ],
)
def test_marks_of_the_plan_are_cut_to_the_end_of_their_line(
    tmp_path: Path, text: str, kept: str
) -> None:
    root = write_chat(tmp_path, [batch(text, "Well.")])
    assert texts(only_case(root))[0] == kept
    assert texts(only_case(root, cut_markers=False))[0] == text


def test_runner_corpus_prefers_the_truncated_file(tmp_path: Path) -> None:
    write_chat(tmp_path, [batch("whole", "chat")])
    root = write_chat(tmp_path, [batch("cut", "chat")], name="chat_trunecated.json")
    assert texts(only_case(root))[0] == "cut"
    assert texts(only_case(root, corpus="full"))[0] == "whole"


def test_a_registered_truncated_file_that_is_missing_is_not_replaced(tmp_path: Path) -> None:
    write_chat(tmp_path, CHAT, place="100K/5")
    with pytest.raises(
        UserError, match=r"has no chat with both the file for dataset\.corpus=runner"
    ):
        beam(tmp_path, BEAM).open()


def test_plans_are_read_in_order(tmp_path: Path) -> None:
    chat = [
        {"plan-1": [batch("a", "b")]},
        {"plan-1": None, "plan-2": [batch("c", "d", first=2), batch("e", "f", first=4)]},
    ]
    case = only_case(write_chat(tmp_path, chat, place="10M/3"), tier="10m")
    assert case.case_id == "10M/3"
    assert [session.session_id for session in case.sessions] == ["s1", "s2", "s3"]
    assert "".join(texts(case)) == "abcdef"


def test_chats_are_sorted_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 1):
        write_chat(tmp_path, CHAT, place=f"500K/{number}")

    (tmp_path / "chats" / "500K" / "notes").mkdir()
    cases = beam(tmp_path, tier="500k").cases()
    assert [case.case_id for case in cases] == ["500K/1", "500K/9", "500K/10"]


@pytest.mark.parametrize(
    ("cited", "evidence"),
    [
        ([3, 1, 1], ("m1", "m3")),
        ({"first_statement": [1], "second_statement": [2]}, ("m1", "m2")),
        ([[0], [2, 3]], ("m0", "m2", "m3")),
        ([1, "--", True, None], ("m1",)),
        ([1, 77], ("m1",)),
        (None, ()),
    ],
)
def test_evidence_is_every_integer_in_the_citation(
    tmp_path: Path, cited: Any, evidence: tuple[str, ...]
) -> None:
    asked = {"event_ordering": [question(source_chat_ids=cited)]}
    (one,) = only_case(write_chat(tmp_path, [batch(*"abcd")], asked)).questions
    assert one.evidence == evidence


def test_messages_with_the_same_id_are_distinguished_by_position(tmp_path: Path) -> None:
    chat = [batch("a", "b"), batch("c", "d", first=1)]
    asked = {"knowledge_update": [question(source_chat_ids=[0, 1, 2])]}
    dataset = beam(write_chat(tmp_path, chat, asked))
    (case,) = dataset.cases()
    assert case.questions[0].evidence == ("m0", "m3")
    assert dataset.notes() == (
        "evidence: 1 cited ids belong to several messages, and are left out",
        "evidence: 1 messages repeat the id of another one; messages are distinguished by their "
        "position",
    )


def test_question_has_gold_rubric_and_facets(tmp_path: Path) -> None:
    asked = {
        "abstention": [question(source_chat_ids=None)],
        "instruction_following": [question(rubric=["in crowns", "in euros"], difficulty="")],
    }
    refused, instructed = only_case(write_chat(tmp_path, CHAT, asked)).questions
    assert (refused.question_id, refused.answerable) == ("100K/1/abstention/0", False)
    assert (refused.gold, refused.facets) == (
        ("Nothing is said of it.",),
        {"difficulty": "easy"},
    )
    assert (instructed.gold, instructed.rubric) == (
        ("in crowns; in euros",),
        ("in crowns", "in euros"),
    )
    assert instructed.facets == {} and instructed.answerable


def test_missing_and_unordered_dates_are_counted(tmp_path: Path) -> None:
    dates = ("May-02-2024", None, "April-30-2024")
    chat = [batch("a", "b", first=2 * n, date=date) for n, date in enumerate(dates)]
    dataset = beam(write_chat(tmp_path, chat))
    list(dataset.cases())
    assert dataset.notes() == (
        "time: batches without a date: 1",
        "time: 1 batches are dated before the previous batch; the chat's order is kept",
    )


BROKEN = batch("a", "b")
del BROKEN["turns"][0][1]["content"]


@pytest.mark.parametrize(
    ("chat", "asked", "message"),
    [
        ([], None, "is empty, or not a list of records"),
        ([{"turns": []}], None, "contains no messages"),
        ([{"batch": 1}], None, "record 0 is neither a batch nor one plan"),
        ([{"plan-1": [], "plan-2": []}], None, "record 0 is neither a batch nor one plan"),
        ([BROKEN], None, "batch 0 turn 0 message 1: field 'content' is missing"),
        ([batch("a", date="15 March 2024")], None, "not a date like 'March-15-2024'"),
        ([batch("a", date="February-30-2024")], None, "not a date like 'March-15-2024'"),
        ([{"turns": ["a"]}], None, "turn 0 is a string, not a list of messages"),
        (CHAT, {}, "contains no questions"),
        (CHAT, {"recall": [question()]}, "'recall' is not an ability of BEAM"),
        (CHAT, {"abstention": [question(rubric=[])]}, "field 'rubric' is empty"),
        (CHAT, {"abstention": [question(rubric=["a", " "])]}, "contains an empty string"),
        (CHAT, {"abstention": [question(question=" ")]}, "field 'question' is empty"),
        (CHAT, {"temporal_reasoning": [question(answer="")]}, "field 'answer' is empty"),
    ],
)
def test_invalid_chat_is_refused_with_its_location(
    tmp_path: Path, chat: list[Any], asked: dict[str, Any] | None, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        only_case(write_chat(tmp_path, chat, asked))


def test_hugging_face_export_is_recognized(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    export = tmp_path / "data" / "100K-00000-of-00001.parquet"
    export.write_bytes(b"PAR1")
    for path in (tmp_path, export):
        with pytest.raises(UserError, match="is an export from Hugging Face") as error:
            beam(path, BEAM).open()

        assert "data fetch beam dataset.tier=100k" in error.value.hints[0]


def test_missing_tier_names_the_available_ones(tmp_path: Path) -> None:
    write_chat(tmp_path, CHAT)
    with pytest.raises(UserError, match=r"1M is missing; 100k is there"):
        beam(tmp_path, tier="1m").open()
    with pytest.raises(UserError, match="is not on this machine"):
        beam(tmp_path / "nowhere", BEAM).open()


def test_export_next_to_the_chats_is_ignored(tmp_path: Path) -> None:
    write_chat(tmp_path, CHAT)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    assert len(texts(only_case(tmp_path))) == 2

    with pytest.raises(UserError, match="is an export from Hugging Face"):
        beam(tmp_path, tier="1m").open()


def test_folder_inside_the_chats_gets_a_hint(tmp_path: Path) -> None:
    write_chat(tmp_path, CHAT)
    for below in ("chats", "chats/100K"):
        with pytest.raises(UserError) as error:
            beam(tmp_path / below).open()

        assert error.value.hints[-1].endswith(f"dataset.path={tmp_path}")


def pins(root: Path) -> DatasetInfo:
    """Pins of two chats, the first of which is below `root`."""
    files = []
    for path in sorted(root.rglob("*.json")):
        content = path.read_bytes()
        blob = sha1(b"blob %d\0" % len(content) + content).hexdigest()
        name = path.relative_to(root).as_posix()
        files.append(FileInfo(name, url=None, sha256=None, size_bytes=None, git_blob=blob))

    return registered(*files, *(replace(one, name=one.name.replace("/1/", "/2/")) for one in files))


def test_a_part_of_a_tier_is_an_excerpt(tmp_path: Path) -> None:
    root = write_chat(tmp_path, CHAT)
    loaded = beam(root, pins(root)).open()
    assert loaded.pinned and loaded.excerpt
    assert loaded.notes == (
        "an excerpt: 1 of the 2 chats of 100K (1); its figures are not those of the whole tier",
    )


def test_edited_file_is_refused_or_unpinned(tmp_path: Path) -> None:
    root = write_chat(tmp_path, CHAT)
    info = pins(root)
    write_chat(tmp_path, [batch("edited", "chat")])
    with pytest.raises(UserError, match=r"1/chat\.json is not the registered file\."):
        beam(root, info).open()

    assert not beam(root, info, allow_unpinned=True).open().pinned


def test_registered_files_match_the_published_tiers() -> None:
    assert len(BEAM.files) == 236
    assert all(file.git_blob and file.url for file in BEAM.files)
    tiers = {"100k": 20, "500k": 35, "1m": 35, "10m": 10}
    for tier, chats in tiers.items():
        for corpus in ("runner", "full"):
            dataset = build("beam", Path("/nowhere"), tier=tier, corpus=corpus)
            assert dataset.expected_counts() == {"cases": chats, "questions": 20 * chats}
            names = [file.name for file in dataset.files_read()]
            assert len(names) == 2 * chats
            assert corpus == "runner" or not any("trunecated" in name for name in names)

    assert sum("trunecated" in file.name for file in BEAM.files) == 36
