"""The ledger that records the calls made for the current question or ingest.

A context variable carries the ledger, so that no function needs an extra argument.
`asyncio.to_thread` copies the variable into worker threads.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from memeval.errors import StorageError, UserError
from memeval.llm.contract import Completion, Prompt
from memeval.llm.own_work import OwnWork
from memeval.llm.reply.body import NOTES
from memeval.records import AnswerForm, Role, Usage

N = TypeVar("N", int, float)

DIGITS = 12
"""Hexadecimal digits that distinguish the requests of a run."""


class Answered(Struct, frozen=True):
    """A request for an answer, and its reply."""

    prompt: Prompt
    completion: Completion
    sent: bool
    """Whether the prompt's messages were sent. The offline reader reads the typed prompt."""


class Ledger(Struct):
    """The calls made for one question or one ingest."""

    scope: str = ""
    """A question's id; empty at ingest. In the cache key: equal prompts are separate samples."""
    usages: list[Usage] = field(default_factory=list)
    own_work: OwnWork = field(default_factory=OwnWork)
    """The time of the system's own work."""
    called_s: dict[Role, float] = field(default_factory=dict)
    """Sum of the calls' durations by role, as measured when paid for; includes cached replies."""
    untimed: set[Role] = field(default_factory=set)
    """Roles with a reply whose duration is unknown."""
    wait_s: float = 0.0
    """Sum of the waits between retries, including replies that this run paid for before a crash."""
    failed: int = 0
    """Calls that failed at every try. Calls with a cut or filtered reply are in `ends`."""
    ends: Counter[tuple[Role, str]] = field(default_factory=Counter)
    """Replies by role and finish reason; `unknown` if not reported."""
    slot_wait_s: float = 0.0
    """Time spent in this process waiting for a slot at the endpoint."""
    answered: Answered | None = None
    """The last request for an answer, and its reply."""
    repairs: Counter[str] = field(default_factory=Counter)
    """Number of replies with each repair, by the keys of `memeval.llm.reply.body.NOTES`."""
    answer_form: AnswerForm = AnswerForm.SHORT
    """The form of answer that the question asks for; it determines the reader's prompt."""
    models: dict[tuple[Role, str], set[str]] = field(default_factory=dict)
    """The models that the replies named, by role and requested model."""
    remarks: dict[str, str] = field(default_factory=dict)
    """Additional remarks on the calls for people who read the figures, by name."""
    left_out: frozenset[str] = frozenset()
    """Texts that a system passed to the reader beyond `context_tokens`: they were not shown."""
    noise_lines: int = 0
    """Lines that a program or an MCP server wrote besides its replies."""

    @property
    def own(self) -> OwnWork:
        """The earlier name of `own_work`, which systems outside memeval use."""
        return self.own_work

    def calling(self) -> AbstractContextManager[None]:
        """Context manager for a call of a model or an endpoint, timed by `add_duration`."""
        return self.own_work.excluded()

    def add_duration(self, role: Role, seconds: float | None) -> None:
        """Adds the duration of a call, as measured when it was paid for; None if unknown."""
        if seconds is None:
            self.untimed.add(role)
        else:
            self.called_s[role] = self.called_s.get(role, 0.0) + seconds

    def calls_s(self, *roles: Role) -> float | None:
        """Duration of the calls in some roles, or in all; None if any of them is unknown."""
        counted = set(roles or Role)
        if counted & self.untimed:
            return None

        return sum(seconds for role, seconds in self.called_s.items() if role in counted)

    def note_end(self, role: Role, finish_reason: str | None) -> None:
        """Counts a reply by its finish reason."""
        self.ends[role, finish_reason or "unknown"] += 1

    def note_model(self, role: Role, requested: str, named: str | None) -> None:
        """Notes which model a reply named; None if that is not known."""
        names = self.models.setdefault((role, requested), set())
        if named is not None:
            names.add(named)

    def drop_cut(self, role: Role) -> None:
        """No longer counts a reply as cut: it was requested again, or is complete."""
        if self.ends[role, "length"]:
            self.ends[role, "length"] -= 1
            self.ends[role, "asked_on"] += 1

    def replies(self, finish_reason: str | None = None, role: Role | None = None) -> int:
        """Counts the replies so far, optionally of one role or with one reason."""
        total = 0
        for (own_role, reason), count in self.ends.items():
            if role in (None, own_role) and finish_reason in (None, reason):
                total += count

        return total

    @property
    def calls(self) -> int:
        """Replies of models so far; embeddings are not counted."""
        return self.replies()

    @property
    def cut_calls(self) -> int:
        """Replies that reached their token limit, except where a protocol sets a low limit."""
        return self.replies("length")

    @property
    def filtered_calls(self) -> int:
        """Replies that the provider's filter withheld, whole or in part."""
        return self.replies("content_filter")

    @property
    def notes(self) -> dict[str, Any]:
        """Remarks on the calls and on their replies, for people who read the figures."""
        notes: dict[str, Any] = {name: text for name, text in NOTES.items() if self.repairs[name]}
        for (role, requested), named in self.models.items():
            if named != {requested}:
                notes[role.models_note] = sorted(named)

        return notes | self.remarks


_current: ContextVar[Ledger | None] = ContextVar("memeval_ledger", default=None)


def current_ledger() -> Ledger:
    """The current ledger, else a temporary one."""
    return _current.get() or Ledger()


@contextmanager
def metered(ledger: Ledger) -> Iterator[Ledger]:
    """Records the calls made inside the `with` block in `ledger`.

    After an error that concerns the whole run, they also count in the outer ledger, because no row
    will record them.
    """
    outer = current_ledger()
    token = _current.set(ledger)
    try:
        yield ledger
    except (asyncio.CancelledError, StorageError, UserError):
        outer.usages += ledger.usages
        raise
    finally:
        _current.reset(token)


def totals(usages: Iterable[Usage]) -> tuple[Usage, ...]:
    """Sums of usages by role, model, provider, and by whether they are estimated, cached, or list
    their requests.
    """
    sums: dict[tuple[str, str, str, bool, bool, bool], Usage] = {}
    for usage in usages:
        key = (
            usage.role.value,
            usage.model,
            usage.provider,
            usage.estimated,
            usage.cached,
            usage.requests is UNSET,
        )
        sums[key] = _add(sums[key], usage) if key in sums else usage

    return tuple(sums[key] for key in sorted(sums))


def _add(a: Usage, b: Usage) -> Usage:
    requests = a.requests
    if isinstance(requests, tuple) and isinstance(b.requests, tuple):
        requests += b.requests

    return replace(
        a,
        prompt_tokens=plus(a.prompt_tokens, b.prompt_tokens),
        completion_tokens=plus(a.completion_tokens, b.completion_tokens),
        cached_tokens=a.cached_tokens + b.cached_tokens,
        calls=a.calls + b.calls,
        requests=requests,
    )


def with_request(usage: Usage, key: str) -> Usage:
    """The usage of a call as that of the request under this key of the cache."""
    sent, received = usage.prompt_tokens or 0, usage.completion_tokens or 0
    return replace(usage, requests=((key[:DIGITS], sent, received, usage.cached_tokens),))


def plus(a: N | None, b: N | None) -> N | None:
    """The sum; None if either part was not measured."""
    return None if a is None or b is None else a + b
