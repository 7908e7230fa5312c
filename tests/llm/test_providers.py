"""The providers that are options of llm: each has its own URL and key."""

from __future__ import annotations

import pytest

from memeval.config.schema import RunConfig
from memeval.llm.network import endpoint_settings
from memeval.pipeline.open.models import sampling_of
from memeval.results.prices import UNKNOWN_PROVIDER, provider_of
from memeval.runs.compose.config import compose_config

PROVIDERS = {
    "anthropic": ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
    "openrouter": ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "groq": ("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": ("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "bedrock": (
        "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1",
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
}
"""URL and environment variable of the key, by option."""
WITHOUT_SEED = ("anthropic", "gemini", "mistral", "bedrock")


def config_of(*words: str) -> RunConfig:
    return compose_config(words)


@pytest.mark.slow
@pytest.mark.parametrize("option", PROVIDERS)
def test_provider_has_its_own_url_key_and_seed_setting(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, variable = PROVIDERS[option]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-openai")
    monkeypatch.setenv(variable, f"the-key-of-{option}")

    llm = config_of(f"llm={option}").llm
    settings = endpoint_settings(llm, "llm")

    assert (settings.base_url, settings.api_key) == (address, f"the-key-of-{option}")
    assert sampling_of(llm, "llm").settings.send_seed is (option not in WITHOUT_SEED)
    assert provider_of(address) != UNKNOWN_PROVIDER


@pytest.mark.parametrize(
    ("option", "address"),
    [("ollama", "http://localhost:11434/v1"), ("vllm", "http://localhost:8000/v1")],
)
def test_local_server_needs_no_key(
    option: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    settings = endpoint_settings(config_of(f"llm={option}").llm, "llm")

    assert settings.base_url == address


def test_azure_deployment_has_its_url_and_api_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-key-of-azure")
    words = ["llm=azure", "llm.base_url=https://mine.openai.azure.com", "llm.model=my-deployment"]

    llm = config_of(*words).llm
    settings = endpoint_settings(llm, "llm")

    assert settings.base_url == "https://mine.openai.azure.com"
    assert settings.api_version == "2024-10-21"
    assert sampling_of(llm, "llm").settings.model == "my-deployment"


def test_judge_of_a_thinking_provider_gets_the_same_token_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "the-key-of-gemini")

    config = config_of("llm=gemini", "judge=llm")

    # The model thinks before its verdict, and its thinking counts as output.
    assert config.llm.judge.max_tokens == config.llm.max_tokens == 4096
