"""Reads a folder of packages, checks each, and compares the runs of each protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from memeval.comparison.claims.reading import load_claims
from memeval.errors import UserError
from memeval.packages.board.checking import Checked, Refused, check_packages
from memeval.packages.board.disputes import differing_packages, read_disputes
from memeval.packages.board.entries import entries_of, name_of, protocol_id
from memeval.packages.board.questions import questions_of
from memeval.packages.board.records import (
    JSON_VERSION,
    LONGEST,
    Board,
    LeftOut,
    LevelResult,
    PackageData,
)
from memeval.packages.board.tables import distinguish_tables, table_of
from memeval.packages.form import SUFFIX
from memeval.packages.levels import Level
from memeval.packages.read import Package
from memeval.text.shown import counted, one_line


def collect(folder: Path, allowed_signers: Path | None = None, *, again: bool = False) -> Board:
    """The board of all packages of a folder; `again` also checks those that were checked before.

    Raises `UserError` for a folder without packages, and for a dispute that can't be read.
    """
    paths = packages_in(folder)
    if not paths:
        raise UserError(
            f"board: no *{SUFFIX} packages in {one_line(folder)}",
            "write one:  python -m memeval pack dataset=demo -o FILE.memeval",
        )

    checked = list(check_packages(paths, allowed_signers, again=again))
    sound, left_out = _drop_refused(checked)
    kept, replaced = _drop_replaced(sound)
    groups = entries_of([(one.package, one.scores) for one in kept])
    claims = load_claims()
    tables = distinguish_tables([table_of(name, own, claims) for name, own in groups.items()])
    apart = [one for table in tables for one in differing_packages(table, groups[table.id])]
    questions = {table.id: questions_of(groups[table.id], table.rows) for table in tables}
    return Board(
        version=JSON_VERSION,
        packages=tuple(map(_package_data, kept)),
        tables=tables,
        left_out=(*left_out, *replaced),
        disputes=read_disputes(folder),
        apart=tuple(apart),
        questions={name: own for name, own in questions.items() if own},
        known=sum(one.is_known for one in checked if isinstance(one, Checked)),
    )


def packages_in(folder: Path) -> list[Path]:
    """The packages of a folder by name; empty if the folder does not exist."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def _drop_refused(
    checked: Sequence[Refused | Checked],
) -> tuple[list[Checked], list[LeftOut]]:
    sound: dict[str, Checked] = {}
    left_out = []
    for one in checked:
        if isinstance(one, Refused):
            level = one.level
            # Only the number of problems: a damaged package's own claims are not shown to others.
            what = f"level {level.number} ({level.name}): {counted(len(level.problems), 'problem')}"
            left_out.append(LeftOut(one_line(one.path.name, LONGEST), what))
        elif one.package.id in sound:
            first = one_line(sound[one.package.id].package.path.name, LONGEST)
            name = one_line(one.package.path.name, LONGEST)
            left_out.append(LeftOut(name, f"the same as {first}"))
        else:
            sound[one.package.id] = one

    return list(sound.values()), left_out


def _drop_replaced(sound: Sequence[Checked]) -> tuple[list[Checked], list[LeftOut]]:
    """Drops packages that another package replaces entirely."""
    kept, replaced = [], []
    for one in sound:
        by = [other for other in sound if _replaces(other.package, one.package)]
        if by:
            reason = f"replaced by {one_line(by[0].package.path.name, LONGEST)}"
            replaced.append(LeftOut(one_line(one.package.path.name, LONGEST), reason))
        else:
            kept.append(one)

    return kept, replaced


def _replaces(new: Package, old: Package) -> bool:
    """Whether a package replaces another one, and contains all its systems and protocols."""
    return new.manifest.supersedes == old.id and system_protocol_pairs(
        new
    ) >= system_protocol_pairs(old)


def system_protocol_pairs(package: Package) -> set[tuple[str, str]]:
    """System and protocol of each run: no two packages of a board may have the same pair."""
    return {(name_of(run.summary), protocol_id(package, run.key)) for run in package.runs}


def _package_data(checked: Checked) -> PackageData:
    package = checked.package
    return PackageData(
        id=package.id,
        file=one_line(package.path.name, LONGEST),
        who=one_line(package.manifest.who, LONGEST),
        licence=one_line(package.manifest.licence, LONGEST),
        marks=tuple(map(mark_of, checked.levels)),
        said=_registration(package.register, checked.levels[-1]),
    )


def _registration(register: Mapping[str, Any] | None, registered: Level) -> str:
    """Whether the runs were registered beforehand, and the proof of the date."""
    if register is None:
        return "said afterwards"
    if registered.problems:
        return "not as it was said beforehand"

    commit, said = register.get("commit"), register.get("said")
    if not isinstance(commit, dict):
        if isinstance(register.get("signature"), str) and isinstance(said, dict):
            return f"said beforehand, in a signed note of {one_line(said.get('said_on'), 10)}"

        return "said beforehand, without a commit or a signature that shows when"

    name, date = one_line(commit.get("commit"), 12), one_line(commit.get("date"), 40)
    return f"said beforehand, in commit {name} of {date[:10]}"


def mark_of(level: Level) -> LevelResult:
    """Result of a level, in one word."""
    state = "partly" if level.unchecked else "passed"
    if level.problems:
        state = "failed"
    elif not level.is_done:
        state = "not done"

    return LevelResult(level.name, state, one_line(level.did, 160))
