"""Imports the runs of a package into this home, separate from the home's own runs.

They are in `outputs/imported/<package id>/`, with their own rows: no run of this home uses these
rows, even under the same key.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from memeval.config.paths import outputs_dir
from memeval.datasets.granularity import chunks
from memeval.errors import UserError
from memeval.packages.data import PackagedData, data_of, with_texts
from memeval.packages.environment import packed_prices
from memeval.packages.form import is_withheld
from memeval.packages.levels import Checks, verify_package
from memeval.packages.read import Package, unpack_to
from memeval.results import RECORDS_FILE, file_digest, json_line, texts_file
from memeval.results.files import write_atomically, writing
from memeval.results.own_prices import PACKAGE_PRICES
from memeval.results.private import make_folder
from memeval.results.run import Run
from memeval.results.summary import IMPORTED_RUNS, PACKAGE_RUN, PACKAGE_TAG
from memeval.results.texts import WITHHELD, reference
from memeval.text.names import text_digest
from memeval.text.shown import in_shell, one_line


class Unpacked(Struct, frozen=True):
    """Runs and files taken from a package."""

    folder: Path
    runs: tuple[Run, ...]
    signer: str
    """The result of level 5, in words."""
    restored: int
    """Runs whose texts were restored from the data on this machine."""


def unpack(path: Path, allowed_signers: Path | None = None) -> Unpacked:
    """Unpacks a package that is sound; a second time gives the same result.

    Raises `UserError` for a package with a problem, and for an unsigned one where signers are
    listed; `StorageError` if the home can't be written.
    """
    signer = ""
    for level in verify_package(path, Checks(allowed_signers=allowed_signers)):
        if level.problems:
            raise UserError(
                f"{one_line(path.name)}: level {level.number} ({level.name}): {level.problems[0]}",
                f"to see more:  python -m memeval verify {in_shell(path)}",
            )
        if level.name == "who":
            signer = level.did
            if allowed_signers is not None and not level.is_done:
                raise UserError(f"{one_line(path.name)}: {signer}, but --allowed-signers is set")

    root = outputs_dir() / IMPORTED_RUNS
    with writing(root):
        make_folder(root)
        with TemporaryDirectory(prefix=".", suffix=".tmp", dir=root) as name:
            part = Path(name)
            package = unpack_to(path, part)
            restored = sum(_adopt_run(package, run, signer) for run in package.runs)
            shutil.rmtree(part / "package")
            target = root / package.id
            shutil.rmtree(target, ignore_errors=True)
            part.rename(target)

    from memeval.comparison.finding import finished_runs

    return Unpacked(target, tuple(finished_runs(target / "runs")), signer, restored)


def imported_key(package: str, key: str) -> str:
    """The key of a run that came in a package: a run of this home may have the original key."""
    return text_digest(f"{package} {key}")[:16]


def _adopt_run(package: Package, run: Run, signer: str) -> bool:
    """Tags a run, gives it its own key, and restores its texts; returns whether it restored any."""
    try:
        data = data_of(run)
    except UserError:
        data = None

    is_restored = data is not None and any(
        is_withheld(record.question) for record in run.iter_records()
    )
    if data is not None and is_restored:
        # Not written in place: the file is a link to the entry of the package.
        write_atomically(run.folder / RECORDS_FILE, _restored_records(run, data))
        _restore_texts(run, data)

    key = imported_key(package.id, run.key)
    tags = {
        **run.summary.tags,
        PACKAGE_TAG: package.id,
        PACKAGE_RUN: run.key,
        PACKAGE_PRICES: json.dumps(packed_prices(package)),
        "package_who": signer,
    }
    if "run_key" in tags:
        tags["run_key"] = key

    files = {**run.summary.files, RECORDS_FILE: file_digest(run.folder / RECORDS_FILE)}
    summary = replace(run.summary, run_key=key, tags=tags, files=files)
    summary.write(run.folder)
    run.folder.rename(run.folder.with_name(key))
    return is_restored


def _restored_records(run: Run, data: PackagedData) -> Iterator[str]:
    for record in run.iter_records():
        yield json_line(with_texts(record, data.questions[record.question_id]).to_json())


def _restore_texts(run: Run, data: PackagedData) -> None:
    """Restores the texts of chunks, cut by the run's granularity, and of questions."""
    known: dict[str, str] = {}
    for case in data.cases.values():
        for chunk in chunks(case, data.config.granularity):
            known[reference(chunk.text)] = chunk.text
        for question in case.questions:
            known[reference(question.text)] = question.text

    for keys in run.summary.identity["keys"]:
        path = texts_file(run.folder.parent.parent / "answers" / f"{keys['answer']}.jsonl")
        write_atomically(path, _restored_texts(path, known))


def _restored_texts(path: Path, known: Mapping[str, str]) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry.get(WITHHELD) and entry["id"] in known:
                entry = {"id": entry["id"], "text": known[entry["id"]]}

            yield json_line(entry, (",", ":"))
