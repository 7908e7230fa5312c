"""Hints for an endpoint that refuses a parameter of a request."""

import re
from collections.abc import Iterable

from memeval.config.schema import LIMIT_PARAMETERS
from memeval.errors import ModelError

_SETTINGS = {
    "max_completion_tokens": "{role}.limit_parameter=max_tokens (and see {role}.max_tokens)",
    "max_tokens": "{role}.limit_parameter=max_completion_tokens (and see {role}.max_tokens)",
    "temperature": "{role}.temperature=null",
    "seed": "{role}.send_seed=false",
    "reasoning_effort": "{role}.reasoning_effort=null",
    "model": "{role}.model=...",
    "dimensions": "{role}.width=null",
}
"""Hints that name the setting behind each request parameter."""
_SMALLER = {
    "llm": "a smaller context_tokens or top_k",
    "llm.ingest": "granularity=turn or, if the system has it, a smaller system.batch_tokens",
    "embedder": "a smaller embedder.batch_size",
}
"""Hints for a request that is too large for the server or for a proxy in front of it, by role."""
_TOO_LARGE = re.compile(
    r"too large|too long|exceed|at (?:least|most)\b|range|context length|less than|greater than",
    re.IGNORECASE,
)
"""Matches endpoints' messages about the value of a token limit; others refuse its name."""
_BATCH = re.compile(r"^(?!.*physical batch).*\bbatch", re.IGNORECASE)
"""Matches endpoints' messages for too many texts in a request; llama.cpp's physical batch is the
most tokens of one text.
"""
_NO_TOOLS = re.compile(
    r"\b(?:tools?|tool use|tool[_ -]call(?:s|ing)|tool[_ -]choice|function[_ -]call(?:s|ing)?)\b"
    r".{0,60}\b(?:not|n't|unsupported|requires|unknown|unrecognized|extra inputs?)\b"
    r"|\b(?:not|n't|unsupported|unknown|unrecognized|extra inputs?|no endpoints)\b"
    r".{0,60}\b(?:tools?|tool[_ -]choice|tool use|function[_ -]call(?:s|ing)?)\b",
    re.IGNORECASE,
)
"""Matches endpoints' messages for a model without tool support."""


def refuses_tools(message: str) -> bool:
    """Whether an endpoint's message refuses tools in general, and not just a mistake in a call."""
    return bool(_NO_TOOLS.search(message))


class RefusedRequestError(ModelError):
    """The endpoint refused the request itself: HTTP 400, 413 or 422, or 404 and 500 with messages
    that mean it too.
    """

    def __init__(self, message: str, parameter: str | None) -> None:
        """`parameter` is the one that the endpoint names as the cause; None if it names none."""
        super().__init__(message)
        self.parameter = parameter

    @property
    def is_about_tools(self) -> bool:
        """Whether the endpoint refuses tools in general, and not just a mistake in a call."""
        return self.parameter in ("tools", "tool_choice") or refuses_tools(str(self))

    def with_hint(self, role: str, extra: Iterable[str] = ()) -> ModelError:
        """The error with a hint at the parameter's setting; `role` is the path of the settings."""
        extra, name = set(extra), self.parameter
        if name is None:
            name = _first_name(str(self), extra | _SETTINGS.keys())
        message = str(self).removesuffix(".")
        if role == "embedder" and _BATCH.search(message):
            return ModelError(f"{message}; use a smaller embedder.batch_size")
        if name in extra:
            return ModelError(f"{message}; use {role}.extra_body without '{name}'")
        if name in LIMIT_PARAMETERS and _TOO_LARGE.search(message):
            return ModelError(f"{message}; use a smaller {role}.max_tokens, or a shorter context")

        setting = _SETTINGS.get(name or "")
        if setting is None and message.startswith("HTTP 413"):
            setting = _SMALLER.get(role)
        if setting is None:
            return ModelError(str(self))

        hint = setting.format(role=role)
        # A role whose temperature is null inherits the temperature of `llm`.
        if name == "temperature" and role != "llm":
            hint += " and llm.temperature=null"

        return ModelError(f"{message}; use {hint}")


def _first_name(message: str, known: set[str]) -> str | None:
    """The parameter that a message names first; `model` is an ordinary word in most of them."""
    names = known - {"model"}
    pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    match = re.search(rf"(?<!\w)(?:{pattern})(?!\w)", message)
    return match.group() if match else None
