"""The hint after a refused request names the setting that leads out."""

from __future__ import annotations

import json

import pytest

from memeval.llm.faults import FaultKind, status_setback
from memeval.llm.refusals import RefusedRequestError

SMALLER = "use a smaller llm.judge.max_tokens, or a shorter context"


@pytest.mark.parametrize(
    ("message", "parameter", "hint"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "max_tokens",
            "use llm.judge.limit_parameter=max_completion_tokens (and see llm.judge.max_tokens)",
        ),
        # vLLM, when the prompt and the reply don't fit together.
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 512. This model's maximum "
            "context length is 8192 tokens and your request has 8000 input tokens.",
            "max_tokens",
            SMALLER,
        ),
        ("max_tokens must be at least 1, got -12.", None, SMALLER),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", None, SMALLER),
        ("seed is not supported.", None, "use llm.judge.send_seed=false"),
    ],
)
def test_hint_after_a_refused_parameter(message: str, parameter: str | None, hint: str) -> None:
    error = RefusedRequestError(message, parameter).with_hint("llm.judge")
    assert str(error) == f"{message.removesuffix('.')}; {hint}"


@pytest.mark.parametrize(
    ("role", "hint"),
    [
        ("llm", "; use a smaller context_tokens or top_k"),
        (
            "llm.ingest",
            "; use granularity=turn or, if the system has it, a smaller system.batch_tokens",
        ),
        ("embedder", "; use a smaller embedder.batch_size"),
        ("llm.judge", ""),
    ],
)
def test_hint_after_a_request_that_a_proxy_found_too_large(role: str, hint: str) -> None:
    message = status_setback(413, {}, b"<html>413 Request Entity Too Large</html>").message
    hinted = RefusedRequestError(message, None).with_hint(role)
    assert str(hinted) == f"HTTP 413: an HTML page{hint}"


def test_text_longer_than_the_physical_batch_of_llama_cpp_is_refused_at_once() -> None:
    message = (
        "input (460 tokens) is too large to process. increase the physical batch size (current "
        "batch size: 64)"
    )
    body = {"error": {"code": 500, "message": message, "type": "server_error"}}
    setback = status_setback(500, {}, json.dumps(body).encode())
    assert setback.kind is FaultKind.REFUSED
    hinted = RefusedRequestError(setback.message, None).with_hint("embedder")
    assert str(hinted) == f"HTTP 500: {message}"
