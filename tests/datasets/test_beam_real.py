"""The published BEAM chats: counts, dates, evidence and digests, and the official scores of each
case.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.beam.metrics import line_events, order_f1, rubric_score, tau_norm
from memeval.datasets.locate import build
from memeval.records import EvalCase

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def golden(data_dir: Path) -> Any:
    path = data_dir / "beam" / "golden.json"
    if not path.is_file():
        pytest.skip("needs chats of BEAM and what is known of them")

    return json.loads(path.read_text(encoding="utf-8"))


def cases(data_dir: Path, **settings: Any) -> Iterator[EvalCase]:
    return build("beam", data_dir, **settings).cases()


def digest_of(case: EvalCase) -> str:
    texts = [turn.text for session in case.sessions for turn in session.turns]
    return sha256("\n".join(texts).encode()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize(("tier", "chats"), [("100k", 10), ("500k", 2), ("1m", 2)])
def test_every_chat_has_its_recorded_content(
    data_dir: Path, golden: Any, tier: str, chats: int
) -> None:
    loaded = build("beam", data_dir, tier=tier).open()
    assert loaded.pinned and loaded.excerpt

    count = 0
    marked = cases(data_dir, tier=tier, cut_markers=False)
    for whole, case in zip(marked, cases(data_dir, tier=tier), strict=True):
        known = golden["chats"][case.case_id]
        dates = [session.started_at for session in case.sessions]
        assert [date.strftime("%B-%d-%Y") for date in dates if date] == known["anchors"]
        turns = [turn for session in case.sessions for turn in session.turns]
        assert len(turns) == known["messages"]
        assert sum(turn.speaker == "user" for turn in turns) == known["user"]
        assert digest_of(whole) == known["sha256_of_contents"]
        assert digest_of(case) == known["sha256_of_contents_without_markers"]
        check_questions(case, known, ambiguous=not known["ids_unique"])
        count += 1

    assert count == chats


def check_questions(case: EvalCase, known: Any, *, ambiguous: bool) -> None:
    assert len(case.questions) == 20
    for question in case.questions:
        ability, number = question.question_id.split("/")[2:]
        cited = known["evidence"][ability][int(number)]
        found = [int(turn_id.removeprefix("m")) for turn_id in question.evidence]
        # Ids below 150 occur twice in 1M/5.
        assert found == [number for number in cited if number >= 150 or not ambiguous]
        assert len(question.rubric) == known["rubric_items"][ability][int(number)]


def test_repeated_ids_of_1m_5_are_noted(data_dir: Path) -> None:
    dataset = build("beam", data_dir, tier="1m")
    assert len(list(dataset.cases())) == 2
    assert any(note.startswith("evidence: 150 messages repeat") for note in dataset.notes())


def test_full_corpus_has_more_turns_than_the_runners(data_dir: Path) -> None:
    turns = {
        corpus: sum(
            len(session.turns)
            for case in cases(data_dir, corpus=corpus)
            for session in case.sessions
        )
        for corpus in ("runner", "full")
    }
    assert turns["runner"] < turns["full"]


def test_ids_of_10m_continue_across_plans(data_dir: Path, golden: Any, tmp_path: Path) -> None:
    folder = tmp_path / "chats" / "10M" / "5"
    folder.mkdir(parents=True)
    (folder / "chat.json").symlink_to(data_dir / "beam/derived/10M/5/chat.json")
    (folder / "probing_questions").symlink_to(data_dir / "beam/chats/10M/5/probing_questions")
    settings = {"path": str(tmp_path), "tier": "10m", "corpus": "full", "allow_unpinned": True}

    dataset = build("beam", data_dir, **settings)
    assert not dataset.open().pinned
    (case,) = dataset.cases()
    assert sum(len(session.turns) for session in case.sessions) == 3_544
    known = golden["10M/5"]["evidence"]
    for question in case.questions:
        ability, number = question.question_id.split("/")[2:]
        here = [f"m{cited}" for cited in known[ability][int(number)] if cited < 3_544]
        assert list(question.evidence) == here


def test_event_ordering_scores_match_the_official_ones(golden: Any) -> None:
    for known in golden["scoring"]["event_ordering_score"]:
        rubric, lines = known["reference"], known["response"].split("\n")
        matches: list[int | None] = []
        for line in lines:
            free = (n for n, item in enumerate(rubric) if n not in matches and item in line)
            matches.append(next(free, None))

        events = line_events(lines, matches, rubric)
        tau, f1 = tau_norm(events, len(rubric)), order_f1(events, len(rubric))
        scores = [known["tau_norm"], known["f1"], known["final_score"]]
        assert [tau, f1, tau * f1] == pytest.approx(scores, abs=1e-8), known["case"]


def test_rubric_scores_match_the_official_ones(golden: Any) -> None:
    for known in golden["scoring"]["rubric"]:
        scores = known["judge_replies"]
        if all(isinstance(score, int | float) for score in scores):
            assert rubric_score(scores, "v1") == pytest.approx(known["llm_judge_score"])
