"""Checks the packages of a board in several processes, and remembers the findings.

The same bytes, checked by the same code with the same data, give the same findings: a package is
checked only once, and so are two that differ only in their signer.
"""

import hashlib
import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import memeval
from memeval.comparison.scores import AskedQuestion, RunScores, read_scores
from memeval.config.paths import cache_dir
from memeval.errors import UserError, WorldError
from memeval.metrics.registry import metrics
from memeval.packages.data import data_of
from memeval.packages.levels import Checks, Level, levels_of, who_level
from memeval.packages.read import Package, open_package
from memeval.process.environment import count_cores
from memeval.results.fields import as_plain, read_as, read_json
from memeval.results.files import as_json, file_digest, write_atomically
from memeval.results.private import make_folder
from memeval.results.run import Run
from memeval.text.shown import one_line

NEEDED = 3
"""A package with a problem at a level up to this one is not shown."""
FEW = 4
"""Up to this number of packages, no other process is started."""
WHO = 5
"""The level that is checked each time, because it depends on the board's allowed signers."""
_OF_WHO = ("who", "licence", "supersedes", "replaced")
"""Members of a manifest that no other level checks."""


class Refused(Struct, frozen=True):
    """A package with a problem at a level that the board requires."""

    path: Path
    level: Level


class Checked(Struct, frozen=True):
    """A package that the board may show; its unpacked files have been removed."""

    package: Package
    levels: tuple[Level, ...]
    scores: Mapping[str, RunScores]
    """Accuracy of each question, by run key."""
    is_known: bool
    """Whether its earlier findings were used, instead of a new check."""


def check_packages(
    paths: Sequence[Path], allowed_signers: Path | None = None, *, again: bool = False
) -> Iterator[Refused | Checked]:
    """Checks packages, in their order; `again` ignores earlier findings.

    Raises `WorldError` if a process was killed.
    """
    check = partial(_check_one, allowed_signers=allowed_signers, again=again)
    known: list[Mapping[str, AskedQuestion]] = []
    processes = min(count_cores(), len(paths))
    if len(paths) <= FEW or processes < 2:
        for path in paths:
            yield _share_questions(check(path), known)

        return

    # Not forked: threads may be running, such as numpy's.
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        try:
            for outcome in pool.map(check, paths):
                yield _share_questions(outcome, known)
        except BrokenProcessPool as error:
            raise WorldError(
                "board: a process that checked packages was killed",
                "the same command continues; earlier findings are kept",
            ) from error


def _check_one(path: Path, allowed_signers: Path | None, *, again: bool) -> Refused | Checked:
    try:
        with open_package(path) as package:
            file = _file_of(package, allowed_signers)
            known = None if again else _read(file)
            levels = known or list(levels_of(package, Checks(allowed_signers=allowed_signers)))
            if (failed := failed_level(levels)) is not None:
                return Refused(path, failed)

            if known is None:
                _write(file, levels)

            levels[WHO - 1] = who_level(package, allowed_signers)
            accuracy = metrics()["accuracy"]
            scores = {run.key: read_scores(run, accuracy) for run in package.runs}
            bare = replace(package, signature=None)
            return Checked(bare, tuple(levels), scores, is_known=known is not None)
    except UserError as error:
        return Refused(path, Level(1, problems=[one_line(error, 300)]))


def failed_level(levels: Sequence[Level]) -> Level | None:
    """The first level with a problem, of those that the board requires."""
    for level in levels:
        if level.number <= NEEDED and level.problems:
            return level

    return None


def _share_questions(
    outcome: Refused | Checked, known: list[Mapping[str, AskedQuestion]]
) -> Refused | Checked:
    """The outcome. Runs with the same questions in the same order share one object for them: there
    may be hundreds of thousands.
    """
    if isinstance(outcome, Refused):
        return outcome

    scores = {}
    for key, run_scores in outcome.scores.items():
        asked = run_scores.questions
        for other in known:
            if other == asked and list(other) == list(asked):
                asked = other
                break
        else:
            known.append(asked)

        values = {name: run_scores.values[name] for name in asked if name in run_scores.values}
        scores[key] = replace(run_scores, questions=asked, values=values)

    return replace(outcome, scores=scores)


def _file_of(package: Package, allowed_signers: Path | None) -> Path:
    """Path of the findings about a package, keyed by everything they depend on."""
    manifest = as_plain(package.manifest)
    for name in _OF_WHO:
        del manifest[name]

    data, signers = list(map(_data_here, package.runs)), ""
    if package.register is not None and allowed_signers is not None:
        signers = file_digest(allowed_signers)

    content = as_json([manifest, data, signers, _code_digest(), platform.python_version()])
    name = hashlib.sha256(content.encode()).hexdigest()
    return cache_dir() / "verified" / f"{name}.json"


def _data_here(run: Run) -> str:
    try:
        return data_of(run).loaded.sha256
    except UserError as error:
        return error.message


@cache
def _code_digest() -> str:
    digest = hashlib.sha256()
    folder = Path(memeval.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())

    return digest.hexdigest()


def _read(file: Path) -> list[Level] | None:
    """The findings in a file; None if it does not exist or can't be read."""
    try:
        return read_as(read_json(file.read_bytes()), list[Level])
    except (OSError, ValueError, RecursionError):
        return None


def _write(file: Path, levels: Sequence[Level]) -> None:
    try:
        make_folder(file.parent)
        write_atomically(file, as_json(list(map(as_plain, levels))) + "\n")
    except OSError:
        return  # the home can't be written: the package is checked again next time
