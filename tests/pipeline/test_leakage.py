"""No prompt of any system contains what the system must find."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, records
from doubles.endpoint import ScriptedEndpoint

from memeval.datasets.locomo.schema import parse_date
from memeval.records import format_time
from memeval.systems.registry import SYSTEMS as REGISTRY
from memeval.systems.registry import built_in

OUTSIDE = {"letta", "http", "mcp", "command", "oracle"}
"""The first four call their own server; `oracle` is the control that is given the evidence (as
text, without its ids).
"""
WORKS_OUT_DATES = {"cogcanvas_paper", "cogcanvas_paper_a"}
"""Systems that compute dates by rule: a date that they derive from "yesterday" is in no turn, and
may be a gold answer.
"""
SYSTEMS = sorted(set(built_in()) - OUTSIDE - WORKS_OUT_DATES)
CLASSES = sorted({REGISTRY.path_of(name): name for name in reversed(SYSTEMS)}.values())
"""One name per class; the other names are the same code with other settings."""
TELLTALE = re.compile(
    r"\bD\d+:\d+\b|/q\d+\b|single_hop|multi_hop|open_domain|adversarial|category", re.IGNORECASE
)
MEM0_INSTRUCTIONS = "You are a Memory Extractor"


def reply(body: Mapping[str, Any]) -> str:
    """A reply to every kind of request: JSON if requested, else a few words."""
    text = " ".join(str(message["content"]) for message in body["messages"])
    return "[]" if "JSON" in text else "Answer: a few words"


def prompts(endpoint: ScriptedEndpoint) -> list[str]:
    """The prompts sent, without mem0's instructions, which are the same for all texts."""
    return [
        "\n".join(
            str(message["content"])
            for message in body["messages"]
            if MEM0_INSTRUCTIONS not in str(message["content"])
        )
        for _, body in endpoint.requests
    ]


def what_is_said(sample: Mapping[str, Any]) -> str:
    """Everything that a system may know: the turns, their captions, the sessions' dates as shown,
    the questions. No ids.
    """
    talk = sample["conversation"]
    turns = [turn for value in talk.values() if isinstance(value, list) for turn in value]
    dates = [
        format_time(time)
        for name, value in talk.items()
        if name.endswith("date_time") and (time := parse_date(value))
    ]
    captions = [turn.get("blip_caption", "") for turn in turns]
    return "\n".join(
        [
            *(turn["text"] for turn in turns),
            *captions,
            *dates,
            *(qa["question"] for qa in sample["qa"]),
        ]
    )


def look_through(sent: list[str], rows: list[dict[str, Any]], conversation: str) -> int:
    """Fails if a prompt contains an id, a category or a gold answer that is in no turn; returns how
    many golds could have leaked.
    """
    assert sent
    for prompt in sent:
        found = TELLTALE.search(prompt)
        assert not (found and found.group().lower() not in conversation.lower()), (
            f"{found and found.group()!r} in a prompt: {prompt[:300]}"
        )
    unsaid = {
        gold
        for row in rows
        for gold in row["gold"]
        if len(gold) > 8 and gold.lower() not in conversation.lower()
    }
    for gold in unsaid:
        leaks = [prompt for prompt in sent if gold.lower() in prompt.lower()]
        assert not leaks, (
            f"{gold!r} is nowhere in the conversation and yet in a prompt: {leaks[0][:300]}"
        )
    return len(unsaid)


@pytest.mark.parametrize(
    ("systems", "style"),
    [
        pytest.param(CLASSES, "short", id="short", marks=pytest.mark.slow),
        pytest.param(SYSTEMS, "short", id="short, every system", marks=pytest.mark.slow),
        pytest.param(SYSTEMS, "cot", id="cot, every system", marks=pytest.mark.slow),
    ],
)
def test_prompts_on_the_demo_set_contain_no_ids_categories_or_golds(
    memeval: Command, tmp_path: Path, systems: list[str], style: str
) -> None:
    demo = json.loads(
        (Path(__file__).parents[2] / "data" / "demo" / "demo.json").read_text(encoding="utf-8")
    )
    with ScriptedEndpoint(reply) as endpoint:
        cell = (
            "dataset.limit_cases=1",
            "llm=openai",
            f"llm.base_url={endpoint.base_url}",
            "judge=keyword",
            "tracking=none",
            f"prompt={style}",
        )
        memeval(
            "-m",
            f"system={','.join(systems)}",
            *cell,
            "compression_turn=middle",
            "dataset.categories=[1,2,3,4]",
            check=False,
        )
        said = what_is_said(demo[0])
        assert look_through(prompts(endpoint), records(tmp_path), said) >= 5, (
            "too few golds that could leak for the test to mean anything"
        )


@pytest.mark.slow
@pytest.mark.real_data
def test_prompts_on_a_locomo_conversation_contain_no_ids_or_golds(
    memeval: Command, tmp_path: Path, data_dir: Path
) -> None:
    locomo = json.loads((data_dir / "locomo" / "locomo10.json").read_text(encoding="utf-8"))
    with ScriptedEndpoint(reply) as endpoint:
        cell = (
            "dataset=locomo",
            "dataset.limit_cases=1",
            "llm=openai",
            f"llm.base_url={endpoint.base_url}",
            "judge=keyword",
            "tracking=none",
        )
        memeval(
            "-m",
            f"system={','.join(SYSTEMS)}",
            *cell,
            "llm.max_concurrency=32",
            MEMEVAL_DATA_DIR=str(data_dir),
            check=False,
        )
        said = what_is_said(locomo[0])
        assert look_through(prompts(endpoint), records(tmp_path), said) >= 20
