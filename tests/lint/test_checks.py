"""Leaks are found where they exist, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from memeval.datasets.lint.check import lint_run
from memeval.datasets.lint.records import LintedRun, SentPrompt
from memeval.datasets.lint.words import gold_runs
from memeval.records import EvalCase, Label, Session, Status, Turn, Verdict
from memeval.results import Record, RunSummary
from memeval.results.rows import RetrievedChunk

GOLD = "a red wooden sailing boat"
CONTEXT = "Ann: I bought a red wooden sailing boat.\nBob: Nice."


def summary(**params: Any) -> RunSummary:
    return RunSummary(
        run_key="0123456789abcdef",
        name="rag",
        dataset="demo",
        sweep=None,
        command="python -m memeval",
        params={"system": "rag", "judge": "llm", "top_k": 5, **params},
        tags={},
        metrics={},
        categories=(),
        repeats=(),
        notes=(),
        valid=True,
        started_at="2026-11-21T20:00:00+01:00",
        finished_at="2026-11-21T20:00:17+01:00",
    )


def record(**changes: Any) -> Record:
    members: dict[str, Any] = {
        "question_id": "c/q0",
        "case_id": "c",
        "category": 1,
        "category_name": "multi_hop",
        "repeat": 0,
        "seed": 0,
        "question": "What did Ann buy?",
        "gold": (GOLD,),
        "answerable": True,
        "status": Status.OK,
        "evidence": ("D1:1",),
        "hypothesis": "a boat",
        "verdict": Verdict("llm", Label.CORRECT, 1.0, reason="It says so."),
        "retrieved": (RetrievedChunk(("D1:1",)),),
    }
    return Record(**{**members, **changes})


def turn(number: int, text: str) -> Turn:
    return Turn(turn_id=f"D1:{number}", speaker="Ann", text=text, time=None)


CASE = EvalCase(
    case_id="c",
    sessions=(
        Session("s1", None, (turn(1, "I bought a red wooden sailing boat."), turn(2, "Nice."))),
    ),
    questions=(),
)
OTHER_CASE = replace(CASE, sessions=(Session("s1", None, (turn(1, "Hello."), turn(2, "Hi."))),))


def material(own: Record | None = None, **changes: Any) -> LintedRun:
    """A run in which nothing is wrong, with changes."""
    prompt = f"Answer in few words.\n{CONTEXT}\nWhat did Ann buy?"
    members: dict[str, Any] = {
        "summary": summary(),
        "records": (own or record(),),
        "prompts": {("c/q0", 0): SentPrompt(messages=(prompt,), context=CONTEXT)},
        "cases": {"c": CASE},
        "memories": {"c": ["Ann has a red wooden sailing boat"]},
        "settings": {"system": "rag"},
    }
    return LintedRun(**{**members, **changes})


def kinds(looked: LintedRun) -> list[str]:
    return [finding.kind for finding in lint_run(looked).findings]


def test_run_without_leaks_has_no_findings() -> None:
    assert lint_run(material()) == lint_run(material())
    assert kinds(material()) == [] and lint_run(material()).unchecked == ()


def test_gold_in_the_prompt_instructions_is_found() -> None:
    prompt = f"For example: A RED, wooden sailing boat!\n{CONTEXT}\nWhat did Ann buy?"
    leaking = material(prompts={("c/q0", 0): SentPrompt((prompt,), CONTEXT)})
    (finding,) = lint_run(leaking).findings
    assert (finding.kind, finding.questions) == ("gold in prompt", ("c/q0",))
    assert "a red wooden sailing boat" in finding.what


def test_gold_of_another_question_in_the_prompt_is_found() -> None:
    other = record(question_id="c/q1", question="Where is it?", gold=("in the old harbour",))
    prompt = f"Say it so: In the old harbour.\n{CONTEXT}"
    prompts = {("c/q0", 0): SentPrompt((prompt,), CONTEXT)}
    (finding,) = lint_run(material(records=(record(), other), prompts=prompts)).findings
    assert (finding.kind, finding.questions) == ("gold in prompt", ("c/q1",))


def test_gold_in_a_setting_is_found() -> None:
    leaking = material(settings={"prompt.file=few.txt": f"Q: what? A: {GOLD}"})
    (finding,) = lint_run(leaking).findings
    assert (finding.kind, finding.where) == ("gold in settings", "prompt.file=few.txt")


def test_gold_in_a_memory_but_not_in_the_conversation_is_found() -> None:
    assert kinds(material(cases={"c": OTHER_CASE})) == ["gold in memory", "gold in memory"]
    silent = {"prompts": {}, "memories": {"c": ["Ann has a red boat"]}}
    assert kinds(material(cases={"c": OTHER_CASE}, **silent)) == []


def test_date_resolved_by_the_memory_is_not_a_leak() -> None:
    dated = record(gold=("on the 7 May 2023",))
    memories = {"c": ["Ann bought it on the 7 May 2023"]}
    assert kinds(material(dated, memories=memories)) == []


@pytest.mark.parametrize(("top_k", "expected"), [(2, ["retrieves everything"]), (1, [])])
def test_top_k_that_retrieves_everything_is_found(top_k: int, expected: list[str]) -> None:
    shown = record(retrieved=(RetrievedChunk(("D1:1",)), RetrievedChunk(("D1:2",))))
    assert kinds(material(shown, summary=summary(top_k=top_k))) == expected


def test_long_answer_that_copies_its_context_is_found() -> None:
    context = " ".join(f"word{number}" for number in range(60))
    prompts = {("c/q0", 0): SentPrompt((context,), context)}
    assert kinds(material(record(hypothesis=context), prompts=prompts)) == ["judge saw more"]
    short = " ".join(context.split()[:39])
    assert kinds(material(record(hypothesis=short), prompts=prompts)) == []


def test_judges_reason_that_names_evidence_is_found() -> None:
    verdict = Verdict("own", Label.CORRECT, 1.0, reason="D1:1 says so.")
    assert kinds(material(record(verdict=verdict))) == ["judge saw more"]
    assert kinds(material(record(verdict=verdict, hypothesis="see D1:1"))) == []


def sibling(questions: tuple[str, ...], **params: Any) -> Mapping[str, Any]:
    other = replace(summary(**params), run_key="fedcba9876543210")
    return {"siblings": ((other, frozenset(questions)),)}


@pytest.mark.parametrize(
    ("questions", "params", "expected"),
    [
        (("c/q0",), {"top_k": 7}, ["tuned on test"]),
        (("c/q0",), {"llm.temperature": 1.0}, ["tuned on test"]),
        (("d/q0",), {"top_k": 7}, []),
        (("c/q0",), {}, []),
        (("c/q0",), {"seed": 3}, []),
        (("c/q0",), {"llm.timeout_s": 30.0, "embedder.max_concurrency": 4}, []),
        (("c/q0",), {"top_k": 7, "judge": "mem0"}, []),
        (("c/q0",), {"top_k": 7, "system": "bm25"}, []),
    ],
)
def test_other_settings_tried_on_the_reported_questions_are_found(
    questions: tuple[str, ...], params: dict[str, Any], expected: list[str]
) -> None:
    assert kinds(material(**sibling(questions, **params))) == expected


def test_tuning_on_the_dev_split_is_allowed() -> None:
    others = sibling(("c/q0",), **{"top_k": 7, "dataset.split": "dev"})
    assert kinds(material(summary=summary(**{"dataset.split": "dev"}), **others)) == []


def test_imported_answers_are_not_settings_of_one_system() -> None:
    own = replace(summary(system="imported"), tags={"imported": "true"})
    others = sibling(("c/q0",), **{"system": "imported", "system.file": "other.jsonl"})
    result = lint_run(material(summary=own, **others))
    assert not result.findings
    assert any(text.startswith("tuning: ") for text in result.unchecked)


def test_checks_that_were_not_possible_are_listed() -> None:
    result = lint_run(
        material(summary=summary(**{"judge.class": "mine:J"}), cases=None, prompts={})
    )
    assert not result.findings and len(result.unchecked) == 3


def test_memories_and_contexts_that_a_package_lacks_are_listed() -> None:
    taken_in = replace(summary(), tags={"package": "0123456789abcdef"})
    prompts = {("c/q0", 0): SentPrompt(messages=("Answer.",), context=None)}
    own = record(context="sha256 of its text")
    result = lint_run(material(own, summary=taken_in, prompts=prompts, memories={"c": []}))
    assert result.unchecked == (
        "memories: the run came in a package, which contains none",
        "contexts: the texts of 1 answer are not on this machine",
    )


def test_gold_runs_are_word_ngrams_that_the_question_lacks() -> None:
    assert gold_runs(["yes"], "", 3) == []
    assert gold_runs(["one two three"], "", 3) == [" one two three "]
    assert gold_runs(["one two three"], "Is it one, two, three?", 3) == []
    assert len(gold_runs(["a b c d e f g h"], "", 3)) == 3
