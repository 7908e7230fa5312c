"""Counts what a memory wrote: how much, and how much of it is repeated or informative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memeval.records import EvalCase
from memeval.results.rows import StoredItems
from memeval.text.given import plain
from memeval.text.words import search_terms

RARE_SHARE = 0.01
"""A word is rare if at most this share of the turns has it, or one turn."""


def count_items(items: Sequence[Mapping[str, Any]], case: EvalCase) -> StoredItems:
    """Counts the items of a dump. A case is what was ingested until now."""
    turns = list(case.turns)
    positions = {turn.turn_id: position for position, turn in enumerate(turns)}
    spread = Counter(term for turn in turns for term in set(search_terms(turn.text)))
    most = max(1, RARE_SHARE * len(turns))

    texts = [str(item.get("text") or "") for item in items]
    without_fact = sum(
        not any(0 < spread[term] <= most for term in search_terms(text)) for text in texts
    )
    # By the latest turn that an item rests on.
    placed = [
        max(found) for item in items if (found := _positions(item.get("turn_ids"), positions))
    ]
    return StoredItems(
        turns=len(turns),
        items=len(items),
        repeated=len(texts) - len(set(map(plain, texts))),
        without_fact=without_fact,
        placed=len(placed),
        late=sum(2 * position >= len(turns) for position in placed),
    )


def _positions(turn_ids: Any, positions: Mapping[str, int]) -> list[int]:
    """Positions of the turns that an item names; other names are left out."""
    named = turn_ids if isinstance(turn_ids, list | tuple) else ()
    return [positions[name] for name in named if isinstance(name, str) and name in positions]
