"""`context_tokens=…`: every system shows the reader the same amount of text at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from memeval.llm.metering import current_ledger
from memeval.llm.tokens import count_tokens
from memeval.records import Answer, Query
from memeval.systems.base import NOTHING_FITS, Reader, ReaderReply


class BudgetedReader:
    """A reader that sees a system's texts only as far as a budget of tokens goes.

    Texts are taken whole, the one that matters most first: the first one that does not fit, and all
    behind it, are left out.
    """

    def __init__(self, reader: Reader, most: int) -> None:
        self._reader, self._most = reader, most

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        ledger = current_ledger()
        # Counting is our work, and not that of the system that asks.
        with ledger.own.aside():
            order = order or range(len(context))
            sums = accumulate(count_tokens(context[position]) for position in order)
            count = sum(total <= self._most for total in sums)
            shown = [context[position] for position in sorted(order[:count])]
            ledger.left_out = frozenset(context) - frozenset(shown)
            if context and not shown:
                ledger.remarks[NOTHING_FITS] = (
                    f"the best text is larger than context_tokens={self._most}, so none was shown"
                )

            return await self._reader.answer(query, shown)


def without_left_out(answer: Answer, left_out: frozenset[str]) -> Answer:
    """The answer with those of its chunks that the reader was shown."""
    if not left_out or answer.retrieved is None:
        return answer

    kept = tuple(chunk for chunk in answer.retrieved if chunk.text not in left_out)
    return replace(answer, retrieved=kept)
