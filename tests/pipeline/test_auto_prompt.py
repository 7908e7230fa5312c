"""`prompt=auto` answers each question in the form that the question asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply
from lone_runs import run_cell

from memeval.llm.contract import Completion, Prompt
from memeval.llm.metering import Ledger, metered
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import load_builtin
from memeval.pipeline.execute.reader import CellReader
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.cell_prompts import Templates
from memeval.pipeline.open.opening import open_cell
from memeval.records import AnswerForm, Query, Role, Usage
from memeval.results import RunSummary
from memeval.runs.compose.config import compose_config

pytestmark = pytest.mark.usefixtures("home")

SYSTEM_TEXT = {
    load_builtin(f"answer_{style}").system: style for style in ("short", "whole", "form", "cot")
} | {load_builtin("choose").system.partition("\n")[0]: "choose"}


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(reply) as served:
        yield served


def reply(body: Mapping[str, Any]) -> str:
    return "A whole answer\nof two lines" if style_of(body) == "whole" else scripted_reply(body)


def style_of(body: Mapping[str, Any]) -> str:
    """The template of a request for an answer; empty for other requests."""
    system = str(body["messages"][0]["content"])
    return SYSTEM_TEXT.get(system) or SYSTEM_TEXT.get(system.partition("\n")[0], "")


def opened(*words: str) -> Cell:
    return open_cell(compose_config(["tracking=none", "system=bm25", *words]), "")


def run(endpoint: ScriptedEndpoint, *words: str) -> RunSummary:
    address = f"llm.base_url={endpoint.base_url}"
    cell = opened("llm=openai", "llm.model=scripted", address, *words)
    return run_cell(cell)


def styles(endpoint: ScriptedEndpoint) -> dict[str, set[str]]:
    """The questions asked under each template."""
    asked: dict[str, set[str]] = {}
    for _, body in endpoint.requests:
        question = str(body["messages"][-1]["content"]).rpartition("Question: ")[2]
        if style := style_of(body):
            asked.setdefault(style, set()).add(question.partition("\n")[0])

    return asked


@pytest.mark.slow
def test_locomo_uses_the_short_prompt(endpoint: ScriptedEndpoint) -> None:
    summary = run(endpoint, "dataset=demo", "dataset.limit_cases=1", "judge=keyword")

    assert set(styles(endpoint)) == {"short"}
    assert summary.params["prompt"] == "auto"


@pytest.mark.slow
def test_preference_questions_of_longmemeval_use_the_whole_prompt(
    endpoint: ScriptedEndpoint,
) -> None:
    words = ("dataset=demo_longmemeval", "judge=keyword")
    run(endpoint, *words, "dataset.categories=[single-session-preference]")
    assert set(styles(endpoint)) == {"whole"}

    run(endpoint, *words)
    asked = styles(endpoint)
    assert set(asked) == {"short", "whole"}
    assert not asked["short"] & asked["whole"]


@pytest.mark.slow
def test_each_task_of_memory_agent_bench_uses_its_prompt(endpoint: ScriptedEndpoint) -> None:
    words = ("dataset=demo_memory_agent_bench", "judge=keyword")
    forms = {
        "recsys_redial_demo": "whole",
        "infbench_sum_demo": "whole",
        "icl_demo_6shot": "form",
        "detective_qa": "form",
    }
    for subset, form in forms.items():
        endpoint.requests.clear()
        run(endpoint, *words, "dataset.categories=null", f"dataset.subset={subset}")
        assert set(styles(endpoint)) == {form}, subset


@pytest.mark.slow
def test_choices_use_the_choose_prompt(endpoint: ScriptedEndpoint) -> None:
    run(endpoint, "dataset=demo_locomo_mc10", "dataset.limit_cases=1")

    assert set(styles(endpoint)) == {"choose"}


def test_a_whole_answer_keeps_its_lines(endpoint: ScriptedEndpoint, home: Path) -> None:
    words = ("dataset=demo_longmemeval", "judge=keyword")
    run(endpoint, *words, "dataset.categories=[single-session-preference]")

    (records,) = home.glob("outputs/runs/*/records.jsonl")
    assert "A whole answer\\nof two lines" in records.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("style", ["short", "cot"])
def test_short_prompt_for_a_question_that_asks_for_more_is_noted(
    endpoint: ScriptedEndpoint, style: str
) -> None:
    words = ("dataset=demo_longmemeval", "judge=keyword", f"prompt={style}")
    summary = run(endpoint, *words)

    assert set(styles(endpoint)) == {style}
    note = (
        f"prompt mismatch: prompt={style} asks for as few words as possible, but some questions "
        "ask for a recommendation or a summary; use prompt=auto (1 of 8 answers)"
    )
    assert note in [own.text for own in summary.notes]


@pytest.mark.slow
def test_matching_prompt_is_not_noted_as_a_mismatch(endpoint: ScriptedEndpoint) -> None:
    auto = run(endpoint, "dataset=demo_longmemeval", "judge=keyword")
    short = run(endpoint, "dataset=demo", "judge=keyword", "prompt=short", "dataset.limit_cases=1")

    assert not any("prompt mismatch" in note.text for note in (*auto.notes, *short.notes))


def test_offline_auto_is_short_and_changes_no_key() -> None:
    for dataset in ("demo", "demo_longmemeval"):
        auto, short = (opened(f"dataset={dataset}", *prompt) for prompt in ((), ("prompt=short",)))
        assert auto.config.prompt.name == "short"
        assert auto.run_key == short.run_key
        assert auto.templates.by_form == {}


def test_own_style_of_a_system_overrides_auto() -> None:
    cell = open_cell(
        compose_config(
            ["system=cogcanvas_cot", "llm=openai", "llm.base_url=http://127.0.0.1:1/v1"]
        ),
        "",
    )

    assert cell.style == "cot"
    assert cell.templates.by_form == {}


class Brief(LanguageModel):
    """A model that replies with one word."""

    name, deterministic, sends_messages = "brief", True, True

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        return Completion("tea", Usage(role, self.name, "offline", 1, 1), latency_s=0.0)


@pytest.mark.parametrize(
    ("own_style", "way_out"),
    [(False, "use prompt=auto"), (True, "prompt=... can't change that style")],
)
def test_mismatch_note_does_not_blame_the_prompt_for_a_systems_own_style(
    own_style: bool, way_out: str
) -> None:
    """A run may use `prompt=auto` already."""
    templates = Templates(load_builtin("answer_cot"))
    reader = CellReader(Brief(), templates, "cot", 0, own_style=own_style)
    ledger = Ledger(answer_form=AnswerForm.WHOLE)
    with metered(ledger):
        asyncio.run(reader.answer(Query(text="What should I drink?"), ["tea"]))

    assert ledger.remarks["prompt_mismatch"].endswith(way_out)
