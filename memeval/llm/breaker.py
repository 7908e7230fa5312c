"""Stops work that a dead endpoint makes useless.

An endpoint whose first call fails for a reason that waiting can't fix stops the work at once:
nothing listens there, its name or its certificate is wrong, the key or the model is unknown. One
that answered stops it after many calls in a row that failed for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from memeval.errors import ModelError, UserError, WorldError
from memeval.llm.faults import Setback, of_connection

T = TypeVar("T")

KNOCK_S = 5.0
"""How long a first connection may take; one that takes longer is left to the patience."""
CANCELLING_S = 1.0
"""How long a call of stopped work waits for its end."""
KEPT = "nothing was lost: the same command continues"


@dataclass
class _Work:
    """Work that is watched."""

    options: Mapping[str, str]
    """The setting that names each address, by address."""
    most_failures: int | None
    stopped: asyncio.Future[Exception]


@dataclass
class Breaker:
    """The health of the endpoints of one command."""

    _answered: set[str] = field(default_factory=set)
    """What answered, by address and by what was asked for."""
    _in_row: dict[str, int] = field(default_factory=dict)
    """Calls since the last success that failed for good, by address."""
    _last: dict[str, str] = field(default_factory=dict)
    """How the last of them failed."""
    _dead: dict[str, Setback] = field(default_factory=dict)
    _works: list[_Work] = field(default_factory=list)
    _knocked: set[str] = field(default_factory=set)
    _knocking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def keep(
        self,
        work: Coroutine[Any, Any, T],
        options: Mapping[str, str],
        most_failures: int | None,
    ) -> T:
        """The result of `work`, which needs the addresses that `options` has as keys.

        The work is cancelled where one of them is dead. Raises `UserError` where that is so from
        the first call on, and `WorldError` after `most_failures` in a row: what is finished is
        stored.
        """
        stopped: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        own = _Work(options, most_failures, stopped)
        self._works.append(own)
        self._check()
        task = asyncio.ensure_future(work)
        either: set[asyncio.Future[Any]] = {task, stopped}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            self._works.remove(own)

        if not task.done():
            task.cancel()
            await asyncio.wait({task})

        # The work may have ended by itself in the same moment: then its result counts.
        if stopped.done() and task.cancelled():
            raise stopped.result()

        stopped.cancel()
        return task.result()

    async def knock(self) -> None:
        """Tries a connection to each address that is still to be called, once.

        The first real call does so for all: an endpoint that would judge thousands of answers is
        tried before the first of them is paid for. Where all replies are in the cache, none is.
        """
        # Calls that come meanwhile wait for the first one: none of them is to be paid for.
        async with self._knocking:
            addresses = {address for work in self._works for address in work.options}
            new = [address for address in addresses if address not in self._knocked]
            setbacks = await asyncio.gather(*map(_knock, new))
            self._knocked.update(new)

            for setback, address in zip(setbacks, new, strict=True):
                if setback is not None:
                    self._dead[address] = setback

        self._check()
        if self._works and all(work.stopped.done() for work in self._works):
            # The work is being cancelled: this call with it, before it is sent.
            await asyncio.sleep(CANCELLING_S)

    def succeeded(self, address: str, asked: str) -> None:
        """A call was answered."""
        # Not by address only: an endpoint that knows one model may not know the judge's.
        self._answered.add(f"{address} {asked}")
        self._in_row.pop(address, None)

    def failed(self, address: str, asked: str, error: ModelError, setback: Setback | None) -> None:
        """A call failed for good; `setback` is that of its last try."""
        first = f"{address} {asked}" not in self._answered
        if first and setback is not None and setback.dead:
            self._dead[address] = setback

        self._in_row[address] = self._in_row.get(address, 0) + 1
        self._last[address] = str(error)
        self._check()

    def _check(self) -> None:
        """Stops the work that can't go on."""
        for work in self._works:
            error = self._reason(work)
            if error is not None and not work.stopped.done():
                work.stopped.set_result(error)

    def _reason(self, work: _Work) -> Exception | None:
        for address, option in work.options.items():
            if setback := self._dead.get(address):
                return UserError(
                    f"{option}={address}: {setback.what}",
                    *_ways_out(setback, option),
                    KEPT,
                )

            most, failures = work.most_failures, self._in_row.get(address, 0)
            if most is not None and failures >= most:
                return WorldError(
                    f"stopped: {failures} calls in a row failed at {address}, the last one: "
                    f"{self._last[address]} (stop_after_failures={most})"
                )

        return None


def _ways_out(setback: Setback, option: str) -> Collection[str]:
    """What a user can do about an endpoint whose first call failed."""
    role = option.removesuffix(".base_url")
    if setback.status in (401, 403):
        return (f"check the key:  {role}.api_key_env names the variable that holds it",)
    if setback.status == 404:
        return (f"check the model and the address:  {role}.model=… {option}=…",)

    if setback.status == 429:
        return (f"use another key or model:  {role}.api_key_env=… {role}.model=…",)

    return (f"check the address, and that the server runs:  {option}=…",)


async def _knock(address: str) -> Setback | None:
    """Why no connection can be made; None where one can, or where that is unknown."""
    parts = urlsplit(address)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    # Behind a proxy, the name need not be known here.
    proxies = getproxies()
    if (parts.scheme in proxies or "all" in proxies) and not proxy_bypass(host):
        return None

    try:
        async with asyncio.timeout(KNOCK_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, ValueError) as error:
        setback = of_connection(error, host)
        # What may pass is left to the calls, which have the patience for it.
        return setback if setback.dead else None

    writer.close()
    with suppress(OSError):
        await writer.wait_closed()

    return None
