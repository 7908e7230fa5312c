"""The providers that are options: each reaches its own address with its own key."""

from __future__ import annotations

import pytest

from memeval.config.schema import RunConfig
from memeval.pipeline.open.models import endpoint_settings, sampling_of
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
"""Address and variable of the key, by option."""
WITHOUT_SEED = ("anthropic", "gemini", "mistral", "bedrock")


def config_of(*words: str) -> RunConfig:
    return compose_config(words)


@pytest.mark.slow
@pytest.mark.parametrize("option", PROVIDERS)
def test_a_provider_is_called_at_its_address_with_its_key(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, variable = PROVIDERS[option]
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-openai")
    monkeypatch.setenv(variable, f"the-key-of-{option}")

    llm = config_of(f"llm={option}").llm
    settings = endpoint_settings(llm, "llm")

    assert (settings.base_url, settings.api_key) == (address, f"the-key-of-{option}")
    assert sampling_of(llm, "llm").send_seed is (option not in WITHOUT_SEED)
    assert provider_of(address) != UNKNOWN_PROVIDER


@pytest.mark.parametrize(
    ("option", "address"),
    [("ollama", "http://localhost:11434/v1"), ("vllm", "http://localhost:8000/v1")],
)
def test_a_server_on_this_machine_needs_no_key(
    option: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    settings = endpoint_settings(config_of(f"llm={option}").llm, "llm")

    assert settings.base_url == address


def test_a_deployment_of_azure_is_called_at_its_resource(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "the-key-of-azure")
    words = ["llm=azure", "llm.base_url=https://mine.openai.azure.com", "llm.model=my-deployment"]

    llm = config_of(*words).llm
    settings = endpoint_settings(llm, "llm")

    assert settings.base_url == "https://mine.openai.azure.com"
    assert settings.api_version == "2024-10-21"
    assert sampling_of(llm, "llm").model == "my-deployment"


def test_the_model_that_judges_is_the_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "the-key-of-gemini")

    config = config_of("llm=gemini", "judge=llm")

    # It thinks before its verdict, and its thinking counts.
    assert config.llm.judge.max_tokens == config.llm.max_tokens == 4096
