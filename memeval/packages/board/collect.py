"""Reads a folder of packages, checks each, and compares the runs of each protocol."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
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
    PackageDifference,
)
from memeval.packages.board.tables import distinguish_tables, table_of
from memeval.packages.form import SUFFIX
from memeval.packages.levels import Level
from memeval.packages.read import Package
from memeval.text.shown import counted, in_shell, one_line


def collect(folder: Path, allowed_signers: Path | None = None, *, again: bool = False) -> Board:
    """The board of all packages of a folder; `again` also checks those that were checked before.

    Raises `UserError` for a folder without sound packages, and for a dispute that can't be read.
    """
    paths = packages_in(folder)
    if not paths:
        raise UserError(
            f"board: no *{SUFFIX} packages in {one_line(folder)}",
            "write one:  python -m memeval pack dataset=demo -o FILE.memeval",
        )

    checked = list(check_packages(paths, allowed_signers, again=again))
    sound, left_out = _drop_refused(checked)
    if not sound:
        raise UserError(
            f"board: none of the *{SUFFIX} packages in {one_line(folder)} can be shown",
            f"what is wrong:  python -m memeval verify {in_shell(paths[0])}",
        )

    kept, replaced = _drop_replaced(sound)
    groups = entries_of(map(attrgetter("package", "scores"), kept))
    claims = load_claims()
    tables = distinguish_tables([table_of(name, group, claims) for name, group in groups.items()])
    apart: list[PackageDifference] = []
    questions = {}
    for table in tables:
        entries = groups[table.id]
        apart += differing_packages(table, entries)
        if asked := questions_of(entries, table.rows):
            questions[table.id] = asked

    return Board(
        version=JSON_VERSION,
        packages=tuple(map(_package_data, kept)),
        tables=tables,
        left_out=(*left_out, *replaced),
        disputes=read_disputes(folder),
        apart=tuple(apart),
        questions=questions,
        known=sum(outcome.is_known for outcome in checked if isinstance(outcome, Checked)),
    )


def packages_in(folder: Path) -> list[Path]:
    """The packages of a folder by name; empty if the folder does not exist."""
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def _drop_refused(checked: Sequence[Refused | Checked]) -> tuple[list[Checked], list[LeftOut]]:
    sound: dict[str, Checked] = {}
    left_out = []
    for outcome in checked:
        if isinstance(outcome, Refused):
            level = outcome.level
            # Only the number of problems: the contents of a damaged package are not published.
            why = f"level {level.number} ({level.name}): {counted(len(level.problems), 'problem')}"
            left_out.append(LeftOut(one_line(outcome.path.name, LONGEST), why))
        elif outcome.package.id in sound:
            first = _file_name(sound[outcome.package.id].package)
            left_out.append(LeftOut(_file_name(outcome.package), f"the same as {first}"))
        else:
            sound[outcome.package.id] = outcome

    return list(sound.values()), left_out


def _drop_replaced(sound: Sequence[Checked]) -> tuple[list[Checked], list[LeftOut]]:
    kept, replaced = [], []
    for entry in sound:
        new = _replacement(entry.package, sound)
        if new is None:
            kept.append(entry)
        else:
            reason = f"replaced by {_file_name(new)}"
            replaced.append(LeftOut(_file_name(entry.package), reason))

    return kept, replaced


def _replacement(old: Package, sound: Sequence[Checked]) -> Package | None:
    """The package that replaces another one, and contains all its systems and protocols."""
    for other in sound:
        new = other.package
        is_named = new.manifest.supersedes == old.id
        if is_named and system_protocol_pairs(new) >= system_protocol_pairs(old):
            return new

    return None


def _file_name(package: Package) -> str:
    return one_line(package.path.name, LONGEST)


def system_protocol_pairs(package: Package) -> set[tuple[str, str]]:
    """System and protocol of each run: no two packages of a board may have the same pair."""
    return {(name_of(run.summary), protocol_id(package, run.key)) for run in package.runs}


def _package_data(checked: Checked) -> PackageData:
    package = checked.package
    return PackageData(
        id=package.id,
        file=_file_name(package),
        who=one_line(package.manifest.who, LONGEST),
        licence=one_line(package.manifest.licence, LONGEST),
        marks=tuple(map(mark_of, checked.levels)),
        said=_registration(package.register, checked.levels[-1]),
    )


def _registration(register: Mapping[str, Any] | None, registered: Level) -> str:
    """Whether the runs were registered beforehand, and the proof of the date."""
    if register is None:
        return "not registered beforehand"
    if registered.problems:
        return "not as registered"

    commit, said = register.get("commit"), register.get("said")
    if not isinstance(commit, dict):
        if isinstance(register.get("signature"), str) and isinstance(said, dict):
            date = one_line(said.get("said_on"), 40)
            return f"registered beforehand, in a signed file of {date[:10]}"

        return "registered, without a commit or a signature that shows when"

    name, date = one_line(commit.get("commit"), 12), one_line(commit.get("date"), 40)
    return f"registered beforehand, in commit {name} of {date[:10]}"


def mark_of(level: Level) -> LevelResult:
    """Result of a level as one word."""
    state = "passed"
    if level.problems:
        state = "failed"
    elif not level.is_done:
        state = "not done"
    elif level.unchecked:
        state = "partly"

    return LevelResult(level.name, state, one_line(level.did, 160))
