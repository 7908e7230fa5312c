"""The wait that an endpoint asks for before the next request."""

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"(\d{1,9}(?:\.\d{1,9})?)s"')
_EPOCH_FROM = 1_000_000_000
"""A larger number is a time in seconds since 1970, not a wait."""


def retry_after(
    headers: Mapping[str, str], content: bytes = b"", now: float | None = None
) -> float | None:
    """Seconds that an endpoint asks to wait (number, date or `6m0s`); None if it does not."""
    if now is None:
        now = time.time()

    # The most precise form comes first: some endpoints send several.
    forms = (("retry-after-ms", 0.001), ("retry-after", 1.0), ("x-ratelimit-reset-after", 1.0))
    for name, scale in forms:
        seconds = _seconds((headers.get(name) or "").strip(), scale, now)
        if seconds is not None:
            return max(0.0, seconds)

    # Gemini puts the wait into the body.
    delay = _RETRY_DELAY.search(content[:100_000])
    return float(delay[1]) if delay else None


def _seconds(value: str, scale: float, now: float) -> float | None:
    if not value or len(value) > 100:
        return None

    try:
        number = float(value)
    except ValueError:
        return _duration_of(value) if value[0].isdigit() else _until(value, now)

    if not math.isfinite(number):
        return None
    if scale == 1.0 and number > _EPOCH_FROM:
        return number - now

    return number * scale


def _duration_of(value: str) -> float | None:
    match = _DURATION.fullmatch(value.lower().replace(" ", ""))
    if not match or not any(match.groups()):
        return None

    hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds + milliseconds / 1000


def _until(stamp: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(stamp)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)

        return moment.timestamp() - now
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
