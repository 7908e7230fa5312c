"""Roles of models: what each inherits from the answering model, and which settings are refused."""

from __future__ import annotations

from typing import Any

import pytest
from omegaconf import OmegaConf

from memeval.config.resolve import resolve
from memeval.config.roles import INGEST, JUDGE, settings_of_role
from memeval.config.schema import LlmConfig, RunConfig
from memeval.errors import UserError
from memeval.results.hosts import host_digest
from memeval.runs.compose.config import compose_config

LOCAL = "http://localhost:1/v1"
REMOTE = "https://judge.example/v1"


def resolved(**llm: Any) -> RunConfig:
    values = {"name": "openai", "model": "answers", "base_url": LOCAL, **llm}
    return resolve(
        OmegaConf.create({"dataset": {"name": "demo"}, "system": {"name": "bm25"}, "llm": values})
    )


def refusal(**llm: Any) -> tuple[str, ...]:
    with pytest.raises(UserError) as caught:
        resolved(**llm)

    return caught.value.message, *caught.value.hints


def test_role_without_settings_inherits_all_but_max_tokens() -> None:
    llm = resolved(max_concurrency=3, timeout_s=5.0, extra_body={"top_p": 0.9}).llm
    ingest, judge = settings_of_role(llm, INGEST), settings_of_role(llm, JUDGE)
    for own in (ingest, judge):
        assert (own.model, own.base_url, own.max_concurrency) == ("answers", LOCAL, 3)
        assert (own.timeout_s, own.extra_body, own.temperature) == (5.0, {"top_p": 0.9}, 0.0)

    assert (llm.max_tokens, ingest.max_tokens, judge.max_tokens) == (512, 2048, 256)


def test_temperature_is_inherited_by_ingest_and_not_by_the_judge() -> None:
    llm = resolved(temperature=0.7).llm
    assert settings_of_role(llm, INGEST).temperature == 0.7
    assert settings_of_role(llm, JUDGE).temperature == 0.0


def test_max_tokens_null_inherits_that_of_the_answers() -> None:
    llm = resolved(judge={"max_tokens": None}).llm
    assert settings_of_role(llm, JUDGE).max_tokens == 512


def test_judge_beside_the_offline_reader_gets_the_key_of_the_default_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    llm = resolved(name="extractive", base_url=None, judge={"model": "judge"}).llm
    judge = settings_of_role(llm, JUDGE)
    assert judge.base_url == "https://api.openai.com/v1"
    assert judge.api_key_env == "OPENAI_API_KEY"

    with pytest.raises(UserError, match="llm's key is not sent there"):
        resolved(name="extractive", base_url=None, judge={"model": "judge", "base_url": REMOTE})


@pytest.mark.parametrize("own", [{"model": "other"}, {"base_url": "http://localhost:2/v1"}])
def test_parameters_of_a_model_are_not_sent_to_another(own: dict[str, Any]) -> None:
    llm = resolved(
        reasoning_effort="high",
        extra_body={"top_p": 0.9},
        limit_parameter="max_completion_tokens",
        judge=own,
    ).llm
    judge, ingest = settings_of_role(llm, JUDGE), settings_of_role(llm, INGEST)
    assert (judge.reasoning_effort, judge.extra_body, judge.limit_parameter) == (None, None, None)
    assert (ingest.reasoning_effort, ingest.extra_body) == ("high", {"top_p": 0.9})


def test_headers_are_not_sent_to_another_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "a-gateways-key")
    own = {"base_url": REMOTE, "api_key_env": "JUDGE_KEY"}
    llm = resolved(headers={"api-key": "GATEWAY_KEY"}, judge=own).llm
    assert settings_of_role(llm, INGEST).headers == {"api-key": "GATEWAY_KEY"}
    assert settings_of_role(llm, JUDGE).headers is None


def test_azure_api_version_is_not_sent_to_another_url() -> None:
    own = {"base_url": REMOTE, "api_key_env": "JUDGE_KEY"}
    config = shared(llm={"api_version": "2024-10-21", "judge": own})
    assert settings_of_role(config.llm, INGEST).api_version == "2024-10-21"
    assert settings_of_role(config.llm, JUDGE).api_version is None
    assert config.embedder.api_version == "2024-10-21"
    assert shared(llm={"api_version": "1"}, embedder=own).embedder.api_version is None


@pytest.mark.parametrize(
    "address", ["https://api.openai.com/v1", "https://x.openai.azure.com/openai/v1"]
)
@pytest.mark.parametrize("role", ["llm", "embedder"])
def test_azure_api_version_needs_the_url_of_a_resource(role: str, address: str) -> None:
    with pytest.raises(UserError) as caught:
        shared(**{role: {"api_version": "2024-10-21", "base_url": address}})

    assert f"{role}.api_version is for Azure, but {address} is not" in caught.value.message
    assert f"{role}.base_url=https://NAME.openai.azure.com" in caught.value.hints[0]


@pytest.mark.parametrize("host", ["localhost:8000", host_digest("localhost:8000")])
def test_local_server_needs_no_key_even_as_a_digest(host: str) -> None:
    judge = settings_of_role(resolved(judge={"base_url": f"http://{host}/v1"}).llm, JUDGE)
    assert judge.api_key_env == ""


def test_key_of_the_answering_model_is_not_sent_to_another_url() -> None:
    message, hint = refusal(judge={"base_url": REMOTE})
    assert message.startswith("llm.judge.base_url differs from llm.base_url")
    assert "llm.judge.api_key_env=MY_KEY" in hint
    resolved(judge={"base_url": REMOTE, "api_key_env": "JUDGE_KEY"})
    resolved(judge={"base_url": "http://127.0.0.1:9/v1"})


def test_two_limits_for_one_url_and_key_are_refused() -> None:
    message, hint = refusal(max_concurrency=8, judge={"max_concurrency": 4})
    assert message == (
        "llm.max_concurrency=8 and llm.judge.max_concurrency=4 set two limits for the same URL "
        "and key"
    )
    assert hint == "use:  only llm.max_concurrency=8, or another key for llm.judge"
    resolved(max_concurrency=8, judge={"max_concurrency": 8})
    resolved(max_concurrency=8, judge={"max_concurrency": 4, "api_key_env": "JUDGE_KEY"})
    resolved(max_concurrency=8, judge={"max_concurrency": 4, "base_url": "http://localhost:2"})
    resolved(max_concurrency=8, judge={"max_concurrency": 4, "headers": {"X-Team": "TEAM"}})


def test_two_roles_at_another_url_must_share_its_limit() -> None:
    other = {"base_url": REMOTE, "api_key_env": "OTHER_KEY"}
    message, _ = refusal(
        ingest={**other, "max_concurrency": 2}, judge={**other, "max_concurrency": 4}
    )
    assert message.startswith("llm.ingest.max_concurrency=2 and llm.judge.max_concurrency=4")


def shared(**groups: Any) -> RunConfig:
    """A config whose model, embedder and reranker share one URL and key."""
    reach = {"base_url": LOCAL, "api_key_env": "MY_KEY"}
    values: dict[str, Any] = {"llm": {"model": "answers"}, "embedder": {"model": "vectors"}}
    for group, own in {**values, "reranker": {}, **groups}.items():
        name = "endpoint" if group == "reranker" else "openai"
        values[group] = {"name": name, **reach, **values.get(group, {}), **own}

    settings = {"dataset": {"name": "demo"}, "system": {"name": "bm25"}, **values}
    return resolve(OmegaConf.create(settings))


def test_embedder_and_reranker_have_the_limit_of_their_address() -> None:
    config = shared(llm={"max_concurrency": 3})
    assert (config.embedder.max_concurrency, config.reranker.max_concurrency) == (3, 3)

    other = {"api_key_env": "OTHER_KEY"}
    config = shared(embedder=other, reranker={"base_url": REMOTE})
    assert (config.embedder.max_concurrency, config.reranker.max_concurrency) == (8, 16)

    config = shared(embedder={**other, "max_concurrency": 5}, reranker=other)
    assert (config.llm.max_concurrency, config.reranker.max_concurrency) == (16, 5)


@pytest.mark.parametrize("role", ["embedder", "reranker"])
def test_embedder_and_reranker_cannot_differ_from_the_models_limit(role: str) -> None:
    with pytest.raises(UserError) as caught:
        shared(**{role: {"max_concurrency": 4}})

    assert caught.value.message == (
        f"llm.max_concurrency=16 and {role}.max_concurrency=4 set two limits for the same URL "
        f"and key"
    )
    shared(**{role: {"max_concurrency": 16}})
    shared(**{role: {"max_concurrency": 4, "api_key_env": "OTHER_KEY"}})


def test_embedder_and_reranker_cannot_differ_in_their_limit() -> None:
    other = {"api_key_env": "OTHER_KEY"}
    with pytest.raises(UserError, match=r"embedder\.max_concurrency=2 and "):
        shared(embedder={**other, "max_concurrency": 2}, reranker={**other, "max_concurrency": 4})


@pytest.mark.parametrize(
    ("llm", "message"),
    [
        ({"judge": {"max_tokens": 0}}, "llm.judge.max_tokens must be at least 1, not 0"),
        ({"ingest": {"temperature": -1}}, "llm.ingest.temperature must be at least 0, not -1"),
        (
            {"ingest": {"timeout_s": 0}},
            "llm.ingest.timeout_s must be above 0, not 0",
        ),
        (
            {"judge": {"max_concurrency": 10**6}},
            "llm.judge.max_concurrency must be at most 1,000, not 1,000,000",
        ),
        (
            {"judge": {"modell": "x"}},
            "unknown field or group 'llm.judge.modell'. Did you mean: llm.judge.model, "
            "llm.ingest.model, llm.judge.headers?",
        ),
        (
            {"jugde": {"model": "x"}},
            "unknown field or group 'llm.jugde'. Did you mean: llm.judge, "
            "llm.judge.model, llm.judge.headers?",
        ),
        (
            {"ingest": {"limit_parameter": "max_token"}},
            "unknown llm.ingest.limit_parameter 'max_token'. Did you mean: max_tokens, "
            "max_completion_tokens? Available: max_completion_tokens, max_tokens",
        ),
        (
            {"judge": {"extra_body": {"model": "x"}}},
            "llm.judge.extra_body must not contain 'model', which memeval sets itself",
        ),
        (
            {"extra_body": {"max_completion_tokens": 7}},
            "llm.extra_body must not contain 'max_completion_tokens', which memeval sets itself",
        ),
        (
            {"extra_body": {"tool_choice": "required"}},
            "llm.extra_body must not contain 'tool_choice', which memeval sets itself",
        ),
    ],
)
def test_a_refusal_names_the_role(llm: dict[str, Any], message: str) -> None:
    assert refusal(**llm)[0] == message


def test_role_settings_are_read_from_the_command_line() -> None:
    llm = compose_config(
        [
            "llm=openai",
            "llm.ingest.model=cheap",
            "llm.ingest.extra_body={top_p: 0.9, stop: [x]}",
            "llm.judge.base_url=http://localhost:7/v1/",
        ]
    ).llm
    assert isinstance(llm, LlmConfig)
    assert llm.ingest.extra_body == {"top_p": 0.9, "stop": ["x"]}
    assert settings_of_role(llm, JUDGE).base_url == "http://localhost:7/v1"
