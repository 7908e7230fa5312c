"""Reads a folder of packages, checks each, and compares the runs of each protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memeval.board.disputes import packages_apart, read_disputes
from memeval.board.entries import entries_of, name_of, protocol_id
from memeval.board.questions import questions_of
from memeval.board.records import JSON_VERSION, LONGEST, Board, LeftOut, Mark, PackageData
from memeval.board.tables import table_of, told_apart
from memeval.comparison.claims import load_claims
from memeval.errors import UserError
from memeval.packages.form import SUFFIX
from memeval.packages.levels import Checks, Level, verify_package
from memeval.packages.read import Package, open_package
from memeval.text.shown import one_line

NEEDED = 3
"""A package with a problem at a level up to this one is not shown."""


@dataclass(frozen=True)
class Checked:
    """An open package, and the findings of `verify`."""

    package: Package
    levels: tuple[Level, ...]


def collect(folder: Path, allowed_signers: Path | None = None) -> Board:
    """The board of all packages of a folder.

    Raises `UserError` for a folder without packages, and for a dispute that can't be read.
    """
    paths = packages_in(folder)
    if not paths:
        raise UserError(
            f"board: no package *{SUFFIX} in {one_line(folder)}",
            "write one:  python -m memeval pack dataset=demo -o FILE.memeval",
        )

    with ExitStack() as stack:
        checked, left_out = _open_sound(paths, stack, allowed_signers)
        kept, replaced = _newest(checked)
        groups, claims = entries_of([one.package for one in kept]), load_claims()
        tables = told_apart([table_of(name, own, claims) for name, own in groups.items()])
        apart = [one for table in tables for one in packages_apart(table, groups[table.id])]
        questions = {table.id: questions_of(groups[table.id], table.rows) for table in tables}
        packages = tuple(_package_data(one) for one in kept)

    return Board(
        version=JSON_VERSION,
        packages=packages,
        tables=tables,
        left_out=(*left_out, *replaced),
        disputes=read_disputes(folder),
        apart=tuple(apart),
        questions={name: own for name, own in questions.items() if own},
    )


def packages_in(folder: Path) -> list[Path]:
    """The packages of a folder by name; empty if the folder does not exist."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def _open_sound(
    paths: Sequence[Path], stack: ExitStack, allowed_signers: Path | None
) -> tuple[list[Checked], list[LeftOut]]:
    """The sound packages, open until the stack ends, and the others."""
    checked: dict[str, Checked] = {}
    left_out = []
    for path in paths:
        levels = tuple(verify_package(path, Checks(allowed_signers=allowed_signers)))
        failed = failed_level(levels)
        if failed is not None:
            # Only how many: what a damaged package says of itself is not shown to others.
            what = f"level {failed.number} ({failed.name}): {len(failed.problems)} problems"
            left_out.append(LeftOut(one_line(path.name, LONGEST), what))
            continue

        package = stack.enter_context(open_package(path))
        if package.id in checked:
            first = checked[package.id].package.path.name
            reason = f"the same as {one_line(first, LONGEST)}"
            left_out.append(LeftOut(one_line(path.name, LONGEST), reason))
        else:
            checked[package.id] = Checked(package, levels)

    return list(checked.values()), left_out


def failed_level(levels: Sequence[Level]) -> Level | None:
    """The first level with a problem, of those that the board rests on."""
    return next((one for one in levels if one.number <= NEEDED and one.problems), None)


def _newest(checked: Sequence[Checked]) -> tuple[list[Checked], list[LeftOut]]:
    """Without packages that another one replaces in all that they hold."""
    kept, replaced = [], []
    for one in checked:
        by = [other for other in checked if _replaces(other.package, one.package)]
        if by:
            reason = f"replaced by {one_line(by[0].package.path.name, LONGEST)}"
            replaced.append(LeftOut(one_line(one.package.path.name, LONGEST), reason))
        else:
            kept.append(one)

    return kept, replaced


def _replaces(new: Package, old: Package) -> bool:
    """Whether a package names another one as replaced, and holds its systems and protocols."""
    return new.manifest.supersedes == old.id and places_of(new) >= places_of(old)


def places_of(package: Package) -> set[tuple[str, str]]:
    """System and protocol of each run: one package of a board holds a system under a protocol."""
    return {(name_of(run.summary), protocol_id(package, run.key)) for run in package.runs}


def _package_data(checked: Checked) -> PackageData:
    package = checked.package
    return PackageData(
        id=package.id,
        file=one_line(package.path.name, LONGEST),
        who=one_line(package.manifest.who, LONGEST),
        licence=one_line(package.manifest.licence, LONGEST),
        marks=tuple(map(mark_of, checked.levels)),
        said=_said(package.register),
    )


def _said(register: Mapping[str, Any] | None) -> str:
    """Whether the runs were said before they were run, and which commit is named for the date."""
    if register is None:
        return "said afterwards"

    commit = register.get("commit")
    if not isinstance(commit, dict):
        return "said beforehand, without a commit that shows when"

    name, date = one_line(commit.get("commit"), 12), one_line(commit.get("date"), 40)
    return f"said beforehand, in commit {name} of {date[:10]}"


def mark_of(level: Level) -> Mark:
    """Result of a level, in one word."""
    state = "partly" if level.unchecked else "passed"
    if level.problems:
        state = "failed"
    elif not level.is_done:
        state = "not done"

    return Mark(level.name, state, one_line(level.did, 160))
