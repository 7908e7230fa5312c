"""The parameters sent with a prompt: limits, and settings of the role."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.llm.cache import Cache
from memeval.llm.contract import AnswerPrompt, ChoosePrompt, JudgePrompt, Prompt
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.openai import THINKING_TOKENS, OpenAIModel, Sampling
from memeval.records import Role

ANSWER = AnswerPrompt("Who?", ("context",))
CHOICE = ChoosePrompt("Which?", ("context",), ("a", "b"))
JUDGEMENT = JudgePrompt("Who?", ("gold",), "answer", "", "{answer}", max_tokens=10)


def sent(tmp_path: Path, prompt: Prompt, monkeypatch: Any, **more: Any) -> dict[str, Any]:
    """Parameters of the request, without its messages."""
    values = {"model": "m", "temperature": 0.5, "max_tokens": 100, **more}
    host = values.pop("provider", "unknown")
    monkeypatch.setattr("memeval.llm.openai.provider_of", lambda address: host)

    async def run(server: ScriptedEndpoint) -> None:
        settings = EndpointSettings(server.base_url, "key", 1, 5.0, 5.0)
        cache = Cache(tmp_path / "responses.sqlite")
        endpoint = Endpoint(settings)
        model = OpenAIModel(endpoint, Sampling(**values), cache, "run")
        await model.complete(prompt, role=Role.ANSWER, seed=3)
        await endpoint.aclose()
        cache.close()

    with ScriptedEndpoint() as server:
        asyncio.run(run(server))

    body = server.requests[0][1]
    return {name: value for name, value in body.items() if name != "messages"}


PLAIN = {"model": "m", "temperature": 0.5, "max_tokens": 100, "seed": 3}


@pytest.mark.parametrize(
    ("prompt", "more", "expected"),
    [
        (ANSWER, {}, PLAIN),
        (CHOICE, {}, {**PLAIN, "temperature": 0.0, "max_tokens": 16}),
        (JUDGEMENT, {}, {**PLAIN, "max_tokens": 10}),
        (AnswerPrompt("Who?", (), limit_factor=2), {}, {**PLAIN, "max_tokens": 200}),
        (CHOICE, {"temperature": None}, {"model": "m", "max_tokens": 16, "seed": 3}),
        (ANSWER, {"send_seed": False, "temperature": None}, {"model": "m", "max_tokens": 100}),
        (
            ANSWER,
            {"reasoning_effort": "low", "extra_body": {"top_p": 0.9}},
            {**PLAIN, "reasoning_effort": "low", "top_p": 0.9},
        ),
        (
            JUDGEMENT,
            {"model": "o3-mini", "provider": "openai"},
            {"model": "o3-mini", "max_completion_tokens": 100 + THINKING_TOKENS, "seed": 3},
        ),
        (
            ANSWER,
            {"model": "o3-mini", "provider": "openai", "limit_parameter": "max_tokens"},
            {"model": "o3-mini", "max_tokens": 100, "seed": 3},
        ),
        (
            ANSWER,
            {"limit_parameter": "max_completion_tokens"},
            {
                "model": "m",
                "temperature": 0.5,
                "max_completion_tokens": 100 + THINKING_TOKENS,
                "seed": 3,
            },
        ),
    ],
)
def test_parameters_sent_for_a_prompt(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prompt: Prompt,
    more: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    assert sent(tmp_path, prompt, monkeypatch, **more) == expected
