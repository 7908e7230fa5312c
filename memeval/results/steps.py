"""The steps of an answer under `reader=tools`, as a row keeps them."""

from __future__ import annotations

from msgspec import Struct

from memeval.records import Count


class StepCall(Struct, frozen=True, omit_defaults=True):
    """One call of a tool and its result."""

    name: str
    arguments: str
    """Reference of the arguments as the model wrote them, see `memeval.results.texts`."""
    result: str
    """Reference of the result as the model saw it."""
    tokens: Count
    """Of the result, counted offline."""
    fault: str | None = None
    """Fault of the call, or `tool_failed`; None if it has a result."""
    turn_ids: tuple[str, ...] | None = None
    """The turns that the result shows, as the tool says, else those that it quotes; None without a
    result.
    """
    cut: bool = False
    """Whether the result was longer than the model was shown."""


class AgentStep(Struct, frozen=True, omit_defaults=True):
    """One reply of the model and the calls that it made."""

    text: str | None = None
    """Reference of its text besides calls; None without text."""
    finish_reason: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    faults: tuple[str, ...] = ()
    """Faults of the reply itself."""
    calls: tuple[StepCall, ...] = ()
