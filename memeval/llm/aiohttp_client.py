"""The client of the openai package that sends over aiohttp, without the rest of the package.

The client is a module of its own within the package. To import it by its name imports all types of
OpenAI's API first, which takes twice as long as all else before a run's first call.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.llm.exchange import timed_socket

if TYPE_CHECKING:
    from ssl import SSLContext

    from httpx2 import AsyncBaseTransport, AsyncClient, Limits

FOLDER = Path("_vendor", "httpx_aiohttp")
"""Where the package keeps the client."""
NAME = f"{__name__}.vendored"


def client_class() -> type[AsyncClient]:
    """The class of the client, as `openai.DefaultAioHttpClient` but for the defaults of its
    arguments.
    """
    module = sys.modules.get(NAME) or _load()
    if module is None:  # another version of the package keeps it elsewhere
        from openai import DefaultAioHttpClient

        return DefaultAioHttpClient

    client: type[AsyncClient] = module.Httpx2AiohttpClient
    return client


def timed_transport(limits: Limits, context: SSLContext) -> AsyncBaseTransport | None:
    """The client's own transport, over sockets that note when a reply arrives.

    None where the package keeps its client elsewhere: replies are then timed on the event loop.
    """
    module = sys.modules.get(NAME) or _load()
    if module is None:
        return None

    from aiohttp import ClientSession, TCPConnector

    def open_session() -> ClientSession:
        connector = TCPConnector(
            limit=limits.max_connections or 0,
            keepalive_timeout=limits.keepalive_expiry,
            ssl=context,
            socket_factory=timed_socket,
        )
        return ClientSession(connector=connector)

    transport: AsyncBaseTransport = module.AiohttpTransport(
        verify=context, limits=limits, client=open_session
    )
    return transport


def _load() -> Any:
    """The module, under a name of our own; None where the package has none there."""
    package = find_spec("openai")
    if package is None or package.origin is None:
        return None

    folder = Path(package.origin).parent / FOLDER
    file = folder / "__init__.py"
    spec = spec_from_file_location(NAME, file, submodule_search_locations=[str(folder)])
    if not file.is_file() or spec is None or spec.loader is None:
        return None

    module = module_from_spec(spec)
    sys.modules[NAME] = module
    try:
        spec.loader.exec_module(module)
    except ImportError:
        del sys.modules[NAME]
        return None

    return module if hasattr(module, "Httpx2AiohttpClient") else None
