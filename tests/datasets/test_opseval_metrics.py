"""Token F1 for Chinese text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memeval.datasets.locate import build
from memeval.datasets.opseval.metrics import character_f1
from memeval.metrics.answer import answer_metrics
from memeval.metrics.tokens import token_f1
from memeval.records import EvalQuestion


@pytest.mark.parametrize(
    ("prediction", "gold", "score"),
    [
        ("日志级别", "日志级别。", 1),
        ("日志", "日志级别", 2 / 3),
        ("Apache的日志", "apache 日志", 6 / 7),
        ("ＨＤＦＳ，日志", "HDFS日志", 1),
        ("完全不同", "日志", 0),
        ("", "日志", 0),
    ],
)
def test_each_character_is_a_token(prediction: str, gold: str, score: float) -> None:
    assert character_f1(prediction, gold) == pytest.approx(score)


@given(st.text("abc ,.", max_size=20), st.text("abc ,.", max_size=20))
def test_without_chinese_it_equals_token_f1(prediction: str, gold: str) -> None:
    assert character_f1(prediction, gold) == token_f1(prediction, gold)


def test_data_set_uses_character_f1_as_token_f1() -> None:
    question = EvalQuestion(
        question_id="q", text="什么？", category="log_analysis", gold=("日志级别",)
    )
    assert build("opseval", Path("x")).answer_metrics("日志", question)[
        "token_f1"
    ] == pytest.approx(2 / 3)
    assert answer_metrics("日志", question)["token_f1"] == pytest.approx(2 / 3)
