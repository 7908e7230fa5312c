"""Chunks lost at ingest are requested once more, counted and reported; above a stated share, the
ingest fails instead of leaving an incomplete memory.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from doubles.loopback import Request, send
from lone_runs import run_cell

from memeval.llm.contract import ChatPrompt, Completion, Prompt
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import load_builtin
from memeval.pipeline.execute.prepare import prepare
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.open.opening import open_cell
from memeval.pipeline.verify.sound import verify_run
from memeval.records import IngestHealth, Role, Usage
from memeval.results import RunSummary
from memeval.runs.compose.config import compose_config
from memeval.runs.loop import run_loop
from memeval.systems.asking import ask_for

pytestmark = pytest.mark.usefixtures("home")

ASKED = 2
WORDS = [
    "dataset=demo",
    "dataset.limit_cases=1",
    f"dataset.limit_questions={ASKED}",
    "tracking=none",
    "llm=openai",
    "llm.model=scripted",
    "judge=keyword",
]
ANSWERS = (
    load_builtin("answer_short").user.partition("{")[0][:20]
    or load_builtin("answer_short").system[:40]
)
SOUND = {
    "cogcanvas_nocot": "[]",
    "mem0": '{"memory": [{"text": "Somebody said something."}]}',
    "working_memory": "# People\n- Names: somebody\n",
}
GARBAGE = [
    "I am sorry, I can't do that.",
    "<html><body>502</body></html>",
    "{",
    "null",
    '"text"',
    "[1, 2, 3]",
    '{"facts": "none"}',
]

Reply = Callable[[Mapping[str, Any]], str]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as served:
        yield served


def unlucky() -> Callable[[int, Mapping[str, Any]], str | None]:
    """Garbage for the first prompt, each time it is sent."""
    first: list[str] = []

    def reply(number: int, body: Mapping[str, Any]) -> str | None:
        first.append(str(body["messages"]))
        return "no list" if first[-1] == first[0] else None

    return reply


def is_answer(body: Mapping[str, Any]) -> bool:
    return any(ANSWERS in str(message["content"]) for message in body["messages"])


def replies(system: str, ingest: Callable[[int, Mapping[str, Any]], str | None]) -> Reply:
    """Replies to answer prompts soundly. The n-th call at ingest gets what `ingest` returns, or a
    sound reply if that is None.
    """
    count = iter(range(10_000))

    def reply(body: Mapping[str, Any]) -> str:
        if is_answer(body):
            return "7 May 2023"
        return ingest(next(count), body) or sound(system, body)

    return reply


def sound(system: str, body: Mapping[str, Any]) -> str:
    if system != "working_memory":
        return SOUND[system]
    names = [
        line
        for line in load_builtin("working_memory_template").user.splitlines()
        if line.startswith("- ")
    ]
    return "\n".join(f"{name} somebody" for name in names)


def played(
    endpoint: ScriptedEndpoint, system: str, *words: str
) -> tuple[RunSummary, list[dict[str, Any]]]:
    options = ["system.infer=true"] if system == "mem0" else []
    config = compose_config(
        [*WORDS, f"system={system}", f"llm.base_url={endpoint.base_url}", *options, *words]
    )
    cell = open_cell(config, "")
    summary = run_cell(cell)
    lines = (cell.folder / "records.jsonl").read_text(encoding="utf-8").splitlines()
    return summary, [json.loads(line) for line in lines]


def manifests(home: Path) -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text(encoding="utf-8"))
        for path in home.glob("data/prepared/*/*/*/memory.json")
    ]


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("system", SOUND)
def test_a_sound_ingest_has_lost_nothing(
    endpoint: ScriptedEndpoint, home: Path, system: str
) -> None:
    endpoint.reply = replies(system, lambda number, body: None)
    summary, rows = played(endpoint, system)
    assert {row["status"] for row in rows} == {"ok"}
    assert summary.metrics["ingest_lost"] == 0
    for manifest in manifests(home):
        assert manifest["health"]["lost"] == 0
        assert manifest["health"]["asked"] == manifest["health"]["stored"] == manifest["chunks"]


@pytest.mark.slow
@pytest.mark.parametrize("garbage", GARBAGE[:4])
@pytest.mark.parametrize("system", SOUND)
def test_single_garbage_reply_is_requested_again_and_loses_nothing(
    endpoint: ScriptedEndpoint, home: Path, system: str, garbage: str
) -> None:
    endpoint.reply = replies(system, lambda number, body: garbage if number == 1 else None)
    summary, rows = played(endpoint, system)
    assert {row["status"] for row in rows} == {"ok"}, rows[0].get("error")
    assert summary.metrics["ingest_lost"] == 0
    assert not any("lost" in note.text for note in summary.notes)


@pytest.mark.slow
@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("system", SOUND)
def test_constant_garbage_fails_the_case_until_the_model_is_sound(
    endpoint: ScriptedEndpoint, home: Path, system: str, garbage: str
) -> None:
    endpoint.reply = replies(system, lambda number, body: garbage)
    # This much garbage would stop the run.
    summary, rows = played(endpoint, system, "stop_after_failures=null")
    assert [row["status"] for row in rows] == ["ingest_failed"] * ASKED
    error = rows[0]["error"]
    assert "ingest lost " in error and "max_ingest_loss allows only 1.0 %" in error
    assert summary.metrics["coverage"] == 0 and not summary.valid
    assert summary.metrics["calls/ingest"], "its calls are counted, although nothing came of them"
    assert summary.metrics["tokens/total"]
    assert verify_run(home / "outputs" / "runs" / summary.run_key).problems == []
    assert not manifests(home), "what lost too much is not saved"

    endpoint.reply = replies(system, lambda number, body: None)
    summary, rows = played(endpoint, system)
    assert {row["status"] for row in rows} == {"ok"}, (
        "the same command asks again: no garbage is in the cache"
    )
    assert summary.metrics["ingest_lost"] == 0


def test_loss_within_the_limit_is_saved_with_its_health_and_noted(
    endpoint: ScriptedEndpoint, home: Path
) -> None:
    endpoint.reply = replies("cogcanvas_nocot", unlucky())
    limits = ("max_ingest_loss=0.5", "system.gleaning=false")
    summary, rows = played(endpoint, "cogcanvas_nocot", *limits)
    assert {row["status"] for row in rows} == {"ok"}
    assert 0 < summary.metrics["ingest_lost"] < 0.5
    (note,) = [note.text for note in summary.notes if note.text.startswith("ingest lost ")]
    assert "in 1 of 1 conversations" in note
    (manifest,) = manifests(home)
    assert manifest["health"]["lost"] > 0

    endpoint.reply = replies("cogcanvas_nocot", lambda number, body: None)
    again, _ = played(endpoint, "cogcanvas_nocot", *limits, f"dataset.limit_questions={ASKED + 1}")
    assert again.metrics["ingest_lost"] == summary.metrics["ingest_lost"], (
        "the memory is found, and its health with it"
    )
    strict, rows = played(endpoint, "cogcanvas_nocot", "system.gleaning=false")
    assert strict.metrics["ingest_lost"] == 0, "another limit rebuilds the memory"


class Poisoned(ScriptedEndpoint):
    """Refuses to embed texts that contain "poison", for a number of requests."""

    refusals = 0

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> bool:
        if request.target.endswith("/embeddings") and b"poison" in request.raw and self.refusals:
            self.refusals -= 1
            return await send(writer, 400, b'{"error": {"message": "this text is refused"}}')
        return await super().respond(request, writer)


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize(("refusals", "lost"), [(0, 0), (1, 0), (2, 0), (3, 1)])
def test_text_that_mem0_drops_is_added_once_more(home: Path, refusals: int, lost: int) -> None:
    """mem0 embeds a batch, then each text alone, then drops the text silently; the text is then
    added once more.
    """
    with Poisoned() as endpoint:
        endpoint.refusals = refusals
        facts = {3: '{"memory": [{"text": "a poison was named"}, {"text": "and a cure"}]}'}
        endpoint.reply = replies("mem0", lambda number, body: facts.get(number, '{"memory": []}'))
        words = (
            "embedder=openai",
            "embedder.model=scripted",
            f"embedder.base_url={endpoint.base_url}",
            "embedder.max_retries=0",
        )
        summary, rows = played(endpoint, "mem0", *words, "max_ingest_loss=0.5")
    assert {row["status"] for row in rows} == {"ok"}, rows[0].get("error")
    units = manifests(home)[0]["chunks"]
    assert summary.metrics["ingest_lost"] == pytest.approx(lost / units)
    memories = json.loads(
        next(home.glob("data/prepared/*/*/*/memories.json")).read_text(encoding="utf-8")
    )["memories"]
    texts = {row["payload"]["data"] for row in memories}
    assert ("a poison was named" in texts) is (lost == 0)
    assert "and a cure" in texts


def test_prepare_reports_lost_chunks(endpoint: ScriptedEndpoint, home: Path) -> None:
    endpoint.reply = replies("cogcanvas_nocot", unlucky())
    words = [
        *WORDS,
        "system=cogcanvas_nocot",
        f"llm.base_url={endpoint.base_url}",
        "max_ingest_loss=0.5",
    ]
    done = run_loop(prepare(open_cell(compose_config(words), ""), Progress()))
    assert done.counts["built"] == 1
    assert any("ingest lost" in note for note in done.notes)


class Repeating(LanguageModel):
    """Replies with one completion after another, and records the forgotten ones."""

    name = "repeating"

    def __init__(self, *completions: tuple[str, str | None], deterministic: bool = False) -> None:
        self.deterministic = deterministic
        self._left = list(completions)
        self.forgotten: list[str] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        text, reason = self._left.pop(0)
        return Completion(text, Usage(role, self.name, "offline", 1, 1), 0.0, finish_reason=reason)

    def forget(self, completion: Completion) -> None:
        self.forgotten.append(completion.text)


@pytest.mark.parametrize(
    ("said", "deterministic", "found", "forgotten"),
    [
        (["fine"], False, "fine", []),
        (["bad", "fine"], False, "fine", ["bad"]),
        (["bad", "bad", "fine"], False, None, ["bad", "bad"]),
        (["bad", "fine"], True, None, ["bad"]),
    ],
)
def test_useless_reply_is_requested_once_more_unless_deterministic(
    said: list[str], deterministic: bool, found: str | None, forgotten: list[str]
) -> None:
    model = Repeating(*((text, None) for text in said), deterministic=deterministic)
    read = lambda completion: completion.text if completion.text == "fine" else None  # noqa: E731
    assert asyncio.run(ask_for(model, ChatPrompt(()), seed=0, read=read)) == found
    assert model.forgotten == forgotten


@pytest.mark.parametrize(
    ("asked_for", "lost", "message"),
    [
        (419, 3, "ingest lost 3 of 419 chunks (0.7 %)"),
        (0, 0, "ingest lost 0 of 0 chunks (0.0 %)"),
        (1200, 1200, "ingest lost 1,200 of 1,200 chunks (100.0 %)"),
    ],
)
def test_summary_of_ingest_health(asked_for: int, lost: int, message: str) -> None:
    assert IngestHealth(asked_for, asked_for - lost, lost).summary == message
