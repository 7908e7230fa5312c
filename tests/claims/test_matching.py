"""Published figures matched with runs: shipped claims are valid, every difference is reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memeval.comparison.claims.matching import Sameness, match_claim
from memeval.comparison.claims.reading import load_claims, read_claims
from memeval.comparison.claims.records import Claim, ClaimedFigure, Protocol
from memeval.datasets.registry import DATASETS
from memeval.report.disclosure import disclosures
from memeval.results import CategoryResult, RunSummary
from memeval.results.judge import JudgeIdentity

SHA = "79fa87e9" * 8
PROMPT, ANSWERS = "ab" * 32, "cd" * 32


def row(category: str, n: int, accuracy: float) -> CategoryResult:
    return CategoryResult(
        category=category,
        name=f"c{category}",
        n=n,
        scored=n,
        asked=n,
        headline=category != "5",
        accuracy=accuracy,
        accuracy_std=None,
        ci95_low=None,
        ci95_high=None,
        token_f1=None,
    )


def run(**changes: Any) -> RunSummary:
    """A run that follows the protocol of `claim` in every respect."""
    members: dict[str, Any] = {
        "run_key": "0123456789abcdef",
        "name": "rag",
        "dataset": "locomo",
        "sweep": None,
        "command": "python -m memeval",
        "params": {"judge": "llm", "llm.model": "openai/small", "system": "rag", "top_k": 7},
        "tags": {"data_sha256": SHA, "judge_prompt_sha256": PROMPT, "prompt_sha256": ANSWERS},
        "metrics": {"accuracy": 0.6, "recall_at_5": 0.4, "n_questions": 40.0, "coverage": 1.0},
        "categories": (row("1", 10, 0.2), row("2", 30, 0.6), row("5", 4, 1.0)),
        "judge": JudgeIdentity("llm", prompt_sha256=PROMPT, model="openai/small", repeats=1),
        "repeats": (),
        "notes": (),
        "valid": True,
        "started_at": "2026-11-21T20:00:00+01:00",
        "finished_at": "2026-11-21T20:00:17+01:00",
    }
    return RunSummary(**{**members, **changes})


def claim(metric: str = "accuracy", **changes: Any) -> Claim:
    protocol: dict[str, Any] = {
        "data_sha256": SHA,
        "categories": (1, 2),
        "questions": 40,
        "judge": "strict",
        "judge_model": "small",
        "judge_prompt_sha256": PROMPT,
        "judge_request": {},
        "judge_repeats": 1,
        "reader_settings": {},
        "reader_model": "small",
        "reader_prompt_sha256": ANSWERS,
    }
    return Claim(
        name="made_up",
        title="Made up",
        source="nowhere",
        dataset="locomo",
        protocol=Protocol(**{**protocol, **changes}),
        figures=(ClaimedFigure(system="rag", metric=metric, value=55.0),),
    )


def test_a_run_of_the_same_protocol_is_comparable() -> None:
    (match,) = match_claim(claim(), run())
    assert (match.verdict, match.reasons) == ("comparable", [])
    # (10 · 20 + 30 · 60) / 40: category 5 is not part of the claim.
    assert match.own == pytest.approx(50.0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data_sha256": "00" * 32}, "a different data file"),
        ({"labels": "corrected"}, "labels: original here, corrected there"),
        ({"questions": 41}, "number of questions: 40 here, 41 there"),
        ({"categories": (1, 2, 3, 5)}, "number of questions: 44 here, 40 there"),
        ({"averaged": "cases"}, "averaged over conversations there"),
        ({"judge_model": "large"}, "judge model: small here, large there"),
        ({"judge_prompt_sha256": "ef" * 32}, "the judge's prompt"),
        ({"judge_prompt_sha256": None, "judge_like": "llm"}, "with a different wording"),
        ({"judge_prompt_sha256": None}, "judge llm here, a different one there: strict"),
        ({"reader_model": "large"}, "reader: small here, large there"),
        ({"reader_prompt_sha256": "00" * 32}, "the answer prompt"),
    ],
)
def test_different_protocol_is_not_comparable(changes: dict[str, Any], words: str) -> None:
    (match,) = match_claim(claim(**changes), run())
    assert match.verdict == "not comparable"
    assert words in match.reasons[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"data_sha256": None},
        {"questions": None},
        {"judge_model": None},
        {"reader_model": None},
        {"reader_prompt_sha256": None},
    ],
)
def test_undisclosed_protocol_gives_no_verdict(changes: dict[str, Any]) -> None:
    (match,) = match_claim(claim(**changes), run())
    assert match.verdict == "can't be said" and len(match.reasons) == 1
    if "questions" in changes:
        assert match.reasons == ["the source does not state the number of questions"]


def test_custom_judge_prompt_cannot_be_checked() -> None:
    own = run(params={**run().params, "judge.prompt_file": "strict.txt"})
    (match,) = match_claim(claim(judge_prompt_sha256=None), own)
    assert match.verdict == "can't be said" and "can't be checked" in match.reasons[0]


def test_judge_without_a_model_differs_from_one_with_a_model() -> None:
    own = run(judge=JudgeIdentity("llm"))
    (match,) = match_claim(claim(), own)
    assert match.reasons == ["judged by llm here, by the model small there"]


def test_an_invalid_run_is_comparable_with_nothing() -> None:
    (match,) = match_claim(claim(), run(valid=False))
    assert match.verdict == "not comparable"


def test_recall_needs_neither_judge_nor_reader_but_all_questions() -> None:
    settings = {"system": "rag", "top_k": "7"}
    every = claim("recall_at_5", categories=(1, 2, 5), questions=44, settings=settings)
    (match,) = match_claim(every, run())
    assert (match.verdict, match.own) == ("comparable", 40.0)
    (match,) = match_claim(claim("recall_at_5"), run())
    assert (match.verdict, match.own) == ("not comparable", None)


def test_shipped_claims_are_about_known_data_sets() -> None:
    known = load_claims()
    elsewhere = {each.dataset for each in known if each.dataset not in DATASETS}
    assert elsewhere == {"precisionmembench"} and len(known) >= 27


def test_the_micro_means_of_the_claims_follow_from_their_categories() -> None:
    counts = {"1": 282, "2": 321, "3": 96}
    checked = 0
    for figure in (figure for each in load_claims() for figure in each.figures):
        if figure.micro is not None and figure.by_category is not None:
            total = sum(counts[name] * value for name, value in figure.by_category.items())
            assert total / sum(counts.values()) == pytest.approx(figure.micro, abs=0.06)
            checked += 1

    assert checked == 2


def test_invalid_claims_file_is_named_in_the_error(tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text("mine: {title: x, source: y, dataset: locomo, figures: []}\n")
    with pytest.raises(ValueError, match=r"odd.yaml, claim mine: Expected"):
        read_claims(path)


def test_six_protocol_items_are_disclosed_and_hostile_text_is_escaped() -> None:
    words = disclosures(run(judge=JudgeIdentity("a\x1b[31m\nb")))
    assert list(words) == ["data", "questions", "judge", "reader", "retrieval", "error"]
    assert all(words.values())
    assert "\x1b" not in words["judge"] and "\n" not in words["judge"]
    assert SHA in words["data"] and "40 (1 c1 10, 2 c2 30)" in words["questions"]
    assert "separately: 5 c5" in words["questions"] and "top_k 7" in words["retrieval"]
    assert "re-run std unknown (only 1 repeat);" in words["error"]


def test_a_reader_with_tools_and_all_its_prompts_are_disclosed() -> None:
    digests = " ".join(letter * 64 for letter in "abcde")
    own = run(params={"reader": "tools"}, tags={"data_sha256": SHA, "prompt_sha256": digests})
    reader = disclosures(own)["reader"]
    assert "through the memory's tools" in reader and reader.endswith(digests)


def test_sameness_values_are_words() -> None:
    assert [str(kind) for kind in Sameness] == ["same", "other", "not disclosed"]


def test_imported_and_recorded_runs_disclose_only_what_is_known() -> None:
    params = {"judge": "recorded", "llm": "extractive"}
    judge = JudgeIdentity("recorded", model="small")
    tags = {"data_sha256": SHA, "imported": "true", "recorded": "true"}
    imported = run(params=params | {"dataset.sample": 40}, tags=tags, judge=judge)
    (match,) = match_claim(claim(), imported)
    assert match.verdict == "can't be said"
    assert not any("extractive" in reason for reason in match.reasons)

    (match,) = match_claim(claim(judge_model="large"), imported)
    assert match.reasons[0] == "judge model: small here, large there"
    shown = disclosures(imported)
    assert shown["judge"].startswith("small, recorded in the answer file")
    assert "dataset.sample=40" in shown["questions"]
    assert shown["retrieval"].startswith("another program")


def test_retrieval_only_run_reports_that_nothing_was_answered() -> None:
    only = run(tags={"data_sha256": SHA, "stages": "retrieve"}, params={"system": "rag"})
    (match,) = match_claim(claim(), only)
    assert match.reasons == ["nothing was answered here (stages=retrieve)"]
    assert disclosures(only)["judge"] == "none: nothing was judged"


def test_retrieval_is_measured_on_all_questions() -> None:
    metrics = {"recall_at_5": 0.4, "n_questions": 40.0, "n_records": 44.0, "coverage": 1.0}
    only = run(tags={"data_sha256": SHA, "stages": "retrieve"}, metrics=metrics)
    assert disclosures(only)["questions"] == "44 (1 c1 10, 2 c2 30, 5 c5 4)"


@pytest.mark.parametrize(
    ("params", "verdict", "words"),
    [
        ({"system.tokens": "space"}, "not comparable", "system.tokens is space here, alnum there"),
        ({"system.ties": "reversed"}, "can't be said", "system.ties is reversed here"),
        ({"granularity": "session"}, "can't be said", "granularity is session here"),
        ({"dataset.images": "caption"}, "can't be said", "dataset.images is caption here"),
        ({"top_k": 3}, "comparable", ""),
        ({"num_runs": 3, "judge": "mem0", "llm": "openai"}, "comparable", ""),
    ],
)
def test_recall_is_comparable_only_if_the_whole_configuration_matches(
    params: dict[str, Any], verdict: str, words: str
) -> None:
    settings = {"system": "rag", "system.tokens": "alnum"}
    own = {**run().params, "system.tokens": "alnum", **params}
    every = claim("ranking_recall_at_5", categories=(1, 2, 5), questions=44, settings=settings)
    (match,) = match_claim(every, run(params=own, metrics={"ranking_recall_at_5": 0.4}))
    assert match.verdict == verdict and words in " ".join(match.reasons)
    assert match.allowed_difference == ""


def test_settings_that_a_claim_states_hold_for_answers_too() -> None:
    (match,) = match_claim(claim(settings={"system": "bm25", "top_k": "7"}), run())
    assert (match.verdict, match.reasons) == ("not comparable", ["system is rag here, bm25 there"])


def test_source_without_categories_is_compared_with_the_questions_that_count() -> None:
    (match,) = match_claim(claim(categories=None), run())
    assert (match.own, match.verdict) == (pytest.approx(50.0), "comparable")
    # A recall covers those that don't count as well.
    settings = {"system": "rag", "top_k": "7"}
    every = claim("recall_at_5", categories=None, questions=44, settings=settings)
    (match,) = match_claim(every, run())
    assert (match.own, match.verdict) == (40.0, "comparable")


def test_same_number_of_questions_in_other_categories_is_not_comparable() -> None:
    every = claim("recall_at_5", categories=(1, 2, 4), questions=44, settings={"system": "rag"})
    (match,) = match_claim(every, run())
    assert match.verdict == "not comparable"
    assert "categories 1, 2, 5 here, 1, 2, 4 there" in match.reasons


@pytest.mark.parametrize(
    ("claimed", "verdict"),
    [
        ({"temperature": 0.0}, "comparable"),
        ({"temperature": 0.7}, "not comparable"),
        (None, "can't"),
    ],
)
def test_judge_request_is_part_of_a_claim(claimed: Any, verdict: str) -> None:
    judge = JudgeIdentity(
        "llm", prompt_sha256=PROMPT, model="small", repeats=1, request={"temperature": 0.0}
    )
    (match,) = match_claim(claim(judge_request=claimed), run(judge=judge))
    assert match.verdict.startswith(verdict)


def test_comparable_accuracy_names_the_system_that_differs() -> None:
    (match,) = match_claim(claim(), run())
    assert match.verdict == "comparable"
    assert match.allowed_difference == "the system: system=rag top_k=7 here, rag there"
