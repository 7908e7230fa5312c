"""The client of the openai package that sends over aiohttp, without the rest of the package.

The client is a module of its own within the package. To import it by its name imports all types of
OpenAI's API first, which takes twice as long as all else before a run's first call.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from httpx2 import AsyncClient

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
