"""Statement registered before a run: cells, questions, judge, comparison, and the smallest
difference that matters; and the check of runs against it.
"""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from memeval.config.identity import result_settings
from memeval.errors import UserError
from memeval.packages.facts import digest_of_ids, question_ids
from memeval.packages.form import LARGEST_SMALL, Digest, Line
from memeval.packages.rows import RunRows
from memeval.packages.signing import signer_of
from memeval.pipeline.execute.rows import is_final
from memeval.pipeline.measure.records import rows_of_run
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.judge_identity import judge_identity
from memeval.results import (
    IngestRow,
    JudgeIdentity,
    Record,
    RunSummary,
    VerdictRow,
    as_json,
    sealed,
    unsealed,
)
from memeval.results.fields import as_plain, read_as
from memeval.results.rows import answer_or_ingest
from memeval.results.run import Run
from memeval.results.summary import PACKAGE_TAG, RunKey
from memeval.text.shown import counted, one_line

LARGEST_SIGNATURE = 100_000
HIGHER, LOWER, DIFFERENT = "higher", "lower", "different"
DIRECTIONS = (HIGHER, LOWER, DIFFERENT)
Json = dict[str, Any]


class StatedCell(Struct, frozen=True, forbid_unknown_fields=True):
    key: RunKey
    name: Line
    data_sha256: Line
    questions: int
    questions_sha256: Digest
    judge: Mapping[str, Any] | None


class StatementContent(Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    cells: tuple[StatedCell, ...]
    """The first is the baseline of the comparison."""
    metric: Line
    direction: Annotated[str, Meta(pattern=f"^(?:{'|'.join(DIRECTIONS)})$")]
    """Expected direction of the other cells against the first."""
    smallest_difference: Annotated[float, Meta(ge=0, le=100)]
    """Points below which a difference does not matter."""
    stopping: Line
    """The stopping rule, in words."""
    said_on: Line = ""
    """Time in UTC according to the signer's clock; only a date in earlier files."""


def make_statement(
    cells: Sequence[Cell],
    *,
    metric: str,
    direction: str,
    smallest_difference: float,
    stopping: str,
    clean: Any,
) -> Json:
    """The sealed statement of planned runs; `clean` replaces content that must stay private."""
    listed = []
    for cell in cells:
        ids: list[str] = []
        for case in cell.dataset.cases():
            ids += [question.question_id for question in case.questions]

        judge = judge_identity(cell)
        stated_judge = None if judge is None else clean(judge.to_json())
        listed.append(
            StatedCell(
                key=cell.run_key,
                name=one_line(clean(cell.name), 1_000),
                data_sha256=cell.loaded.sha256,
                questions=len(ids),
                questions_sha256=digest_of_ids(ids),
                judge=stated_judge,
            )
        )

    statement = StatementContent(
        format=1,
        cells=tuple(listed),
        metric=metric,
        direction=direction,
        smallest_difference=smallest_difference,
        stopping=one_line(stopping, 1_000),
        said_on=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )
    return sealed(json.loads(as_json(as_plain(statement))))


def statement_bytes(statement: Mapping[str, Any]) -> bytes:
    """The content of a statement's file, which a signature signs."""
    return (as_json(statement, indent=1) + "\n").encode()


def read_statement(path: Path) -> Json:
    """The statement in a file. Raises `UserError` if `register` did not write exactly this file."""
    try:
        if path.stat().st_size > LARGEST_SMALL:
            raise ValueError("too large")

        content = json.loads(path.read_bytes())
        _parse(content)
    except OSError as error:
        raise UserError(f"{one_line(path)} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{one_line(path)} was not written by register: {one_line(error)}"
        ) from error

    return dict(content)


def entry_of_package(path: Path, packed: Sequence[Run], known: Sequence[Run]) -> Json:
    """The entry `register.json`: the statement, its signature, the commit that contains it, and the
    runs left out. Raises `UserError` for a signature of another file.
    """
    statement, note = read_statement(path), path.with_name(f"{path.name}.sig")
    signature = None
    if note.is_file():
        signature = note.read_bytes()[:LARGEST_SIGNATURE].decode("ascii", "replace")
        signer_of(statement_bytes(statement), signature.encode(), allowed_signers=None)

    return {
        "said": statement,
        "signature": signature,
        "commit": _commit_of(path),
        "left_out": [*_left_out_notes(packed, known), *_repetition_notes(packed)],
    }


def signed_words(entry: Mapping[str, Any], allowed_signers: Path | None) -> str:
    """Signer and date of a statement, in words; empty if unsigned.

    Raises `UserError` for a signature of another statement, or a signer who is not in the file.
    """
    statement, signature = entry.get("said"), entry.get("signature")
    if not isinstance(statement, dict) or not isinstance(signature, str):
        return ""

    signer = signer_of(statement_bytes(statement), signature.encode(), allowed_signers)
    date = one_line(statement.get("said_on"), 20)
    return f", signed by {signer or 'an unknown key'}, dated {date}"


def register_problems(
    entry: Mapping[str, Any],
    runs: Sequence[Run],
    *,
    records: Mapping[str, Sequence[Record]],
    rows: Mapping[str, RunRows],
) -> Iterator[str]:
    """Deviations of the runs from the statement."""
    try:
        statement = _parse(entry.get("said"))
    except ValueError as error:
        yield f"register.json: {one_line(error, 200)}"
        return

    registered = {cell.key for cell in statement.cells}
    by_key = {run.key: run for run in runs}
    for cell in statement.cells:
        run = by_key.pop(cell.key, None)
        if run is None:
            yield (
                f"{cell.key} ({one_line(cell.name, 80)}) was registered, but is not in the package"
            )
            continue

        if _began_before(run, statement.said_on):
            date = one_line(statement.said_on, 20)
            yield f"{cell.key}: it began before it was registered, on {date}"

        answers = rows[run.key].answers.values()
        others = [answer.origin for answer in answers if answer.origin not in registered]
        if others:
            names = one_line(", ".join(sorted(set(others))), 200)
            yield f"{cell.key}: {counted(len(others), 'answer')} from unregistered runs: {names}"

        yield from _other_conditions(cell, run.summary, records[run.key])

    for key in by_key:
        yield f"{key} ran, but was not registered beforehand"


def _other_conditions(
    cell: StatedCell, summary: RunSummary, records: Sequence[Record]
) -> Iterator[str]:
    if digest_of_ids(question_ids(records)) != cell.questions_sha256:
        yield f"{cell.key}: the questions differ from the registered ones"
    if summary.data_sha256 != cell.data_sha256:
        yield f"{cell.key}: the data differs from the registered data"
    if cell.judge is not None and summary.judge != _judge(cell.judge):
        yield f"{cell.key}: the judge differs from the registered one"


def _began_before(run: Run, said_on: str) -> bool:
    """Whether a run began before a time, or before a day if only the day is known."""
    try:
        began = datetime.fromisoformat(run.summary.started_at).astimezone(UTC)
        stated = datetime.fromisoformat(said_on)
    except ValueError:
        return False

    return began < stated.replace(tzinfo=stated.tzinfo or UTC)


def _judge(content: Mapping[str, Any]) -> JudgeIdentity | None:
    try:
        return read_as(content, JudgeIdentity)
    except ValueError:
        return None


def _parse(content: Any) -> StatementContent:
    """The statement. Raises `ValueError` for content that `register` did not write."""
    return read_as(unsealed(content), StatementContent)


def _commit_of(path: Path) -> Json | None:
    """The first commit that contains the file unchanged, if any."""

    def git(*words: str) -> str:
        command = ["git", "-C", str(path.resolve().parent), *words]
        try:
            done = subprocess.run(command, check=False, capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return ""

        return "" if done.returncode else done.stdout.decode(errors="replace").strip()

    content = git("hash-object", str(path.resolve()))
    log = git("log", "--format=%H %cI", "--reverse", f"--find-object={content}", "--", path.name)
    if not content or not log:
        return None

    commit, _, date = log.splitlines()[0].partition(" ")
    return {"commit": commit, "date": date}


def _left_out_notes(packed: Sequence[Run], known: Sequence[Run]) -> list[str]:
    """Notes on the runs of this home with the settings of a packed run, but outside the package."""
    keys, settings = {run.key for run in packed}, list(map(_settings, packed))
    counts: Counter[str] = Counter()
    for run in known:
        if run.key in keys or PACKAGE_TAG in run.summary.tags or _settings(run) not in settings:
            continue

        kind = "finished run" if run.valid else "invalid run"
        if run.summary.is_stopped:
            kind = "stopped run"

        counts[kind] += 1

    notes = []
    for kind, count in sorted(counts.items()):
        runs = counted(count, kind)
        notes.append(f"{runs} of the same settings (other seeds or repeats) left out")

    return notes


def _repetition_notes(packed: Sequence[Run]) -> Iterator[str]:
    """Notes on results that runs replaced although they were complete, as `--fresh` does."""
    for run in packed:
        outputs, count = run.folder.resolve().parent.parent, 0
        ids: dict[int, list[str]] = {}
        for record in run.iter_records():
            ids.setdefault(record.repeat, []).append(record.question_id)

        for number, keys in enumerate(run.summary.identity["keys"]):
            for stage, folder in (("answer", "answers"), ("judge", "verdicts")):
                rows = rows_of_run(
                    outputs / folder / f"{keys[stage]}.jsonl",
                    {stage: keys[stage], "seed": keys["seed"]},
                    answer_or_ingest if stage == "answer" else VerdictRow.from_json,
                    ids=ids.get(number, ()),
                    summary=run.summary,
                )
                current = set(rows.seals.values())
                for row, seal in rows.replaced:
                    if not isinstance(row, IngestRow) and is_final(row) and seal not in current:
                        count += 1

        if count:
            yield f"{run.key}: {counted(count, 'earlier result')} replaced by later ones (--fresh)"


def _settings(run: Run) -> Json:
    settings = result_settings(run.summary.params, run.summary.identity)
    for name in ("seed", "num_runs", "label"):
        settings.pop(name, None)

    return settings
