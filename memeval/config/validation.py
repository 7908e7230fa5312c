"""Refuses values of the right type that make no sense."""

import math
from collections.abc import Mapping
from typing import Any

from memeval.config.checks import check_address, check_secrets, check_store
from memeval.config.filing import check_filing
from memeval.config.identity import run_metadata
from memeval.config.leaves import flatten
from memeval.config.options import available, is_available
from memeval.config.roles import DRAFTING, RESERVED_PARAMETERS, ROLES, section_of_role
from memeval.config.schema import ONE_OF, LlmConfig, RunConfig
from memeval.config.settings import SHARED, TENANTS, TIMEOUT
from memeval.errors import UserError, check_number, unknown
from memeval.text.shown import one_line

LONGEST_TIMEOUT_S = 86_400.0
"""A day. A longer wait for one reply is a mistake."""


def check(config: RunConfig) -> None:
    """Raises `UserError` for values of the right type that make no sense."""
    leaves = flatten(config)
    # First, because the messages below quote values.
    check_secrets(leaves)
    check_filing(config)
    _check_declared(leaves)
    _check_timeouts(leaves)
    _check_parameters(config.llm)

    for path, value in leaves.items():
        if (
            path.endswith("url")
            and path.startswith(("llm.", "embedder.", "reranker.", "system."))
            and isinstance(value, str)
        ):
            check_address(path, value)

    check_store(config.store.url, config.store.memories)
    name = config.llm.name
    if not is_available("llm", name):
        raise unknown("llm.name", name, available("llm"), "all:  python -m memeval --help llm")
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


def _check_parameters(llm: LlmConfig) -> None:
    """Raises `UserError` for parameters that memeval sets itself."""
    for path in (*ROLES, *DRAFTING):
        role = section_of_role(llm, path)
        for name in role.extra_body or {}:
            if name in RESERVED_PARAMETERS:
                raise UserError(
                    f"{path}.extra_body must not contain '{name}', which memeval sets itself",
                    RESERVED_PARAMETERS[name].format(role=path),
                )


def _check_declared(leaves: Mapping[str, Any]) -> None:
    """Raises `UserError` for numbers outside their bounds, and for unknown values."""
    for path, value in leaves.items():
        # YAML allows `.nan`; every comparison with it is false, so it would pass the bounds.
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{path} must be a finite number, not {value}")

    for path, metadata in run_metadata().items():
        value = leaves.get(path)
        check_number(path, value, metadata)
        if value is not None and ONE_OF in metadata and value not in metadata[ONE_OF]:
            raise unknown(path, str(value), metadata[ONE_OF])

    tenants = leaves.get(f"system.{TENANTS}")
    if tenants not in (None, SHARED):
        raise UserError(f"system.{TENANTS} must be {SHARED}, or null, not '{one_line(tenants)}'")


def _check_timeouts(leaves: Mapping[str, Any]) -> None:
    """Raises `UserError` for a time limit that is not a sensible number of seconds."""
    limit = leaves.get(f"system.{TIMEOUT}")
    # `true` is an integer in Python: it would be a limit of one second.
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        raise UserError(
            f"system.{TIMEOUT} must be a number of seconds, or null, not '{one_line(limit)}'"
        )

    for path, value in leaves.items():
        if path.endswith(".timeout_s") and isinstance(value, int | float):
            check_number(path, value, {"above": 0, "most": LONGEST_TIMEOUT_S})
