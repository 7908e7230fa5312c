"""`granularity=summary` and `observation`: summaries and observations that a data set has for its
sessions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.pipeline.execute.compression import plan_compressions
from memeval.pipeline.open.opening import open_cell
from memeval.records import EvalCase, MemoryChunk
from memeval.runs.compose.config import compose_config

SAMPLE: dict[str, Any] = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kayak."},
            {"speaker": "Bob", "dia_id": "D1:2", "text": "Nice! I row, too."},
        ],
        "session_2_date_time": "12:30 pm on 9 May, 2023",
        "session_2": [{"speaker": "Bob", "dia_id": "D2:1", "text": "How is the kayak?"}],
    },
    "session_summary": {"session_1_summary": "Ann has a kayak. ", "session_2_summary": ""},
    "observation": {
        "session_1_observation": {
            "Bob": [["Bob rows.", ["D1:02", "D1:1"]], ["Bob is kind.", "D9:9"]],
            "Ann": [["Ann bought a kayak.", "D1:1"]],
        },
        "session_2_observation": {"Bob": [["Bob asks.", "D2:1; D2:4"]]},
    },
    "qa": [{"question": "What?", "answer": "a kayak", "evidence": ["D1:1"], "category": 4}],
}


def locomo(folder: Path, **changes: Any) -> Path:
    sample = {**SAMPLE, **changes}
    path = folder / "locomo.json"
    kept = {name: value for name, value in sample.items() if value is not None}
    path.write_text(json.dumps([kept]), "utf-8")
    return path


def read(folder: Path, **changes: Any) -> EvalCase:
    path = locomo(folder, **changes)
    dataset = build("locomo", Path("/nowhere"), path=str(path), allow_unpinned=True)
    dataset.open()
    return next(iter(dataset.cases()))


def cut(case: EvalCase, name: str) -> list[MemoryChunk]:
    return chunks(case, GranularityConfig(name))


def test_a_summary_covers_the_turns_of_its_session(tmp_path: Path) -> None:
    case = read(tmp_path)
    (chunk,) = cut(case, "summary")
    assert chunk.text == "[1:56 pm on 8 May 2023] Ann has a kayak."
    assert (chunk.turn_ids, chunk.session_id) == (("D1:1", "D1:2"), "s1")


def test_observation_covers_the_turns_it_is_based_on(tmp_path: Path) -> None:
    observed = cut(read(tmp_path), "observation")
    assert [(chunk.content, chunk.turn_ids) for chunk in observed] == [
        ("Bob: Bob rows.", ("D1:2", "D1:1")),
        ("Ann: Ann bought a kayak.", ("D1:1",)),
        ("Bob: Bob is kind.", ()),
        ("Bob: Bob asks.", ("D2:1",)),
    ]
    assert len({chunk.chunk_id for chunk in observed}) == 4
    assert [chunk.time is not None for chunk in observed] == [True] * 4


def test_compression_is_planned_between_observations(tmp_path: Path) -> None:
    case = read(tmp_path)
    (after,) = plan_compressions(
        turn=1, unit="pairs", retain=1, case=case, chunks=cut(case, "observation")
    )
    assert after == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"session_summary": []}, "'session_summary' is not an object"),
        ({"session_summary": {"session_1_summary": 5}}, "has no string under session_1_summary"),
        ({"observation": {"session_1_observation": {"Ann": ["x"]}}}, "session_1_observation"),
        ({"observation": {"session_1_observation": [1]}}, "session_1_observation"),
        (
            {"observation": {"session_1_observation": {"Ann": [[7, "D1:1"]]}}},
            "must map speakers to lists of [text, turn id]",
        ),
    ],
)
def test_malformed_notes_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, **changes)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "what"), [("summary", "summaries of sessions"), ("observation", "observations")]
)
def test_file_without_notes_is_refused_in_one_line(tmp_path: Path, name: str, what: str) -> None:
    path = locomo(tmp_path, session_summary=None, observation=None)
    words = [
        *("dataset=locomo", f"dataset.path={path}", "dataset.allow_unpinned=true"),
        *(f"granularity={name}", "tracking=none"),
    ]
    with pytest.raises(UserError, match=f"the file of dataset=locomo has no {what}"):
        open_cell(compose_config(words), "")

    with pytest.raises(UserError, match=f"granularity={name} does not apply to dataset=json"):
        open_cell(compose_config(["dataset=json", f"granularity={name}", "tracking=none"]), "")


def test_mc10_has_summaries_and_no_observations() -> None:
    words = ["dataset=demo_locomo_mc10", "granularity=summary", "tracking=none"]
    cell = open_cell(compose_config(words), "")
    case = next(iter(cell.dataset.cases()))
    summaries = chunks(case, cell.config.granularity)
    assert len(summaries) == len(case.sessions)
    assert {turn for chunk in summaries for turn in chunk.turn_ids} == {
        turn.turn_id for session in case.sessions for turn in session.turns
    }

    with pytest.raises(UserError, match="granularity=observation does not apply"):
        open_cell(compose_config([*words, "granularity=observation"]), "")


@pytest.mark.real_data
def test_all_notes_of_locomo_are_read(data_dir: Path) -> None:
    dataset = build("locomo", data_dir, categories=(1, 2, 3, 4, 5))
    dataset.open()
    cases = list(dataset.cases())
    assert sum(len(cut(case, "summary")) for case in cases) == 272
    observed = [chunk for case in cases for chunk in cut(case, "observation")]
    assert len(observed) == 2541
    assert sum(not chunk.turn_ids for chunk in observed) < 26
