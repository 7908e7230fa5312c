"""Disputes: notes next to the packages, and packages of one system that differ."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from memeval.comparison.build import compare_runs
from memeval.errors import UserError
from memeval.metrics.registry import metrics
from memeval.packages.board.entries import BoardEntry, name_of
from memeval.packages.board.records import (
    LONGEST,
    BoardTable,
    DisputeNote,
    PackageDifference,
    Setting,
)
from memeval.report.page.build import setting_data
from memeval.text.redaction import redacted
from memeval.text.shown import one_line

FOLDER = "disputes"
LARGEST = 20_000
"""Maximum size of a note, in bytes."""
MAX_COMPARED = 8
"""Maximum number of packages compared with the best of their system: the least accurate."""


def read_disputes(packages: Path) -> tuple[DisputeNote, ...]:
    """The notes `disputes/*.md` next to a folder of packages, by name.

    Raises `UserError` for a note that is too large or can't be read.
    """
    notes = []
    for path in sorted((packages.resolve().parent / FOLDER).glob("*.md")):
        try:
            # A link may lead to private files.
            if path.is_symlink() or path.stat().st_size > LARGEST:
                raise ValueError(f"a symbolic link, or larger than {LARGEST:,} bytes")

            text = redacted(path.read_text(encoding="utf-8")).strip()
        except (OSError, ValueError) as error:
            raise UserError(f"{FOLDER}/{one_line(path.name)}: {one_line(error)}") from error

        title, _, rest = text.partition("\n")
        title = one_line(title.lstrip("# "), LONGEST) or one_line(path.stem, LONGEST)
        notes.append(DisputeNote(one_line(path.name, LONGEST), title, rest.strip()))

    return tuple(notes)


def differing_packages(
    table: BoardTable, entries: Sequence[BoardEntry]
) -> Iterator[PackageDifference]:
    """Packages of one system that are shown to differ in accuracy, on the same questions and by the
    same judge: the best run of each is compared with the best of all.

    Raises `UserError` if records can't be read.
    """
    order = {row.key: position for position, row in enumerate(table.rows)}
    best: dict[str, dict[str, BoardEntry]] = {}
    for entry in sorted(entries, key=lambda entry: order[entry.run.key]):
        if entry.run.valid and entry.run.metrics.get("accuracy") is not None:
            of_system = best.setdefault(name_of(entry.run.summary), {})
            of_system.setdefault(entry.package.id, entry)

    for system, by_package in sorted(best.items()):
        first, *others = by_package.values()
        if not others:
            continue

        by_key = {entry.run.key: entry for entry in (first, *others[-MAX_COMPARED:])}
        compared = compare_runs(
            [entry.run for entry in by_key.values()],
            metrics()["accuracy"],
            categories=False,
            scores=[entry.scores for entry in by_key.values()],
        )
        for difference in compared.differences:
            if difference.is_shown:
                result, other = difference.result.reversed(), by_key[difference.first]
                yield PackageDifference(
                    table=table.id,
                    dataset=table.dataset,
                    system=one_line(system, LONGEST),
                    first=first.package.id,
                    second=other.package.id,
                    difference=result.mean,
                    low=result.low,
                    high=result.high,
                    settings=tuple(_differing_settings(first, other)),
                )


def _differing_settings(first: BoardEntry, second: BoardEntry) -> Iterator[Setting]:
    """Differences in settings, in memeval's version, and in those of the packages used."""
    for name, values in setting_data([first.run.summary, second.run.summary]).items():
        yield Setting(one_line(name), *map(one_line, values))

    tags, others = first.run.summary.tags, second.run.summary.tags
    versions = {"memeval": (first.package.manifest.memeval, second.package.manifest.memeval)}
    for name in sorted({*tags, *others}):
        if name.startswith("version."):
            versions[name] = tags.get(name, ""), others.get(name, "")

    for name, (value, other_value) in versions.items():
        if value != other_value:
            yield Setting(one_line(name), one_line(value), one_line(other_value))
