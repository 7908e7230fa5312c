"""The metrics against independently computed values, on real answers and real rankings."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.locomo.metrics import locomo_f1
from memeval.datasets.registry import DATASETS
from memeval.metrics.keywords import contains_gold, keyword_overlap, keyword_pass
from memeval.metrics.mem0 import bleu1, mem0_f1
from memeval.metrics.retrieval import ranks_of, retrieval_metrics
from memeval.records import EvalCase, EvalQuestion
from memeval.statistics.clusters import clustered_se
from memeval.statistics.means import design_effect, mean, sample_std

pytestmark = pytest.mark.real_data

OUTPUTS = ("full_context_gpt_4o_mini", "mem0_2025", "vague_wrong_answers")
RECORDED = {
    "locomo_f1": locomo_f1,
    "mem0_f1": lambda answer, gold, _: mem0_f1(answer, gold),
    "mem0_bleu1": lambda answer, gold, _: bleu1(answer, gold),
    "cog_kw_overlap": lambda answer, gold, _: keyword_overlap(answer, gold),
    "cog_kw_exact": lambda answer, gold, _: float(contains_gold(answer, gold)),
    "cog_kw_passed": lambda answer, gold, _: float(keyword_pass(answer, gold)),
}
ROUNDING = 5e-11
"""The recorded values have ten decimals."""


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> list[EvalCase]:
    return list(Locomo(data_dir / "locomo/locomo10.json", info=DATASETS["locomo"]).cases())


@pytest.fixture(scope="module")
def questions(cases: list[EvalCase]) -> dict[str, EvalQuestion]:
    return {question.question_id: question for case in cases for question in case.questions}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_recorded_value_is_reproduced(
    data_dir: Path, questions: dict[str, EvalQuestion], name: str
) -> None:
    recorded = rows(data_dir.parent / f"outputs/locomo/{name}.jsonl")
    assert len(recorded) == 1540
    for row in recorded:
        asked = questions[row["question_id"]]
        assert asked.category == row["category"]
        for metric, value in row["reference"].items():
            ours = RECORDED[metric](row["hypothesis"], asked.gold[0], row["category"])
            assert ours == pytest.approx(value, abs=1e-9 + ROUNDING), (row["question_id"], metric)


@pytest.mark.parametrize(
    ("name", "passed"), [("full_context_gpt_4o_mini", 0.540), ("vague_wrong_answers", 0.0675)]
)
def test_keyword_judge_passes_the_recorded_share_of_answers(
    data_dir: Path, questions: dict[str, EvalQuestion], name: str, passed: float
) -> None:
    verdicts = [
        float(keyword_pass(row["hypothesis"], questions[row["question_id"]].gold[0]))
        for row in rows(data_dir.parent / f"outputs/locomo/{name}.jsonl")
    ]
    assert mean(verdicts) == pytest.approx(passed, abs=5e-4)


def test_locomo_f1_of_the_gold_itself_and_of_a_constant_answer(
    questions: dict[str, EvalQuestion],
) -> None:
    itself, constant = defaultdict(list), defaultdict(list)
    for asked in questions.values():
        gold = asked.gold[0] if asked.gold else ""
        itself[asked.category].append(locomo_f1(gold, gold, int(asked.category)))
        constant[asked.category].append(
            locomo_f1("No information available", gold, int(asked.category))
        )
    assert [round(mean(itself[category]) or 0, 4) for category in (1, 2, 3, 4)] == [1, 1, 0.9274, 1]
    assert [round(mean(constant[category]) or 0, 4) for category in (1, 2, 3, 4, 5)] == [
        0.0071,
        0.0016,
        0.0350,
        0.0011,
        1,
    ]
    overall = mean(score for scores in constant.values() for score in scores)
    assert overall == pytest.approx(0.228, abs=5e-4)


def test_clustered_error_and_design_effect_of_real_answers(data_dir: Path) -> None:
    judged = rows(data_dir.parent / "outputs/locomo/mem0_2025.jsonl")
    values = [float(row["recorded_judge_labels"][0]) for row in judged]
    clusters = [row["question_id"].partition("/")[0] for row in judged]
    se, std = clustered_se(values, clusters), sample_std(values)
    assert se is not None and std is not None
    assert (round(sum(values) / len(values), 4), round(se, 4)) == (0.4513, 0.0171)
    assert round(std / len(values) ** 0.5, 4) == 0.0127
    assert design_effect(values, clusters) == pytest.approx(1.81, abs=0.005)


Units = list[tuple[tuple[str, ...], str]]


def units(case: EvalCase, unit: str) -> Units:
    """Turn ids and text of each chunk of the reference."""
    turns = [
        [((turn.turn_id,), f"{turn.speaker}: {turn.text}") for turn in session.turns]
        for session in case.sessions
    ]
    if unit == "turn":
        return [turn for session in turns for turn in session]
    return [
        (tuple(i for ids, _ in session for i in ids), "\n".join(text for _, text in session))
        for session in turns
    ]


_INDEX: dict[tuple[str, str], tuple[Any, Units]] = {}


def ranked(case: EvalCase, unit: str, text: str) -> list[tuple[str, ...]]:
    """Turn ids of the chunks of a case, by rank_bm25's score for a question; ties by position."""
    from rank_bm25 import BM25Okapi

    if (case.case_id, unit) not in _INDEX:
        documents = units(case, unit)
        _INDEX[case.case_id, unit] = (
            BM25Okapi([re.findall("[a-z0-9]+", document.lower()) for _, document in documents]),
            documents,
        )
    index, documents = _INDEX[case.case_id, unit]
    scores = index.get_scores(re.findall("[a-z0-9]+", text.lower()))
    return [
        documents[place][0]
        for place in sorted(range(len(documents)), key=lambda place: (-scores[place], place))
    ]


def metrics_of(case: EvalCase, asked: EvalQuestion, unit: str) -> dict[str, float | None]:
    session_of = {
        turn.turn_id: session.session_id for session in case.sessions for turn in session.turns
    }
    ranks = ranks_of(ranked(case, unit, asked.text), asked.evidence, session_of.__getitem__)
    return retrieval_metrics(None, ranks, None)


@pytest.mark.parametrize(
    ("unit", "prefix"), [("turn", "ranking_"), ("session", "ranking_session_")]
)
def test_every_recorded_retrieval_metric_of_conv_26_is_reproduced(
    data_dir: Path, cases: list[EvalCase], unit: str, prefix: str
) -> None:
    case = cases[0]
    asked = {question.question_id: question for question in case.questions}
    recorded = [
        row
        for row in rows(data_dir.parent / "reference/locomo_bm25_conv26.jsonl")
        if row["granularity"] == unit
    ]
    names = {
        "recall@1": "recall_at_1",
        "recall@5": "recall_at_5",
        "recall@10": "recall_at_10",
        "recall@20": "recall_at_20",
    }
    names |= {"mrr": "mrr", "ndcg@10": "ndcg_at_10"}
    assert len(recorded) == 199
    for row in recorded:
        ours = metrics_of(case, asked[row["question_id"]], unit)
        for theirs, name in names.items():
            assert ours[prefix + name] == (
                pytest.approx(row[theirs], abs=1e-6) if theirs in row else None
            ), (
                row["question_id"],
                theirs,
            )


@pytest.mark.parametrize(
    ("unit", "prefix", "recalls"),
    [
        ("turn", "ranking_", (0.244720, 0.451569, 0.532185, 0.596337)),
        ("session", "ranking_session_", (0.583240, 0.823684, 0.902771, 0.967503)),
    ],
)
def test_recall_of_the_bm25_reference_over_all_questions(
    cases: list[EvalCase], unit: str, prefix: str, recalls: tuple[float, ...]
) -> None:
    found = [metrics_of(case, asked, unit) for case in cases for asked in case.questions]
    for k, recall in zip((1, 5, 10, 20), recalls, strict=True):
        values = [metrics[f"{prefix}recall_at_{k}"] for metrics in found]
        assert sum(value is not None for value in values) == 1982
        assert mean(values) == pytest.approx(recall, abs=5e-7)
