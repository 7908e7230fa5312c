"""Each variant of cogcanvas changes exactly one part: in its resolved settings, in the key of its
memory, and in the prompts that it sends.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.endpoint import ScriptedEndpoint
from forking import run_command_line

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build as dataset_of
from memeval.llm.contract import AnswerPrompt
from memeval.llm.memory_prompts import ExtractPrompt
from memeval.llm.prompts import load_builtin
from memeval.pipeline.execute.ingest import ingest
from memeval.pipeline.execute.reader import CellReader
from memeval.pipeline.isolate.watch import Watched
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.cell_prompts import Templates
from memeval.pipeline.open.opening import open_cell, system_settings
from memeval.pipeline.open.system_source import SystemSource
from memeval.records import Query
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.runs.compose.config import compose_config
from memeval.systems.base import SystemContext
from memeval.systems.cogcanvas.settings import CogCanvasSettings
from memeval.systems.cogcanvas.system import CogCanvas
from memeval.testing.model import ScriptedModel

ROOT = Path(__file__).parents[2]
COLUMNS = (
    "graph",
    "graph_hops",
    "temporal_edges",
    "retrieval",
    "cot",
    "reranker",
    "gleaning",
    "top_k",
)
TABLE: Mapping[str, tuple[Any, ...]] = {
    "cogcanvas": (True, 3, True, "hybrid", True, "lexical", True, 15),
    "cogcanvas_nograph": (False, 3, True, "hybrid", True, "lexical", True, 15),
    "cogcanvas_notemporal": (True, 3, False, "hybrid", True, "lexical", True, 15),
    "cogcanvas_nohybrid": (True, 3, True, "dense", True, "lexical", True, 15),
    "cogcanvas_nocot": (True, 3, True, "hybrid", False, "lexical", True, 15),
    "cogcanvas_norerank": (True, 3, True, "hybrid", True, "none", True, 15),
    "cogcanvas_nogleaning": (True, 3, True, "hybrid", True, "lexical", False, 15),
    "cogcanvas_baseline": (True, 1, False, "dense", False, "none", False, 20),
    "cogcanvas_temporal": (True, 1, True, "dense", False, "none", False, 20),
    "cogcanvas_hybrid": (True, 1, False, "hybrid", False, "none", False, 20),
    "cogcanvas_cot": (True, 1, False, "dense", True, "none", False, 20),
    "cogcanvas_minimal": (True, 1, False, "dense", False, "none", False, 10),
}
"""The table of variants, as published."""
ABLATIONS = [name for name in TABLE if name.startswith("cogcanvas_no")]
VARIANTS = sorted(TABLE)
GLEANS = [name for name in VARIANTS if TABLE[name][COLUMNS.index("gleaning")]]


@cache
def cell(name: str) -> Cell:
    """The variant's cell as Hydra composes it from conf/."""
    return open_cell(
        compose_config(
            [f"system={name}", "dataset=demo", "tracking=none", "compression_turn=middle"]
        ),
        "test",
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_resolved_settings_are_those_of_the_table(name: str) -> None:
    resolved = cell(name)
    assert resolved.source.settings == replace(
        CogCanvasSettings(), **dict(zip(COLUMNS, TABLE[name], strict=True))
    )
    assert resolved.config.system == {"name": name, **system_settings(resolved.source)}
    assert resolved.config.reranker.name == TABLE[name][COLUMNS.index("reranker")]
    assert resolved.config.top_k == TABLE[name][COLUMNS.index("top_k")]
    assert f"k={resolved.config.top_k}" in resolved.name
    assert isinstance(resolved.source, SystemSource) and resolved.source.system_class is CogCanvas
    assert resolved.style == ("cot" if TABLE[name][COLUMNS.index("cot")] else "short")
    plain = cell("cogcanvas").config
    named = replace(plain, top_k=resolved.config.top_k, reranker=resolved.config.reranker)
    assert replace(resolved.config, system={}) == replace(named, system={}), (
        "nothing but the system, and what it comes to, differs"
    )


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "cogcanvas"])
def test_variant_yaml_changes_only_the_switched_fields(name: str) -> None:
    text = (ROOT / "conf" / "system" / f"{name}.yaml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)
    base = yaml.safe_load((ROOT / "conf" / "system" / "cogcanvas.yaml").read_text(encoding="utf-8"))
    assert text.startswith("# ")
    assert given.pop("defaults") == ["cogcanvas", "_self_"]
    assert given.pop("name") == name
    assert given
    assert all(base[field] != value for field, value in given.items())
    if name in ABLATIONS:
        assert len(given) == 1, "an ablation changes one part, in one field"


def test_variants_that_differ_only_in_retrieval_or_prompt_share_one_memory() -> None:
    keys = {name: cell(name).keys(0) for name in VARIANTS}
    assert len({keys[name].prepare for name in GLEANS}) == 1
    assert len({keys[name].prepare for name in VARIANTS if name not in GLEANS}) == 1
    assert len({key.prepare for key in keys.values()}) == 2
    assert len({key.answer for key in keys.values()}) == len(VARIANTS)


Sent = tuple[list[ExtractPrompt], list[AnswerPrompt]]


@cache
def sent(name: str) -> Sent:
    """The prompts that a variant sends for the first conversation of the demo set.

    First those of the ingest, then those of the answers.
    """
    case = next(iter(dataset_of("demo", ROOT / "data").cases()))
    model, resolved = ScriptedModel(), cell(name)

    async def play() -> None:
        templates = Templates(load_builtin(f"answer_{resolved.style}"))
        reader = CellReader(model, templates, resolved.style, 0)
        parts = SystemContext(
            reader,
            model,
            CharTfidfEmbedder(),
            10,
            0,
            "case",
            lambda awaitable: pytest.fail("nothing is called in a thread"),
        )
        assert isinstance(resolved.source, SystemSource)
        system = resolved.source.system_class(resolved.source.settings, parts)
        units = chunks(case, GranularityConfig("turn"))
        await ingest(Watched(system), units, [len(units) // 2], 5)
        for question in case.questions:
            await system.answer(Query(question.text, question.asked_at))

    asyncio.run(play())
    prompts = [prompt for _, prompt in model.prompts]
    return [p for p in prompts if isinstance(p, ExtractPrompt)], [
        p for p in prompts if isinstance(p, AnswerPrompt)
    ]


def contexts(name: str) -> list[tuple[str, ...]]:
    return [prompt.context for prompt in sent(name)[1]]


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("name", [name for name in GLEANS if name != "cogcanvas"])
def test_variants_that_glean_send_the_same_prompts_at_ingest(name: str) -> None:
    assert sent(name)[0] == sent("cogcanvas")[0]


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in GLEANS])
def test_variants_without_gleaning_send_only_the_first_pass(name: str) -> None:
    assert sent(name)[0] == [prompt for prompt in sent("cogcanvas")[0] if not prompt.quotes]
    assert 2 * len(sent(name)[0]) == len(sent("cogcanvas")[0])


@pytest.mark.parametrize(
    ("name", "other"), [("cogcanvas_nocot", "cogcanvas"), ("cogcanvas_cot", "cogcanvas_baseline")]
)
def test_prompt_switch_changes_only_the_wording(name: str, other: str) -> None:
    assert contexts(name) == contexts(other)
    for one, two in zip(sent(name)[1], sent(other)[1], strict=True):
        assert {one.style, two.style} == {"cot", "short"}
        assert one.system_text != two.system_text
        assert one.question == two.question


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("cogcanvas_nograph", "cogcanvas"),
        ("cogcanvas_nohybrid", "cogcanvas"),
        ("cogcanvas_norerank", "cogcanvas"),
        ("cogcanvas_notemporal", "cogcanvas"),
        ("cogcanvas_hybrid", "cogcanvas_baseline"),
        ("cogcanvas_temporal", "cogcanvas_baseline"),
    ],
)
def test_retrieval_switch_changes_only_the_contexts(name: str, other: str) -> None:
    assert contexts(name) != contexts(other)
    for one, two in zip(sent(name)[1], sent(other)[1], strict=True):
        assert replace(one, context=()) == replace(two, context=())


def test_minimal_shows_fewer_artifacts_than_baseline() -> None:
    for minimal, baseline in zip(
        contexts("cogcanvas_minimal"), contexts("cogcanvas_baseline"), strict=True
    ):
        assert len(baseline) > len(minimal) >= 10


def reply(body: Mapping[str, Any]) -> str:
    """In the first pass, one artifact per numbered turn, and none in the second.

    For a question, three words.
    """
    words = str(body["messages"][-1]["content"])
    if not extracts(body):
        return "in the harbour"
    if body["messages"][0]["content"] == load_builtin("glean").system:
        return "[]"
    turns = re.findall(r"(?m)^(\d+)\. (?:\[.*?\] )?\w+: (.*)$", words)
    return json.dumps(
        [
            {"type": "event", "content": quote, "quote": quote, "chunk": int(number)}
            for number, quote in turns
        ]
    )


def extracts(body: Mapping[str, Any]) -> bool:
    templates = (load_builtin(name) for name in ("extract", "glean"))
    return body["messages"][0]["content"] in [template.system for template in templates]


@pytest.mark.slow
def test_variants_on_the_command_line_extract_once_per_shared_memory(tmp_path: Path) -> None:
    with ScriptedEndpoint(reply) as endpoint:

        def run(*words: str) -> int:
            """Runs a command; returns the number of extraction calls so far."""
            reach = ("llm=openai", f"llm.base_url={endpoint.base_url}")
            model = (*reach, "judge=keyword", "tracking=none")
            small = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=2")
            kept = {
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("MEMEVAL_", "OPENAI_"))
            }
            done = run_command_line(
                [*words, *small, *model], env={**kept, "MEMEVAL_HOME": str(tmp_path)}
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return sum(extracts(body) for _, body in endpoint.requests)

        calls = run("-m", "system=cogcanvas,cogcanvas_nograph,cogcanvas_nocot")
        units = len(
            chunks(
                next(iter(dataset_of("demo", ROOT / "data").cases())),
                GranularityConfig("turn"),
            )
        )
        assert units / 10 * 2 <= calls <= units / 10 * 2 + 20, "two passes over batches of ten"
        shutil.rmtree(
            tmp_path / "data" / "cache"
        )  # so that a call is saved by the stored memory and not by the cache
        assert run("system=cogcanvas_norerank") == calls
        assert len(list((tmp_path / "data" / "prepared" / "demo").glob("cogcanvas-*"))) == 1
        assert run("system=cogcanvas_nogleaning") == calls * 3 // 2, (
            "another ingest: the first pass alone"
        )


def test_cot_and_short_templates_differ_only_in_the_thinking() -> None:
    cot, short = load_builtin("answer_cot"), load_builtin("answer_short")
    head, thinking, *rules = cot.system.split("\n\n")
    assert thinking.startswith("First think step by step")
    assert "\n\n".join([head, *rules]) == short.system
    assert f"{cot.user}\nAnswer:" == short.user
