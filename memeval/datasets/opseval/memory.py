"""Content of the memory with `framing=knowledge` and `framing=runbook`: solutions, by topic."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, product

from msgspec import Struct

from memeval.datasets.grouping import group
from memeval.datasets.opseval.groups import groups
from memeval.datasets.opseval.items import OpsEvalItem
from memeval.records import Session

NAMELESS = "Knowledge"
"""Speaker of a solution without a topic."""

MASK = "…"
"""Replacement for the letter of a choice."""
# 30 of the 1,553 solutions name choices by letter. Only letters next to `option`, `answer` and the
# like can be distinguished from words: four solutions keep a bare letter.
_LIST = r"[A-H](?:(?:\s*[,，、/&]\s*|\s*,?\s+(?:and|or|nor)\s+|\s*[和与及或]\s*)[A-H])*"
_NAMED = re.compile(
    rf"(\b(?:[Oo]ptions?|[Aa]nswers?|[Cc]hoices?)(?:\s+(?:is|are))?:?\s+[(\"“]?)({_LIST})(?![\w'’-])"
)
_NAMED_ZH = re.compile(rf"((?:选项|答案|选择)(?:是|为)?[:：]?\s*)({_LIST})(?![\w'’-])", re.ASCII)
_ZH_AFTER = re.compile(rf"(?<![\w'’-])()({_LIST})(?=\s*(?:个)?(?:选项|答案))", re.ASCII)
_AT_LINE = re.compile(r"(^[\s*(\-]*)([A-H])(?=[*]*[.:)：、]\s)", re.MULTILINE)


class ItemGroup(Struct, frozen=True):
    """Items that are asked together, and the items whose solutions are then in memory."""

    asked: tuple[OpsEvalItem, ...]
    remembered: tuple[OpsEvalItem, ...]


def parts(
    items: Sequence[OpsEvalItem], *, domains: Sequence[str], folds: int, seed: int, own: bool
) -> Iterator[ItemGroup]:
    """The items of a domain, language and fold, with the solutions of the other folds in memory;
    with `own`, the solutions of the asked items too.

    Memory and questions of a part are in one language, so that no item is helped by its twin.
    """
    fold_of: dict[int, int] = {}
    # Items that belong together share a fold.
    for members in groups(items):
        text = f"{seed} {items[members[0]].row_id}"
        fold = int(sha256(text.encode()).hexdigest(), 16) % folds
        fold_of |= dict.fromkeys(members, fold)

    sharing = group(
        ((item.domain, item.language), (item, fold_of[position]))
        for position, item in enumerate(items)
    )
    for domain, language, fold in product(domains, ("en", "zh"), range(folds)):
        asked, remembered = [], []
        for item, own_fold in sharing.get((domain, language), ()):
            if own_fold == fold:
                asked.append(item)
            if own or own_fold != fold:
                remembered.append(item)

        if asked:
            yield ItemGroup(asked=tuple(asked), remembered=tuple(remembered))


def sessions(items: Sequence[OpsEvalItem], *, mask: bool) -> tuple[Session, ...]:
    """The solutions, a session per topic, in the order in which the topics first occur.

    With `mask` they don't name choices by letter.
    """
    by_topic: dict[str, dict[str, None]] = defaultdict(dict)
    for item in items:
        if item.solution:
            topic = item.topics[0] if item.topics else NAMELESS
            by_topic[topic][remembered_text(item, mask=mask)] = None

    made = []
    for number, (topic, solutions) in enumerate(by_topic.items(), start=1):
        turns = [(topic, text) for text in solutions]
        made.append(Session.of(f"s{number}", turns, ids=f"s{number}t"))

    return tuple(made)


def turns_by_text(sessions_made: Sequence[Session]) -> Mapping[str, Sequence[str]]:
    """Turn ids by solution; the same solution may be under two topics."""
    turns = chain.from_iterable(session.turns for session in sessions_made)
    return group((turn.text, turn.turn_id) for turn in turns)


def remembered_text(item: OpsEvalItem, *, mask: bool) -> str:
    """An item's solution as the memory contains it."""
    return without_letters(item.solution) if mask else item.solution


def without_letters(solution: str) -> str:
    """A solution without letters that name choices: `Option … is incorrect`.

    The letters are those of the question that is asked: they would give its answer away without
    any knowledge.
    """
    for pattern in (_NAMED, _NAMED_ZH, _ZH_AFTER, _AT_LINE):
        solution = pattern.sub(rf"\g<1>{MASK}", solution)

    return solution
