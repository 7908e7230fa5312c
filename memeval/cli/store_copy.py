"""`python -m memeval store copy --to | --from`: rows, texts, cached replies and memories, between
the files of this home and a database.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING

from memeval.config.checks import check_store
from memeval.config.schema import StoreConfig
from memeval.store.inventory import Home, list_items
from memeval.store.opening import open_memories
from memeval.text.shown import printable

if TYPE_CHECKING:
    from memeval.store.inventory import Copied


def copy(home: Home, chosen: argparse.Namespace) -> int:
    """Copies what the target lacks, or lists it. Exit status 1 if something could not be copied.

    Raises `UserError` if a URL can't be used, and `StorageError` if either side fails.
    """
    from memeval.store.copying import Copying
    from memeval.store.copying_memories import copy_memories
    from memeval.store.inventory import CopyDirection
    from memeval.store.postgres.database import open_database
    from memeval.store.postgres.store import PostgresStore

    url = chosen.to or vars(chosen)["from"]  # `from` is a keyword of Python
    check_store(url, chosen.memories)
    direction = CopyDirection.TO_DATABASE if chosen.to else CopyDirection.FROM_DATABASE
    settings = StoreConfig(url=url, memories=chosen.memories)
    store = PostgresStore(open_database(url, settings.patience_s, print), home.cache)
    shared = open_memories(settings, print)
    items = list_items(home)
    parts: Iterable[Copied] = Copying(home, store, direction, do_it=chosen.yes, items=items).run()
    if shared is not None:
        memories = copy_memories(home, items, shared, direction, do_it=chosen.yes)
        parts = chain(parts, memories)

    new = present = problems = 0
    for part in parts:
        present += part.present
        if part.problem:
            problems += 1
        else:
            new += part.new

        if part.new or part.problem:
            print(_describe(part, do_it=chosen.yes))

    if new or not problems:
        _print_sums(new, present, do_it=chosen.yes)
    if problems:
        print(f"{problems} could not be copied; the same command retries them")

    return int(problems > 0)


def _describe(part: Copied, *, do_it: bool) -> str:
    name = printable(part.name)
    if part.problem:
        return f"not copied    {part.kind:<9} {name}: {printable(part.problem)}"
    if not do_it:
        return f"would copy    {part.kind:<9} {part.new:>9,}  {name}"

    return f"copied        {part.kind:<9} {part.new:>9,}  {name}  (sha256 {part.digest})"


def _print_sums(new: int, present: int, *, do_it: bool) -> None:
    if not new:
        print(f"nothing to copy: {present:,} already exist")
    elif do_it:
        print(f"{new:,} copied and compared with their source; {present:,} already existed")
    else:
        print(f"{new:,} would be copied, {present:,} already exist; to copy them, add --yes")
