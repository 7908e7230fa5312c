"""The faults of the scripted endpoint: their kinds, and which request gets which."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

PASSING = (
    "rate_limit",
    "server_error",
    "timeout",
    "drop",
    "truncate",
    "malformed",
    "html",
    "no_choices",
    "empty",
    "null",
    "dripping",
    "no_body",
    "error_body",
)
"""Kinds of fault that may be gone when the request is retried."""

LASTING = ("bad_request", "unauthorised", "not_found", "quota")
"""Kinds of fault that a request gets every time. Waiting does not help."""

VECTOR_FAULTS = (
    "zeros",
    "nan",
    "huge",
    "other_width",
    "ragged",
    "one_short",
    "same_index",
    "no_numbers",
)
"""Kinds of fault that only embeddings requests get.

They may be gone when the request is retried.
"""

REFUSALS = {
    "server_error": (503, {"message": "server_error", "type": "server_error"}),
    "bad_request": (400, {"message": "bad_request", "type": "bad_request"}),
    "unauthorised": (401, {"message": "unauthorised", "type": "unauthorised"}),
    "not_found": (404, {"message": "not_found", "type": "not_found"}),
    "quota": (
        429,
        {
            "message": "You exceeded your current quota",
            "type": "insufficient_quota",
            "code": "insufficient_quota",
        },
    ),
}

HTML_PAGE = (
    b"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
)

ERROR_BODY = b'{"error": {"message": "upstream connect error", "code": 502}}'
"""What a failing gateway sends with status 200."""


@dataclass(frozen=True)
class Faults:
    """The share of requests that get each fault.

    The draw depends on the seed, the request's body and how often it was sent, not on timing.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    """Share in [0, 1] by kind, see `PASSING`, `LASTING` and `VECTOR_FAULTS`."""
    seed: int = 0
    retry_after_s: float = 0.01
    """Seconds in the `Retry-After` header of a 429."""
    hang_s: float = 5.0
    """Seconds for which a `timeout` holds back its reply."""
    lasting: tuple[str, ...] = LASTING
    """Kinds that a request gets every time."""
    outage: tuple[int, int] | None = None
    """Indexes of the first request that gets a 503 and of the first one after the outage."""

    def draw(
        self, body: bytes, attempt: int, number: int = 0, *, vectors: bool = False
    ) -> str | None:
        """The fault of a request, or None for a valid reply.

        `body` was sent `attempt` times before; it is request `number` of all, counted from 0.
        """
        if self.outage and self.outage[0] <= number < self.outage[1]:
            return "server_error"

        kinds = (*PASSING, *VECTOR_FAULTS) if vectors else PASSING
        passing = tuple(kind for kind in kinds if kind not in self.lasting)

        # A lasting fault is drawn without the attempt, so a request gets it every time.
        return self._pick(body, 0, self.lasting) or self._pick(body, attempt + 1, passing)

    def _pick(self, body: bytes, salt: int, kinds: tuple[str, ...]) -> str | None:
        digest = hashlib.sha256(b"%d/%d/" % (self.seed, salt) + body).digest()
        point = int.from_bytes(digest[:8], "big") / 2**64
        for kind in kinds:
            point -= self.shares.get(kind, 0.0)
            if point < 0:
                return kind

        return None
