"""An instance of a system for each user of a case, for systems that don't tell users apart."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from memeval.pipeline.isolate.watch import Watched
from memeval.records import IngestHealth

MethodCall = tuple[str, tuple[Any, ...]]
"""Name of a method, and its arguments."""
FOR_ALL_USERS = frozenset(
    {"reset", "compress", "consolidate", "await_ready", "health", "save", "load"}
)
"""Methods that concern every user. Any other is called for the user named by its arguments."""


class ByUser(Watched):
    """The instance of the user who asks, and a second one for another user.

    Each instance gets the chunks and the queries of its own user. Methods in `FOR_ALL_USERS` are
    called on both; calls that name no user, such as `dump`, go to the instance of the asking user.
    """

    def __init__(self, build: Callable[[str], Watched], user: str, other: str) -> None:
        """`build` creates the instance of a user."""
        self._own, self._other_instance, self._other_user = build(user), build(other), other
        super().__init__(self._own.system, self._own.case_id, self._own.timeout_s)
        self.user = user

    async def call(self, name: str, *arguments: Any) -> Any:
        if name not in FOR_ALL_USERS:
            users = {getattr(argument, "user", "") for argument in arguments}
            watched = self._other_instance if self._other_user in users else self._own
            return await watched.call(name, *arguments)

        result = await self._own.call(name, *_arguments_for(self.user, arguments))
        others = await self._other_instance.call(name, *_arguments_for(self._other_user, arguments))
        return _sum_health(result, others) if name == "health" else None

    async def run(self, calls: Iterable[MethodCall]) -> None:
        for name, arguments in calls:
            await self.call(name, *arguments)

    async def close(self) -> str | None:
        errors = [await watched.close() for watched in (self._other_instance, self._own)]
        return next(filter(None, errors), None)


def _arguments_for(user: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_user_part(user, argument) for argument in arguments)


def _user_part(user: str, argument: Any) -> Any:
    """A user's folder within a folder, or the user's chunks among some chunks."""
    if isinstance(argument, Path):
        folder = argument / user
        folder.mkdir(exist_ok=True)
        return folder

    return tuple(chunk for chunk in argument if chunk.user == user)


def _sum_health(first: IngestHealth | None, others: IngestHealth | None) -> IngestHealth | None:
    """Sum of the health of both instances; None if either reports none."""
    if first is None or others is None:
        return None

    return IngestHealth(
        asked=first.asked + others.asked,
        stored=first.stored + others.stored,
        lost=first.lost + others.lost,
    )
