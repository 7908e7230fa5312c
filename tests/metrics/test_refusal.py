from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusal_sentences import ANSWERS, REFUSALS

from memeval.datasets.locomo.metrics import officially_refuses
from memeval.metrics.refusal import is_refusal

SMALLEST_RECALL = 0.95
MAX_FALSE_ALARMS = 0.01


def test_refusals_are_recognised() -> None:
    assert [text for text in REFUSALS if not is_refusal(text)] == []


def test_answers_are_not_taken_for_refusals() -> None:
    assert [text for text in ["", " ", "...", *ANSWERS] if is_refusal(text)] == []


@pytest.mark.parametrize(
    "frame", ["Answer: {}", "**{}**", "> {}", '"{}"', "  {}\n", "I looked.\n\n**Final answer:** {}"]
)
def test_refusal_is_recognised_in_any_formatting(frame: str) -> None:
    framed = [frame.format(text) for text in REFUSALS]
    curled = [text.replace("'", "’") for text in framed]
    assert [text for text in framed + curled if not is_refusal(text)] == []


def test_the_last_answer_counts() -> None:
    assert not is_refusal(
        "There is no mention of it in May.\nThe conversation does not say.\n\nAnswer: Rome"
    )
    assert is_refusal("She went in May.\n\nAnswer: I don't know where")


def test_the_official_rule_knows_two_phrases_and_no_others() -> None:
    assert officially_refuses("Sorry: NO INFORMATION AVAILABLE!")
    assert officially_refuses("that was not mentioned")
    assert not officially_refuses("no information")
    assert not officially_refuses("I don't know")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "refusals"),
    [("full_context_gpt_4o_mini", 9), ("mem0_2025", 212), ("vague_wrong_answers", 0)],
)
def test_right_answers_of_real_systems_are_rarely_taken_for_refusals(
    data_dir: Path, name: str, refusals: int
) -> None:
    judged = rows(data_dir.parent / f"outputs/locomo/{name}.jsonl")
    right = [
        row
        for row in judged
        if sum(row["recorded_judge_labels"]) * 2 > len(row["recorded_judge_labels"])
    ]

    assert sum(is_refusal(row["hypothesis"]) for row in judged) == refusals
    assert sum(is_refusal(row["hypothesis"]) for row in right) <= MAX_FALSE_ALARMS * len(right)


@pytest.mark.real_data
def test_refusals_in_real_answers_to_unanswerable_questions(data_dir: Path) -> None:
    """Compared with recorded judgements of answers with reasoning. An earlier rule found 13 of the
    27.
    """
    folder = data_dir.parent / "outputs/longmemeval"
    judged = {
        row["question_id"]: row["autoeval_label"]["label"]
        for row in rows(folder / "llama31_8b_oracle.judged_by_gpt_4o_mini.jsonl")
    }
    answers = {
        row["question_id"]: row["hypothesis"] for row in rows(folder / "llama31_8b_oracle.jsonl")
    }
    abstention = [key for key in answers if "_abs" in key]
    answered_right = [key for key in answers if judged[key] and key not in abstention]

    found = [key for key in abstention if is_refusal(answers[key])]
    assert all(judged[key] for key in found)
    assert (len(found), sum(judged[key] for key in abstention)) == (18, 27)
    assert sum(is_refusal(answers[key]) for key in answered_right) <= MAX_FALSE_ALARMS * len(
        answered_right
    )


@pytest.mark.real_data
def test_golds_that_refuse_are_recognised(data_dir: Path) -> None:
    """LongMemEval's golds of abstention questions refuse and all others answer; likewise in LoCoMo
    and BEAM.
    """
    longmemeval = json.loads(
        (data_dir / "longmemeval/longmemeval_oracle_evidence_turns_500.json").read_text(
            encoding="utf-8"
        )
    )
    refusing = [str(row["answer"]) for row in longmemeval if "_abs" in row["question_id"]]
    answering = [str(row["answer"]) for row in longmemeval if "_abs" not in row["question_id"]]

    locomo = json.loads((data_dir / "locomo/locomo10.json").read_text(encoding="utf-8"))
    answering += [
        str(question["answer"])
        for case in locomo
        for question in case["qa"]
        if question["category"] != 5
    ]

    for path in (data_dir / "beam/chats").glob("*/*/probing_questions/probing_questions.json"):
        for kind, questions in json.loads(path.read_text(encoding="utf-8")).items():
            golds = [
                question.get("ideal_response") or question.get("answer") for question in questions
            ]
            (refusing if kind == "abstention" else answering).extend(gold for gold in golds if gold)

    assert len(refusing) >= 60 and len(answering) >= 2000
    assert sum(map(is_refusal, refusing)) >= SMALLEST_RECALL * len(refusing)
    assert [gold for gold in answering if is_refusal(gold)] == []
