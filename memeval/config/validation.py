"""Refuses values of the right type that make no sense."""

import math
from collections.abc import Mapping
from typing import Any

from memeval.config.checks import check_address, check_secrets, check_store
from memeval.config.filing import check_filing
from memeval.config.leaves import flatten
from memeval.config.options import available, is_available
from memeval.config.roles import (
    DRAFTING,
    LIMIT_PARAMETERS,
    RESERVED_PARAMETERS,
    ROLES,
    section_of_role,
)
from memeval.config.schema import (
    ANSWER,
    CHUNKS,
    DIRECT,
    JUDGE,
    MOST_TEXTS,
    PREPARE,
    TOOLS,
    LlmConfig,
    RunConfig,
)
from memeval.config.settings import SHARED, TENANTS, TIMEOUT
from memeval.errors import UserError, unknown
from memeval.text.shown import one_line

MODELS = (*ROLES, *DRAFTING)
CALLED = (*MODELS, "embedder", "reranker")
"""Groups with settings for calling an endpoint."""

BY_TOOLS = ("reader", "writer")
"""Groups with limits of tools."""

_LEAST: dict[str, float] = {
    "top_k": 1,
    "context_tokens": 1,
    "retain_recent": 0,
    "num_runs": 1,
    **{f"{group}.max_steps": 1 for group in BY_TOOLS},
    **{f"{group}.max_tool_calls": 1 for group in BY_TOOLS},
    **{f"{group}.max_result_tokens": 10 for group in BY_TOOLS},
    "writer.max_session_tokens": 100,
    "granularity.size": 1,
    "granularity.overlap": 0,
    "prompt.choose_tokens": 1,
    **{f"{role}.max_tokens": 1 for role in MODELS},
    **{f"{role}.temperature": 0 for role in MODELS},
    **{f"{group}.max_concurrency": 1 for group in CALLED},
    **{f"{group}.patience_s": 0 for group in CALLED},
    "llm.max_retries": 0,
    "embedder.width": 1,
    "embedder.batch_size": 1,
    "embedder.max_retries": 0,
    "judge.threshold": 0,
    "store.patience_s": 0,
    "judge.repeats": 1,
    "min_coverage": 0,
    "budget.usd": 0,
    "budget.tokens": 0,
    "budget.calls": 0,
    "confirm_above_usd": 0,
    "stop_after_failures": 1,
    "max_ingest_loss": 0,
}
_MOST: dict[str, float] = {
    # Rows with a count above `records.MOST` could not be read again.
    "top_k": 1_000_000_000,
    "num_runs": 10_000,
    **{f"{group}.max_concurrency": 1000 for group in CALLED},
    "llm.max_retries": 1000,
    "embedder.batch_size": MOST_TEXTS,
    "embedder.max_retries": 1000,
    "min_coverage": 1,
    "max_ingest_loss": 1,
    "judge.threshold": 1,
}
LONGEST_TIMEOUT_S = 86_400.0
"""A day. A longer wait for one reply is a mistake."""
FRESH_STAGES = (PREPARE, ANSWER, JUDGE)
_ONE_OF = {
    "tracking.name": ("mlflow", "none"),
    "judge.reading": ("first_word", "official"),
    "judge.scoring": ("v1", "v2"),
    "compression_unit": ("pairs", "chunks"),
    "stages": ("all", "retrieve"),
    "reader.name": (DIRECT, TOOLS),
    "writer.name": (CHUNKS, TOOLS),
}


def check(config: RunConfig) -> None:
    """Raises `UserError` for values of the right type that make no sense."""
    leaves = flatten(config)
    # First, because the messages below quote values.
    check_secrets(leaves)
    check_filing(config)
    _check_numbers(leaves)
    _check_parameters(config.llm)

    for path, value in leaves.items():
        if (
            path.endswith("url")
            and path.startswith(("llm.", "embedder.", "reranker.", "system."))
            and isinstance(value, str)
        ):
            check_address(path, value)

    check_store(config.store.url, config.store.memories)
    _check_names(config, leaves)

    if config.judge.repeats % 2 == 0:
        raise UserError(
            f"judge.repeats must be an odd number, for a majority, not {config.judge.repeats}"
        )

    turn = config.compression_turn
    if turn not in ("never", "middle", "rolling") and (isinstance(turn, str) or turn < 1):
        raise UserError(
            f"compression_turn must be never, middle, rolling or a positive integer, not '{turn}'"
        )

    size, overlap = config.granularity.size, config.granularity.overlap
    if size is not None and overlap is not None and overlap >= size:
        raise UserError(
            f"granularity.overlap ({overlap}) must be smaller than granularity.size ({size})"
        )


def _check_names(config: RunConfig, leaves: Mapping[str, Any]) -> None:
    if config.fresh is not None and config.fresh not in FRESH_STAGES:
        raise unknown("fresh", config.fresh, FRESH_STAGES)

    for path, allowed in _ONE_OF.items():
        if leaves[path] not in allowed:
            raise unknown(path, str(leaves[path]), allowed)

    if not is_available("llm", config.llm.name):
        raise unknown(
            "llm.name", config.llm.name, available("llm"), "all:  python -m memeval --help llm"
        )

    embedder = config.embedder
    if embedder.class_ is None and not is_available("embedder", embedder.name):
        raise unknown("embedder.name", embedder.name, available("embedder"))


def _check_parameters(llm: LlmConfig) -> None:
    """Raises `UserError` for parameters that memeval sets itself, and unknown names."""
    for path in MODELS:
        role = section_of_role(llm, path)
        for name in role.extra_body or {}:
            if name in RESERVED_PARAMETERS:
                raise UserError(
                    f"{path}.extra_body must not contain '{name}', which memeval sets itself",
                    RESERVED_PARAMETERS[name].format(role=path),
                )

        if role.limit_parameter not in (None, *LIMIT_PARAMETERS):
            raise unknown(f"{path}.limit_parameter", str(role.limit_parameter), LIMIT_PARAMETERS)


def _check_numbers(leaves: Mapping[str, Any]) -> None:
    for path, value in leaves.items():
        # YAML reads `.nan`, and every comparison with it is false: the bounds below would let it
        # pass.
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{path} must be a finite number, not {value}")

    for path, least in _LEAST.items():
        value = leaves.get(path)
        if value is not None and value < least:
            raise UserError(f"{path} must be at least {least:g}, not {value}")

    for path, most in _MOST.items():
        value = leaves.get(path)
        if value is not None and value > most:
            raise UserError(f"{path} must be at most {most:g}, not {value:g}")

    limit = leaves.get(f"system.{TIMEOUT}")
    # `true` is an integer in Python: it would be a limit of one second.
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        raise UserError(
            f"system.{TIMEOUT} must be a number of seconds, or null, not '{one_line(limit)}'"
        )

    tenants = leaves.get(f"system.{TENANTS}")
    if tenants not in (None, SHARED):
        raise UserError(f"system.{TENANTS} must be {SHARED}, or null, not '{one_line(tenants)}'")

    for path, value in leaves.items():
        if not path.endswith(".timeout_s") or not isinstance(value, int | float):
            continue

        if not 0 < value <= LONGEST_TIMEOUT_S:
            raise UserError(
                f"{path} must be above 0 seconds, and at most {LONGEST_TIMEOUT_S:g}, not {value:g}"
            )
