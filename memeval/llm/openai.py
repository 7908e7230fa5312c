"""A model behind an OpenAI-compatible endpoint, with the response cache in front of it."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from memeval.config.schema import LlmConfig
from memeval.errors import ModelError, UserError
from memeval.llm.cache import content_key
from memeval.llm.cache_contract import ReplyCache
from memeval.llm.cached_call import CachedCalls
from memeval.llm.contract import (
    ChatPrompt,
    ChoosePrompt,
    Completion,
    FixedSampling,
    Prompt,
    ToolCall,
    ToolPrompt,
)
from memeval.llm.endpoint import Endpoint, EndpointReply
from memeval.llm.metering import current_ledger, with_request
from memeval.llm.model import LanguageModel
from memeval.llm.refusals import RefusedRequestError
from memeval.llm.reply.body import CutReplyError, FilteredReplyError
from memeval.llm.reply.chat import ChatReply, read_chat
from memeval.llm.reply.stored import stored_chat
from memeval.records import Role, Usage
from memeval.results.prices import provider_of
from memeval.text.redaction import without_known
from memeval.text.shown import one_line

# OpenAI's thinking models: they take `max_completion_tokens`, and no temperature.
_REASONING = re.compile(r"^(o\d|gpt-5)")
THINKING_TOKENS = 4096
"""Extra tokens for a model whose thinking counts against the limit."""


class Sampling(Struct, frozen=True):
    """The parameters of every request to a model."""

    settings: LlmConfig
    """The settings of the model's role."""
    role: str = "llm"
    """Path of these settings, for the hint after a refusal."""

    def parameters(
        self, provider: str, limits: FixedSampling, *, limit_factor: int = 1
    ) -> dict[str, Any]:
        """The parameters of a request, without the model, the seed and `extra_body`."""
        settings = self.settings
        reasons = provider == "openai" and _REASONING.match(settings.model or "") is not None
        parameter = settings.limit_parameter
        if parameter is None:
            parameter = "max_completion_tokens" if reasons else "max_tokens"

        limit = limits.max_tokens or settings.max_tokens
        if parameter == "max_completion_tokens":
            # Thinking counts against this limit: a protocol's ten tokens would leave no reply.
            limit = max(limit, settings.max_tokens) + THINKING_TOKENS

        parameters: dict[str, Any] = {parameter: limit * limit_factor}
        if settings.temperature is not None and not reasons:
            fixed = limits.temperature
            parameters["temperature"] = settings.temperature if fixed is None else fixed
        if settings.reasoning_effort is not None:
            parameters["reasoning_effort"] = settings.reasoning_effort

        return parameters


class OpenAIModel(LanguageModel):
    """Completes prompts at an endpoint or from cache (model, wording, sampling, seed, scope)."""

    def __init__(
        self, endpoint: Endpoint, sampling: Sampling, cache: ReplyCache, origin: str
    ) -> None:
        """`origin` names the run; replies that it paid for before a crash are billed to it."""
        self.name = str(sampling.settings.model)
        self._endpoint, self._sampling = endpoint, sampling
        self._provider = provider_of(endpoint.settings.base_url)
        self._calls = CachedCalls(cache, origin, endpoint.lose_store)

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        ledger = current_ledger()
        body = self._body(prompt, seed)
        key = content_key(
            {
                "endpoint": self._endpoint.settings.base_url,
                "seed": seed,
                "scope": ledger.scope,
                **body,
            }
        )
        # A filtered reply is not kept: it is requested again.
        entry, cached = await self._calls.once(
            key,
            read=stored_chat,
            call=lambda: self._ask(body, role, prompt),
            is_kept=lambda entry: bool(entry["finish_reason"] != "content_filter"),
        )
        requested = str(body["model"])
        ledger.note_model(role, requested, entry.get("model"))
        usage = self._usage(entry["usage"], role, cached=cached)
        # Each question has its own requests; memories may share them.
        if not ledger.scope:
            usage = with_request(usage, key)

        return Completion(
            text=entry["text"],
            usage=usage,
            latency_s=entry["latency_s"],
            finish_reason=entry["finish_reason"],
            raw=entry["raw"],
            notes=tuple(entry["notes"]),
            key=key,
            tool_calls=tuple(ToolCall(*call) for call in entry.get("tool_calls", ())),
        )

    def _body(self, prompt: Prompt, seed: int) -> dict[str, Any]:
        sampling = self._sampling
        body: dict[str, Any] = {
            "model": self.name,
            "messages": list(map(dict, prompt.messages())),
            **sampling.parameters(
                self._provider, prompt.limits(), limit_factor=prompt.limit_factor
            ),
        }
        if sampling.settings.send_seed:
            body["seed"] = seed
        if isinstance(prompt, ChatPrompt):
            body |= prompt.options
        elif isinstance(prompt, ToolPrompt):
            body |= prompt.options()

        # Last, so that the user's own parameters take precedence.
        return body | (sampling.settings.extra_body or {})

    def _usage(self, counts: Mapping[str, Any], role: Role, *, cached: bool) -> Usage:
        return Usage(role=role, model=self.name, provider=self._provider, cached=cached, **counts)

    async def _ask(self, body: Mapping[str, Any], role: Role, prompt: Prompt) -> dict[str, Any]:
        has_tools = "tools" in body
        try:
            reply = await self._endpoint.post(
                "/chat/completions",
                body,
                lambda sent: read_chat(sent, body["messages"], tools=has_tools),
                explain=self._with_hint,
            )
        except RefusedRequestError as error:
            # Once there are tool results, a refusal may be about a single call.
            is_first = all(message["role"] != "tool" for message in body["messages"])
            if has_tools and is_first and error.is_about_tools:
                raise self._without_tools(error, role) from error

            raise self._with_hint(error) from error
        except (CutReplyError, FilteredReplyError) as error:
            if error.usage is not None:
                current_ledger().usages.append(self._usage(error.usage, role, cached=False))
            if isinstance(error, CutReplyError):
                raise CutReplyError(f"{error}; see {self._limit_of(prompt)}") from error

            raise

        return _entry_of(reply, requested=str(body["model"]), has_tools=has_tools)

    def _with_hint(self, error: RefusedRequestError) -> ModelError:
        return error.with_hint(self._sampling.role, self._sampling.settings.extra_body or ())

    def _without_tools(self, error: RefusedRequestError, role: Role) -> UserError:
        alternative = "writer=chunks" if role is Role.INGEST else "reader=direct"
        return UserError(
            f"{self.name} does not accept tools; use {alternative}",
            f"the endpoint's error:  {one_line(error)}",
        )

    def _limit_of(self, prompt: Prompt) -> str:
        """The setting that gives the reply to a prompt more tokens."""
        if isinstance(prompt, ChoosePrompt):
            return "prompt.choose_tokens"
        if prompt.limits().max_tokens is not None:
            return f"{self._sampling.role}.limit_parameter=max_completion_tokens"

        return f"{self._sampling.role}.max_tokens"

    def forget(self, completion: Completion) -> None:
        if completion.key:
            self._calls.forget(completion.key)


def _entry_of(
    reply: EndpointReply[ChatReply], *, requested: str, has_tools: bool
) -> dict[str, Any]:
    """The entry for the cache, whose file people share: a model may repeat a key that it saw."""
    chat = reply.value
    entry: dict[str, Any] = {}
    if has_tools:
        entry["tool_calls"] = [
            [call.call_id, call.name, without_known(call.arguments)] for call in chat.tool_calls
        ]

    return entry | {
        "model": without_known(chat.model) or requested,
        "text": without_known(chat.text),
        "raw": None if chat.raw is None else without_known(chat.raw),
        "finish_reason": chat.finish_reason,
        "notes": list(chat.notes),
        "usage": dict(chat.usage),
        "latency_s": reply.latency_s,
        "wait_s": reply.wait_s,
    }
