"""The client over aiohttp is that of the openai package, and comes without the package."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from memeval.llm import aiohttp_client
from memeval.llm.aiohttp_client import client_class

CALL = """
import asyncio, sys
from memeval.llm.transport import Transport
from memeval.testing.endpoint import ScriptedEndpoint
async def call(address):
    transport = Transport(api_key="", headers={}, connections=1)
    status, _, _ = await transport.send(f"{address}/chat/completions", b"{}", 9999)
    await transport.aclose()
    return status
with ScriptedEndpoint() as endpoint:
    print(asyncio.run(call(endpoint.base_url)), "openai" in sys.modules)
"""


def test_a_call_does_without_the_package() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALL], capture_output=True, text=True, timeout=60, check=True
    )
    status, has_openai = done.stdout.split()
    assert status.isdigit()
    assert has_openai == "False"


@pytest.mark.slow
def test_it_is_the_client_of_the_package() -> None:
    from openai import DefaultAioHttpClient

    theirs = DefaultAioHttpClient.__mro__[1]
    assert inspect.getsource(client_class()) == inspect.getsource(theirs)
    assert client_class().__mro__[1:] == theirs.__mro__[1:]


@pytest.mark.slow
def test_a_package_that_keeps_it_elsewhere_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from openai import DefaultAioHttpClient

    monkeypatch.delitem(sys.modules, aiohttp_client.NAME, raising=False)
    monkeypatch.setattr(aiohttp_client, "FOLDER", aiohttp_client.FOLDER / "elsewhere")
    assert client_class() is DefaultAioHttpClient
