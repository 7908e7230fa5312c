"""Hosts of private endpoints, which packages replace with digests."""

import hashlib
import re

from memeval.results.prices import UNKNOWN_PROVIDER, provider_of

URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>[^\s/?#\"'<>\\,;)]+)")
_REPLACED_HOST = re.compile(r"host-[0-9a-f]{8}")


def is_private(url: str) -> bool:
    """Whether the host of a URL is neither a known provider's nor replaced."""
    host = URL.match(url)
    is_replaced = host is not None and _REPLACED_HOST.fullmatch(host["host"]) is not None
    return not is_replaced and provider_of(url) == UNKNOWN_PROVIDER


def replace_host(url: re.Match[str]) -> str:
    """A match of `URL`, with a private host replaced."""
    if not is_private(url[0]):
        return url[0]

    return f"{url['scheme']}://{host_digest(url['host'])}"


def host_digest(host: str) -> str:
    """Placeholder for a host: the same for the same host, so that its runs can be compared."""
    return f"host-{hashlib.sha256(host.lower().encode()).hexdigest()[:8]}"
