from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.config.schema import GranularityConfig
from memeval.datasets.contract import GRANULARITIES, OBSERVATION, SUMMARY
from memeval.datasets.granularity import CUTS, chunks
from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase, MemoryChunk, Session, Turn

START = datetime(2023, 5, 8, 13, 56)


def case_of(
    *sessions: list[tuple[str, str]], speakers: tuple[str, ...] = ("Ann", "Bob")
) -> EvalCase:
    """A case from (speaker, text) pairs, with one session per day."""
    made = []
    for number, lines in enumerate(sessions, start=1):
        time = START + timedelta(days=number)
        turns = tuple(
            Turn(turn_id=f"D{number}:{index}", speaker=who, text=text, time=time)
            for index, (who, text) in enumerate(lines, start=1)
        )
        made.append(Session(f"s{number}", time, turns))
    return EvalCase(case_id="conv-1", sessions=tuple(made), questions=(), speakers=speakers)


CASE = case_of(
    [("Ann", "a1"), ("Ann", "a2"), ("Bob", "b1"), ("Bob", "b2"), ("Ann", "bye")],
    [("Bob", "b3"), ("Ann", "a4")],
)


def shown_chunks(case: EvalCase, name: str) -> list[tuple[str, str, tuple[str, ...]]]:
    return [
        (chunk.chunk_id, chunk.session_id, chunk.turn_ids)
        for chunk in chunks(case, GranularityConfig(name))
    ]


def test_sessions_and_turns_are_chunks_with_their_own_ids() -> None:
    assert shown_chunks(CASE, "session") == [
        ("s1", "s1", ("D1:1", "D1:2", "D1:3", "D1:4", "D1:5")),
        ("s2", "s2", ("D2:1", "D2:2")),
    ]
    assert [chunk_id for chunk_id, _, _ in shown_chunks(CASE, "turn")] == [
        "D1:1",
        "D1:2",
        "D1:3",
        "D1:4",
        "D1:5",
        "D2:1",
        "D2:2",
    ]
    assert (
        chunks(CASE, GranularityConfig("session"))[0].content
        == "Ann: a1\nAnn: a2\nBob: b1\nBob: b2\nAnn: bye"
    )


def test_rounds_are_opened_by_the_first_speaker_and_closed_by_the_other() -> None:
    assert shown_chunks(CASE, "round") == [
        ("x1", "s1", ("D1:1", "D1:2", "D1:3")),
        ("x2", "s1", ("D1:4",)),
        ("x3", "s2", ("D1:5", "D2:1")),
        ("x4", "s2", ("D2:2",)),
    ]


def test_round_across_sessions_has_the_later_date() -> None:
    crossing = chunks(CASE, GranularityConfig("round"))[2]
    assert crossing.time == START + timedelta(days=2)
    assert crossing.content == "Ann: bye\nBob: b3"
    assert crossing.speakers == ("Ann", "Bob")


def test_round_ends_at_a_checkpoint() -> None:
    asked = replace(CASE, checkpoints=("s1",))
    until = shown_chunks(replace(asked, sessions=asked.sessions[:1]), "round")
    assert [turns for *_, turns in shown_chunks(asked, "round")] == [
        ("D1:1", "D1:2", "D1:3"),
        ("D1:4",),
        ("D1:5",),
        ("D2:1",),
        ("D2:2",),
    ]
    # A memory that was queried at the checkpoint already has these chunks; the others follow later.
    assert until == shown_chunks(asked, "round")[: len(until)]


def test_without_a_list_of_speakers_the_first_to_speak_opens_a_round() -> None:
    assert [turns for _, _, turns in shown_chunks(replace(CASE, speakers=()), "round")] == [
        turns for _, _, turns in shown_chunks(CASE, "round")
    ]


def test_granularities_of_data_sets_are_those_that_can_be_cut() -> None:
    assert {*GRANULARITIES, SUMMARY, OBSERVATION} == set(CUTS)


def test_calls_and_results_of_tools_belong_to_the_event_before_them() -> None:
    case = case_of(
        [("tool", "0"), ("Ann", "1"), ("Bob", "2"), ("tool", "3"), ("tool", "4"), ("Bob", "5")],
        [("tool", "6")],
    )
    assert [turns for _, _, turns in shown_chunks(case, "event")] == [
        ("D1:1",),
        ("D1:2",),
        ("D1:3", "D1:4", "D1:5"),
        ("D1:6",),
        ("D2:1",),
    ]
    assert chunks(case, GranularityConfig("event"))[2].content == "Bob: 2\ntool: 3\ntool: 4"


def test_captions_are_part_of_the_content_and_dates_are_not() -> None:
    case = case_of([("Ann", "look")])
    turn = replace(case.sessions[0].turns[0], caption="a red kayak")
    case = replace(case, sessions=(replace(case.sessions[0], turns=(turn,)),))
    for name in ("session", "turn", "round"):
        (chunk,) = chunks(case, GranularityConfig(name))
        assert chunk.content == "Ann: look [shares an image: a red kayak]"
        assert chunk.text == "[1:56 pm on 9 May 2023] Ann: look [shares an image: a red kayak]"


def test_chunks_are_cut_between_turns_and_repeat_whole_turns() -> None:
    case = case_of([("A", "one two"), ("B", "three four"), ("A", "five six"), ("B", "seven eight")])
    cut = chunks(case, GranularityConfig("chunk", size=8, overlap=4))
    assert [chunk.content for chunk in cut] == [
        "A: one two\nB: three four",
        "B: three four\nA: five six",
        "A: five six\nB: seven eight",
    ]
    assert [chunk.chunk_id for chunk in cut] == ["s1.1", "s1.2", "s1.3"]
    assert [chunk.content for chunk in chunks(case, GranularityConfig("chunk", size=8))] == [
        "A: one two\nB: three four",
        "A: five six\nB: seven eight",
    ]


def test_a_long_turn_is_split_between_words_under_its_speaker() -> None:
    case = case_of([("A", "hi"), ("B", "one two three four five six seven"), ("A", "bye")])
    cut = chunks(case, GranularityConfig("chunk", size=6, overlap=2))
    assert [(chunk.content, chunk.turn_ids) for chunk in cut] == [
        ("A: hi", ("D1:1",)),
        ("B: one two three four", ("D1:2",)),
        ("B: three four five six", ("D1:2",)),
        ("B: five six seven", ("D1:2",)),
        ("A: bye", ("D1:3",)),
    ]


def test_a_turn_without_words_is_kept() -> None:
    assert [
        chunk.turn_ids
        for chunk in chunks(
            case_of([("Ann", ""), ("Bob", " \n")]), GranularityConfig("chunk", size=1)
        )
    ] == [
        ("D1:1",),
        ("D1:2",),
    ]


@pytest.mark.parametrize(
    ("granularity", "message"),
    [
        (GranularityConfig("turns"), "unknown granularity 'turns'. Did you mean: turn?"),
        (
            GranularityConfig("chunk"),
            "granularity=chunk needs a size of one token or more, not None",
        ),
        (GranularityConfig("chunk", 0), "not 0"),
        (
            GranularityConfig("chunk", 10, 10),
            "the overlap must be from 0 to less than the size of 10 tokens, not 10",
        ),
        (GranularityConfig("chunk", 10, -1), "not -1"),
        (GranularityConfig("turn", 10), "granularity=turn has no size and no overlap"),
    ],
)
def test_invalid_granularity_is_refused(granularity: GranularityConfig, message: str) -> None:
    with pytest.raises(UserError) as caught:
        chunks(CASE, granularity)
    assert message in str(caught.value)


TEXTS = st.lists(
    st.sampled_from(["red", "blue-green", "it's", "x!", "kayak", "\n", "  ", "é"]), max_size=14
).map(" ".join)
CASES = st.lists(
    st.lists(st.tuples(st.sampled_from(["Ann", "Bob"]), TEXTS), max_size=6),
    min_size=1,
    max_size=4,
).map(lambda sessions: case_of(*sessions))
SETTINGS = st.sampled_from(sorted(set(GRANULARITIES) - {"chunk"})).map(
    GranularityConfig
) | st.integers(1, 20).flatmap(
    lambda size: st.integers(0, size - 1).map(
        lambda overlap: GranularityConfig("chunk", size, overlap)
    )
)


@pytest.mark.slow
@given(CASES, SETTINGS)
def test_every_granularity_covers_every_turn_in_order(
    case: EvalCase, granularity: GranularityConfig
) -> None:
    cut = chunks(case, granularity)
    turns = {turn.turn_id: turn for session in case.sessions for turn in session.turns}
    session_of = {
        turn.turn_id: session.session_id for session in case.sessions for turn in session.turns
    }
    covered = list(dict.fromkeys(turn_id for chunk in cut for turn_id in chunk.turn_ids))
    assert covered == list(turns)
    assert len({chunk.chunk_id for chunk in cut}) == len(cut)
    assert all(chunk.turn_ids and len(set(chunk.turn_ids)) == len(chunk.turn_ids) for chunk in cut)
    assert [chunk.time for chunk in cut] == sorted(
        turns[chunk.turn_ids[-1]].time or START for chunk in cut
    )
    assert all(session_of[chunk.turn_ids[-1]] == chunk.session_id for chunk in cut)
    if granularity.name != "round":
        assert all(
            {session_of[turn_id] for turn_id in chunk.turn_ids} == {chunk.session_id}
            for chunk in cut
        )
    if granularity.name != "chunk":
        assert sum(len(chunk.turn_ids) for chunk in cut) == len(turns)
    assert chunks(case, granularity) == cut


@pytest.mark.slow
@given(CASES, st.integers(1, 20), st.data())
def test_chunks_hold_at_most_their_size_and_lose_no_word(
    case: EvalCase, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    cut = chunks(case, GranularityConfig("chunk", size, overlap))
    for chunk in cut:
        words = [word for line in lines(chunk) for word in line.partition(":")[2].split()]
        assert count_tokens(chunk.content) <= size or len(words) <= 1
    everything = [
        word for session in case.sessions for turn in session.turns for word in turn.text.split()
    ]
    found = iter(
        word
        for chunk in cut
        for line in chunk.content.split("\n")
        for word in re.sub("^(Ann|Bob):", "", line).split()
    )
    assert all(word in found for word in everything)


@pytest.mark.slow
@given(CASES, st.integers(1, 20))
def test_without_overlap_no_word_is_repeated(case: EvalCase, size: int) -> None:
    cut = chunks(case, GranularityConfig("chunk", size))
    everything = [
        word for session in case.sessions for turn in session.turns for word in turn.text.split()
    ]
    assert [
        word
        for chunk in cut
        for line in chunk.content.split("\n")
        for word in re.sub("^(Ann|Bob):", "", line).split()
    ] == everything


def lines(chunk: MemoryChunk) -> list[str]:
    return re.split(r"\n(?=Ann:|Bob:)", chunk.content)


@pytest.mark.real_data
def test_rounds_of_locomo_have_the_expected_numbers(data_dir: Path) -> None:
    dataset = Locomo(data_dir / "locomo/locomo10.json", info=DATASETS["locomo"])
    cut = [chunks(case, GranularityConfig("round")) for case in dataset.cases()]
    assert [len(rounds) for rounds in cut] == [
        209,
        184,
        329,
        317,
        337,
        337,
        347,
        340,
        254,
        284,
    ]
    assert sum(map(len, cut)) == 2938
    crossing = [
        chunk
        for rounds in cut
        for chunk in rounds
        if len({turn.partition(":")[0] for turn in chunk.turn_ids}) > 1
    ]
    assert len(crossing) == 137


@pytest.mark.real_data
def test_evidence_of_locomo_by_the_rule_of_cogcanvas(data_dir: Path) -> None:
    import json

    path = data_dir / "locomo/locomo10.json"
    turns = {
        case.case_id: {
            turn_id
            for chunk in chunks(case, GranularityConfig("round"))
            for turn_id in chunk.turn_ids
        }
        for case in Locomo(path, info=DATASETS["locomo"]).cases()
    }
    asked = [
        (sample["sample_id"], qa)
        for sample in json.loads(path.read_text(encoding="utf-8"))
        for qa in sample["qa"]
        if qa.get("answer")
    ]
    strings = [(case_id, text) for case_id, qa in asked for text in qa["evidence"]]
    assert len(asked) == 1542
    assert len(strings) == 2357
    assert sum(text in turns[case_id] for case_id, text in strings) == 2348


@pytest.mark.real_data
def test_chunks_do_not_depend_on_questions_and_have_session_dates(data_dir: Path) -> None:
    case = next(Locomo(data_dir / "locomo/locomo10.json", info=DATASETS["locomo"]).cases())
    bare = replace(case, questions=())
    for granularity in (
        GranularityConfig("session"),
        GranularityConfig("turn"),
        GranularityConfig("round"),
        GranularityConfig("chunk", 256, 32),
    ):
        assert chunks(case, granularity) == chunks(bare, granularity)
        starts = {session.started_at for session in case.sessions}
        assert {chunk.time for chunk in chunks(case, granularity)} <= starts
