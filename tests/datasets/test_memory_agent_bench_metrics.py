"""MemoryAgentBench's metrics: golden vectors of the protocol's normalisation and rules."""

from __future__ import annotations

import pytest

from memeval.datasets.memory_agent_bench.metrics import (
    exact_match_parsed,
    items,
    metric_of,
    normalise,
    parse_answer,
    recall_at_5_items,
    substring_exact_match,
)


@pytest.mark.parametrize(
    ("source", "metric"),
    [
        ("ruler_qa1_197K", "substring_exact_match"),
        ("eventqa_full", "substring_exact_match"),
        ("factconsolidation_mh_262k", "substring_exact_match"),
        ("icl_banking77_5900shot_balance", "exact_match_parsed"),
        ("detective_qa", "exact_match_parsed"),
        ("recsys_redial_full", "recall_at_5_items"),
        ("longmemeval_s*", "longmemeval"),
        ("infbench_sum_eng_shots2", "summary"),
        ("locomo", None),
    ],
)
def test_metric_of_a_sub_data_set(source: str, metric: str | None) -> None:
    assert metric_of(source) == metric


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Beatles, a band!", "beatles band"),
        ("an  Apple\nInc..", "apple inc"),
        ("Theatre and another", "theatre and another"),
        ("U.S.A.", "usa"),
        ("the", ""),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@pytest.mark.parametrize(
    ("prediction", "golds", "score"),
    [
        ("He is from the Belgium, I think.", ["Belgium"], 1),
        ("belgium", ["Rodez", "Belgium"], 1),
        ("Belgian", ["Belgium"], 0),
        ("basketballs", ["basketball"], 1),
        ("", ["Belgium"], 0),
        ("anything", ["the"], 0),
        ("Washington D.C.", ["Washington, D.C.."], 1),
    ],
)
def test_substring_exact_match(prediction: str, golds: list[str], score: float) -> None:
    assert substring_exact_match(prediction, golds) == score


@pytest.mark.parametrize(
    ("prediction", "golds", "score"),
    [
        ("3", ["3"], 1),
        ("label: 3", ["3"], 0),
        ("I think so.\nAnswer: 3\nDone", ["3"], 1),
        ("The cook.\nbecause", ["cook"], 1),
        ("\n\n B. The cook \n", ["b the cook"], 1),
        ("\n\n B. The cook \n", ["B. The Cook!"], 1),
        ("33", ["3"], 0),
        ("Answer:\n3", ["3"], 0),
    ],
)
def test_exact_match_of_the_parsed_output(prediction: str, golds: list[str], score: float) -> None:
    assert exact_match_parsed(prediction, golds) == score


def test_parsed_takes_the_answer_line_or_the_first_line() -> None:
    assert parse_answer("\n first \n second") == "first"
    assert parse_answer("x\nFinal answer: y \nz") == "y"
    assert parse_answer(" \n ") == ""


@pytest.mark.parametrize(
    ("prediction", "expected"),
    [
        ("1. Heat (1995)\n2) The Sting\n- Jaws", ["Heat (1995)", "The Sting", "Jaws"]),
        ("Heat, Jaws, Up", ["Heat", "Jaws", "Up"]),
        ("Heat; Jaws, Too", ["Heat", "Jaws, Too"]),
        ("Answer: Heat, Jaws", ["Heat", "Jaws"]),
        ("", []),
    ],
)
def test_items_are_read_from_lists_and_separators(prediction: str, expected: list[str]) -> None:
    assert items(prediction) == expected


@pytest.mark.parametrize(
    ("prediction", "golds", "score"),
    [
        ("1. heat (1995)\n2. Jaws", ["Heat", "Jaws"], 1),
        ("1. Heat\n2. Up", ["Heat (1995)", "Jaws"], 0.5),
        ("2001: A Space Odyssey\n300", ["2001: A Space Odyssey (1968)", "300 (2006)"], 1),
        ("1: Heat\n2: Jaws", ["Heat", "Jaws"], 1),
        ("a\nb\nc\nd\ne\nHeat", ["Heat"], 0),
        ("Heat\nHeat", ["Heat"], 1),
        ("none", [], 0),
    ],
)
def test_recall_among_the_first_five_items(prediction: str, golds: list[str], score: float) -> None:
    assert recall_at_5_items(prediction, golds) == score
