"""The steps of a model with tools, as a row stores them."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from memeval.records import Count


class StepCall(Struct, frozen=True, omit_defaults=True):
    name: str
    arguments: str
    """Reference to the arguments as the model wrote them, see `memeval.results.texts`."""
    result: str
    """Reference to the result as the model saw it."""
    tokens: Count
    """Tokens of the result, counted offline."""
    fault: str | None = None
    """Fault of the call, or `tool_failed`; None if it has a result."""
    turn_ids: tuple[str, ...] | None = None
    """The turns that the result shows: those that the tool names, else those that the result
    quotes. For a writer's call, those that its arguments quote. None without a result.
    """
    cut: bool = False
    """Whether the result was longer than the model was shown."""


class AgentStep(Struct, frozen=True, omit_defaults=True):
    """One reply of the model and the calls that it made."""

    text: str | None = None
    """Reference to its text outside of calls; None without text."""
    finish_reason: str | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    faults: tuple[str, ...] = ()
    """Faults of the reply itself."""
    calls: tuple[StepCall, ...] = ()


def by_reference(steps: Sequence[AgentStep], put: Callable[[str], str]) -> tuple[AgentStep, ...]:
    """Steps with references for their texts; `put` stores a text and returns its reference."""
    stored = []
    for step in steps:
        text = None if step.text is None else put(step.text)
        calls = []
        for call in step.calls:
            arguments, result = put(call.arguments), put(call.result)
            calls.append(replace(call, arguments=arguments, result=result))

        stored.append(replace(step, text=text, calls=tuple(calls)))

    return tuple(stored)


def model_texts(steps: Sequence[AgentStep]) -> Iterator[str]:
    """References to the model's texts and the arguments of its calls."""
    for step in steps:
        if step.text is not None:
            yield step.text

        yield from (call.arguments for call in step.calls)


def tool_texts(steps: Sequence[AgentStep]) -> Iterator[str]:
    """References to the results of its calls."""
    for step in steps:
        for call in step.calls:
            yield call.result
