"""Hints for the name of a model in place of an option: `llm=gpt-4o`."""

from __future__ import annotations

_PROVIDERS = {
    "gpt": "openai",
    "chatgpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude": "anthropic",
    "gemini": "gemini",
    "mistral": "mistral",
    "ministral": "mistral",
    "magistral": "mistral",
    "llama": "ollama",
    "qwen": "ollama",
    "gemma": "ollama",
    "phi": "ollama",
    "deepseek": "openrouter",
}
"""The option of the group `llm` that usually serves a model, by how the model's name begins."""


def model_hints(group: str, name: str) -> list[str]:
    """The words that choose the model `name` in a group, if it may be the name of one."""
    if group == "embedder":
        return [f"a model at an endpoint:  embedder=openai embedder.model={name}"]

    option = _provider_of(name)
    if option is None:
        return []
    if group == "llm":
        return [f"for that model:  llm={option} llm.model={name}"]
    if group == "judge":
        endpoint = "" if option == "openai" else f"llm={option} "
        return [f"for that model:  judge=llm {endpoint}llm.judge.model={name}"]

    return []


def _provider_of(name: str) -> str | None:
    lowered = name.lower()
    if "/" in lowered:
        return "openrouter"

    for beginning, option in _PROVIDERS.items():
        if lowered.startswith(beginning):
            return option

    return None
