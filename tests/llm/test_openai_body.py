"""The parameters sent with a prompt: limits, and settings of the role."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint

from memeval.config.schema import LlmConfig
from memeval.llm.cache import Cache
from memeval.llm.contract import AnswerPrompt, ChoosePrompt, JudgePrompt, Prompt
from memeval.llm.endpoint import Endpoint, EndpointSettings
from memeval.llm.metering import Ledger, metered
from memeval.llm.openai import THINKING_TOKENS, OpenAIModel, Sampling
from memeval.llm.reply.body import CutReplyError, FilteredReplyError
from memeval.records import Role, Usage

ANSWER = AnswerPrompt("Who?", ("context",))
CHOICE = ChoosePrompt("Which?", ("context",), ("a", "b"))
JUDGEMENT = JudgePrompt("Who?", ("gold",), "answer", max_tokens=10, user_template="{answer}")


async def complete(
    server: ScriptedEndpoint, folder: Path, prompt: Prompt, sampling: Sampling
) -> None:
    endpoint = Endpoint(EndpointSettings(server.base_url, "key", 1, 5.0, 5.0))
    with closing(Cache(folder / "responses.sqlite")) as cache:
        model = OpenAIModel(endpoint, sampling, cache, "run")
        try:
            await model.complete(prompt, role=Role.ANSWER, seed=3)
        finally:
            await endpoint.aclose()


def sent(tmp_path: Path, prompt: Prompt, monkeypatch: Any, **more: Any) -> dict[str, Any]:
    """Parameters of the request, without its messages."""
    values = {"model": "m", "temperature": 0.5, "max_tokens": 100, **more}
    host = values.pop("provider", "unknown")
    monkeypatch.setattr("memeval.llm.openai.provider_of", lambda address: host)

    with ScriptedEndpoint() as server:
        asyncio.run(complete(server, tmp_path, prompt, Sampling(LlmConfig(**values))))

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


@pytest.mark.parametrize(
    ("prompt", "finish", "error", "words"),
    [
        (ANSWER, "length", CutReplyError, "see llm.max_tokens"),
        (CHOICE, "length", CutReplyError, "see prompt.choose_tokens"),
        (JUDGEMENT, "length", CutReplyError, "llm.limit_parameter=max_completion_tokens"),
        (ANSWER, "content_filter", FilteredReplyError, "filter withheld"),
    ],
)
def test_reply_without_text_is_metered_and_names_its_limit(
    tmp_path: Path, prompt: Prompt, finish: str, error: type[Exception], words: str
) -> None:
    def edit(payload: dict[str, Any]) -> None:
        payload["choices"][0] = {"message": {"content": None}, "finish_reason": finish}
        payload["usage"] = {"prompt_tokens": 30, "completion_tokens": 100}

    ledger = Ledger()
    with (
        ScriptedEndpoint(edit=edit) as server,
        metered(ledger),
        pytest.raises(error, match=re.escape(words)),
    ):
        asyncio.run(
            complete(
                server,
                tmp_path,
                prompt,
                Sampling(LlmConfig(model="m", temperature=0.5, max_tokens=100)),
            )
        )

    assert ledger.usages == [Usage(Role.ANSWER, "m", "unknown", 30, 100)]


def test_model_named_by_a_reply_is_noted_also_from_the_cache(tmp_path: Path) -> None:
    def edit(payload: dict[str, Any]) -> None:
        payload["model"] = "other\x1b" if len(server.requests) > 1 else "m"

    ledgers = []
    with ScriptedEndpoint(edit=edit) as server:
        for question in ("Who?", "When?", "When?"):
            ledgers.append(Ledger())
            with metered(ledgers[-1]):
                prompt = AnswerPrompt(question, (), user_template="{question}")
                asyncio.run(complete(server, tmp_path, prompt, Sampling(LlmConfig(model="m"))))

        assert server.count() == 2

    note = {Role.ANSWER.models_note: ["other"]}
    assert [ledger.notes for ledger in ledgers] == [{}, note, note]


def test_model_of_a_reply_that_an_earlier_release_stored_is_unknown(tmp_path: Path) -> None:
    prompt = AnswerPrompt("Who?", (), user_template="{question}")
    sampling = Sampling(LlmConfig(model="m"))
    with ScriptedEndpoint(edit=lambda payload: payload.update(model="m-2")) as server:
        asyncio.run(complete(server, tmp_path, prompt, sampling))
        with closing(Cache(tmp_path / "responses.sqlite")) as cache:
            ((key, entry),) = cache.get_all(cache.keys()).items()
            value = json.loads(entry.value)
            assert value.pop("model") == "m-2"
            cache.delete(key)
            cache.put_all({key: json.dumps(value).encode()}, entry.origin)

        with metered(Ledger()) as ledger:
            asyncio.run(complete(server, tmp_path, prompt, sampling))

        assert server.count() == 1

    assert ledger.notes == {Role.ANSWER.models_note: []}
