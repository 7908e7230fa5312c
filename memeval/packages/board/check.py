"""Whether a package may be added to the folder of a board."""

from collections.abc import Iterator
from pathlib import Path

from memeval.errors import UserError
from memeval.packages.board.checking import failed_level
from memeval.packages.board.collect import packages_in, system_protocol_pairs
from memeval.packages.form import SUFFIX
from memeval.packages.levels import verify_package
from memeval.packages.read import Package, open_package
from memeval.text.shown import one_line


def check_package(path: Path, *, most_bytes: int) -> list[str]:
    """Problems of a package, one line each: its size, verify levels 1 to 3, the licence of its
    rows, and other packages of the folder that contain the same systems under the same protocols.

    Level 1 refuses texts that may not be redistributed under the licence of their data. Raises
    `UserError` if the file does not exist.
    """
    if not path.is_file() or path.suffix != SUFFIX:
        raise UserError(f"board check: {one_line(path)} is missing, or not a {SUFFIX} file")

    size = path.stat().st_size
    if size > most_bytes:
        return [f"{size:,} bytes, more than {most_bytes:,}: see --most-mb"]

    failed = failed_level(tuple(verify_package(path)))
    if failed is not None:
        return [f"level {failed.number} ({failed.name}): {line}" for line in failed.problems]

    with open_package(path) as new:
        problems = []
        if not new.manifest.licence.strip():
            problems.append("its rows have no licence: pack it with --licence 'CC0 1.0'")

        return [*problems, *_conflicts(new)]


def _conflicts(new: Package) -> list[str]:
    """Conflicts with packages of the same systems and protocols that it does not replace."""
    problems: list[str] = []
    replaced, pairs, known = new.manifest.supersedes, system_protocol_pairs(new), set[str]()
    for path in packages_in(new.path.parent):
        if path == new.path:
            continue

        try:
            with open_package(path) as other:
                known.add(other.id)
                problems += _conflicts_with(new, pairs, other)
        except UserError:
            continue  # a damaged package, which the board leaves out

    if replaced and replaced not in known:
        problems.append(f"it replaces {one_line(replaced)}, which is not in the folder")

    return problems


def _conflicts_with(new: Package, pairs: set[tuple[str, str]], other: Package) -> Iterator[str]:
    name, earlier = one_line(other.path.name), system_protocol_pairs(other)
    if other.id == new.id:
        yield f"{name} is the same package"
    elif other.id == new.manifest.supersedes:
        if earlier - pairs:
            yield f"it replaces {name}, but lacks its runs of {_system_names(earlier - pairs)}"
    elif earlier & pairs and other.manifest.supersedes != new.id:
        yield (
            f"{name} has {_system_names(earlier & pairs)} under the same protocol: to replace it, "
            f"pack with --supersedes {other.id}"
        )


def _system_names(pairs: set[tuple[str, str]]) -> str:
    systems = sorted(dict(pairs))
    return ", ".join(one_line(system, 60) for system in systems[:5])
