"""`python -m memeval store info | clean | verify | copy`: lists the content of this home, deletes
unneeded data, finds damage, and copies to a database and back.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace
from rich.filesize import decimal

from memeval.cli.parser import Parser
from memeval.config.checks import check_store
from memeval.config.paths import cache_dir, outputs_dir, prepared_dir
from memeval.config.schema import StoreConfig
from memeval.errors import UserError
from memeval.process.root import project_root
from memeval.store.cleaning import (
    DAY_S,
    Needed,
    Removal,
    Rules,
    cell_under_way,
    choose_removals,
    read_needed,
    remove_item,
)
from memeval.store.inventory import (
    Copied,
    CopyDirection,
    Home,
    StoredItem,
    StoredKind,
    list_items,
)
from memeval.store.opening import open_memories
from memeval.text.shown import counted, one_line, printable, some_of

NAMED = 3
"""How many run folders a message names; the others are counted."""
KEPT_DAYS = 7.0
USAGE_OF_CLEAN = f"""
list what can be removed: leftovers of killed processes, and data that no run needs

--yes           remove it (default: only list it)
--days N:float  keep anything that changed in the last N days (default: {KEPT_DAYS:g}): an
    unfinished run may need it
--memories-older-than DAYS:float  also remove memories older than this: they are rebuilt when
    needed
"""
USAGE_OF_COPY = """
list what would be copied between this home and a database; --yes copies it

--to| URL       from this home to postgresql://HOST/DATABASE
--from| URL     from that database to this home
--memories URL  also copy saved memories, to or from this URL (as in store.memories)
--yes           copy it (default: only list it)
"""
USAGES = {
    "info": "show what is stored by kind: number, size, age",
    "verify": "compare rows, texts, memories and cached replies with their digests",
    "clean": USAGE_OF_CLEAN,
    "copy": USAGE_OF_COPY,
}
PARSER = Parser.of_actions(
    "store", "shows, cleans, verifies and copies what is stored in this home", USAGES
)


def store(arguments: Sequence[str]) -> int:
    """Shows, cleans, verifies or copies what is stored.

    Exit status 1 if something is damaged, or could not be removed or copied.
    """
    chosen = PARSER.parse_args(list(arguments))
    home = Home(outputs=outputs_dir(), prepared=prepared_dir(), cache=cache_dir())
    if chosen.action == "info":
        return _show_info(home)
    if chosen.action == "verify":
        return _verify(home)
    if chosen.action == "copy":
        return _copy(home, chosen)

    return _clean(home, _rules(chosen), do_it=chosen.yes)


def _rules(chosen: argparse.Namespace) -> Rules:
    older = chosen.memories_older_than
    kept = KEPT_DAYS if chosen.days is None else chosen.days
    for option, days in (("--days", kept), ("--memories-older-than", older)):
        if days is not None and not 0 <= days < float("inf"):
            raise UserError(f"store clean: {option} must be 0 or more days, not {days:g}")

    rules = Rules(unneeded_s=kept * DAY_S)
    return rules if older is None else replace(rules, memories_s=older * DAY_S)


def _show_info(home: Home) -> int:
    items, now = list_items(home), time.time()
    needed = _read_needs(items)
    print(f"{'kind':<10} {'items':>7} {'size':>9} {'newest':>8} {'oldest':>8}  not needed")
    for kind in StoredKind:
        of_kind = [item for item in items if item.kind is kind]
        if of_kind:
            print(_line_of(kind, of_kind, needed, now))

    print(f"{'in all':<10} {len(items):>7} {_size_of(items):>9}")
    print(f"below {printable(str(project_root()))}")
    return 0


def _line_of(kind: StoredKind, items: Sequence[StoredItem], needed: Needed, now: float) -> str:
    times, unneeded = [], []
    for item in items:
        times.append(item.changed)
        if not needed.needs(item):
            unneeded.append(item)

    newest, oldest = as_age(now - max(times)), as_age(now - min(times))
    line = f"{kind:<10} {len(items):>7} {_size_of(items):>9} {newest:>8} {oldest:>8}"
    if not unneeded:
        return line
    if needed.unknown:
        return f"{line}  unknown"

    return f"{line}  {len(unneeded)}, {_size_of(unneeded)}"


def _size_of(items: Iterable[StoredItem]) -> str:
    return decimal(sum(item.size for item in items))


def _read_needs(items: Iterable[StoredItem]) -> Needed:
    return read_needed(item.paths[0] for item in items if item.kind is StoredKind.RUNS)


def _clean(home: Home, rules: Rules, *, do_it: bool) -> int:
    items, now = list_items(home), time.time()
    needed = _read_needs(items)
    removals = choose_removals(items, needed, rules, now)
    if needed.unknown:
        _report_unknown(needed)

    of_any_age = choose_removals(items, needed, replace(rules, unneeded_s=0.0), now)
    young = len(of_any_age) - len(removals)

    # Reported once here, and checked again for each memory before it is removed.
    if cell_under_way(home):
        others = [removal for removal in removals if removal.item.kind is not StoredKind.MEMORIES]
        if len(others) < len(removals):
            print("a run is in progress in this home: memories are kept", file=sys.stderr)
            removals = others

    failed = _remove_all(removals, home, now, do_it=do_it)
    if young:
        verb, them = ("is", "it") if young == 1 else ("are", "them")
        print(
            f"{counted(young, 'item')} that no run needs {verb} newer than "
            f"{rules.unneeded_s / DAY_S:g} days: --days 0 also removes {them}"
        )

    return failed


def _remove_all(removals: Sequence[Removal], home: Home, now: float, *, do_it: bool) -> int:
    """Removes items, or only lists them; returns 1 if one of them can't be removed."""
    gone = failed = 0
    for removal in removals:
        outcome = _remove(removal, home) if do_it else "would remove"
        if outcome == "can't remove":
            failed = 1
        elif outcome != "in use":
            gone += removal.item.size

        item = removal.item
        size, age = decimal(item.size), as_age(now - item.changed)
        path = printable(str(_below_home(item.paths[0])))
        print(f"{outcome}  {item.kind:<9} {size:>9} {age:>7}  {path}  ({removal.reason})")

    if not removals:
        print("nothing to remove")
    elif do_it:
        print(f"{decimal(gone)} removed")
    else:
        print(f"{decimal(gone)} would be removed; to remove it, add --yes")

    return failed


def _report_unknown(needed: Needed) -> None:
    names = some_of([one_line(path.name, 40) for path in needed.unknown], NAMED)
    print(
        f"run.json of {names} can't be read, or names no keys: rows and memories are kept, "
        "because these runs may need them",
        "  to see why:  python -m memeval verify",
        sep="\n",
        file=sys.stderr,
    )


def _remove(removal: Removal, home: Home) -> str:
    try:
        return "removed" if remove_item(removal.item, home) else "in use"
    except OSError as error:
        path = one_line(removal.item.paths[0], 400)
        print(f"{path} can't be removed: {error.strerror or error}", file=sys.stderr)
        return "can't remove"


def _below_home(path: Path) -> Path:
    root = project_root()
    return path.relative_to(root) if path.is_relative_to(root) else path


def _verify(home: Home) -> int:
    from memeval.pipeline.verify.stored import verify_items

    problems = 0
    checked = dict.fromkeys(StoredKind, 0)
    for item, misfits in verify_items(list_items(home)):
        checked[item.kind] += 1
        problems += len(misfits)
        for line in misfits:
            print(f"{printable(str(_below_home(item.paths[0])))}: {printable(line)}")

    counts = ", ".join(f"{count} {kind}" for kind, count in checked.items() if count)
    print(f"checked: {counts or 'nothing'}; problems: {problems}")
    if problems:
        print("damaged data is skipped, and recreated by the next command that needs it")

    return int(problems > 0)


def _copy(home: Home, chosen: argparse.Namespace) -> int:
    """Copies what the target lacks, or lists it. Exit status 1 if something could not be copied.

    Raises `UserError` if a URL can't be used, and `StorageError` if either side fails.
    """
    from memeval.store.copying import Copying
    from memeval.store.copying_memories import copy_memories
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


def as_age(seconds: float) -> str:
    """`5 min`, `3 h`, `12 d`."""
    minutes = max(0.0, seconds) / 60
    if minutes < 60:
        return f"{minutes:.0f} min"
    if minutes < 48 * 60:
        return f"{minutes / 60:.0f} h"

    return f"{minutes / (24 * 60):.0f} d"
