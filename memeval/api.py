"""The Python API: `memeval.run(...)`, `memeval.load_runs(...)`, and finished runs as pandas tables.

Overrides are those of the command line (`"system=bm25"`), or keyword arguments (`system="bm25"`,
`llm={"name": "openai", "model": "gpt-4o-mini"}`); a dotted name goes into a dictionary:
`**{"dataset.limit_cases": 1}`.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.config.paths import outputs_dir, prepared_dir
from memeval.config.renamed import current_name, current_override, renamed_to
from memeval.errors import UserError, unknown
from memeval.names import digest_name
from memeval.results import (
    RECORDS_FILE,
    RUN_FILE,
    Record,
    RunSummary,
    Texts,
    read_records,
    texts_file,
)
from memeval.results.files import dump_file, memory_folders

if TYPE_CHECKING:
    import pandas as pd

    from memeval.pipeline.cell import Cell
    from memeval.pipeline.progress import Progress

_COMPOSING = threading.Lock()
"""Hydra composes one config at a time."""

_AGE = re.compile(r"(?P<count>\d{1,6})(?P<unit>[smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9_./:@+-]+")


@dataclass(frozen=True)
class Run:
    """A finished run."""

    folder: Path
    """The run folder, `outputs/runs/<run key>`."""
    summary: RunSummary
    """Everything that the run measured."""

    @property
    def key(self) -> str:
        """The run's identity; the same settings on the same data have the same key."""
        return self.summary.run_key

    @property
    def name(self) -> str:
        """Short and readable: `bm25 turn k=10 keyword short extractive`."""
        return self.summary.name

    @property
    def metrics(self) -> dict[str, float | None]:
        """Metrics by the names of docs/metrics.md; None where a metric is not defined."""
        return dict(self.summary.metrics)

    @property
    def params(self) -> dict[str, str | int | float | bool | None]:
        """The resolved settings, by dotted name."""
        return dict(self.summary.params)

    @property
    def valid(self) -> bool:
        """False where the coverage is below `min_coverage`."""
        return self.summary.valid

    def records(self) -> pd.DataFrame:
        """One row per question and repeat, in the data set's order.

        Nested fields have dotted names (`verdict.label`, `metrics.token_f1`, `times.answer_ms`);
        lists stay lists. Raises `UserError` where the records can't be read.
        """
        import pandas as pd

        return pd.DataFrame([_flatten(record.to_json()) for record in self._records])

    def retrieved(self) -> pd.DataFrame:
        """One row per retrieved chunk, best first.

        Columns: `question_id`, `repeat`, `rank` (from 1), `turn_ids`, `evidence` (whether it covers
        a piece of evidence), `score`, `time` and `text`, as it was shown to the reader. Questions
        for which the system shows nothing that it retrieved have no rows. `text` is None where the
        texts are not on this machine, and in runs of version 0.1.
        """
        import pandas as pd

        columns = ["question_id", "repeat", "rank", "turn_ids", "evidence", "score", "time", "text"]
        rows = []
        for record in self._records:
            evidence, texts = set(record.evidence), self._texts(record.seed)
            for rank, chunk in enumerate(record.retrieved or (), start=1):
                row = {
                    "question_id": record.question_id,
                    "repeat": record.repeat,
                    "rank": rank,
                    "turn_ids": list(chunk.turn_ids),
                    "evidence": not evidence.isdisjoint(chunk.turn_ids),
                    "score": chunk.score,
                    "time": chunk.time,
                    "text": texts.get(chunk.text) if texts else None,
                }
                rows.append(row)

        return pd.DataFrame(rows, columns=columns)

    def context(self, question_id: str, repeat: int = 0) -> str | None:
        """The context of one answer as the reader saw it; None where it is not kept.

        Raises `UserError` for a question that the run did not ask.
        """
        record = self._record(question_id, repeat)
        texts = self._texts(record.seed)
        return texts.get(record.context) if texts else None

    def prompt(self, question_id: str, repeat: int = 0) -> list[dict[str, str | None]]:
        """The messages that were sent for one answer, with `role` and `content`; none where nothing
        was sent, as offline.

        Raises `UserError` for a question that the run did not ask.
        """
        record = self._record(question_id, repeat)
        texts = self._texts(record.seed)
        return [
            {"role": message.role, "content": texts.get(message.text) if texts else None}
            for message in record.prompt
        ]

    def dump(self) -> pd.DataFrame:
        """What the memories extracted or wrote, one row per item: `case_id`, `repeat`, and the
        item's own fields (`kind`, `text` …).

        Empty for systems that only keep what was said, and where the memories are not on this
        machine.
        """
        import pandas as pd

        rows = []
        for number, keys in enumerate(self.summary.identity.get("keys", ())):
            for case_id in dict.fromkeys(record.case_id for record in self._records):
                for folder in memory_folders(prepared_dir(), keys["prepare"])[:1]:
                    rows += [
                        {"case_id": case_id, "repeat": number, **item}
                        for item in _json_lines(dump_file(folder / digest_name(case_id)))
                    ]

        return pd.DataFrame(rows)

    def _record(self, question_id: str, repeat: int) -> Record:
        for record in self._records:
            if record.question_id == question_id and record.repeat == repeat:
                return record

        raise unknown("question", question_id, (record.question_id for record in self._records))

    def _texts(self, seed: int) -> Texts | None:
        """The texts that the answers under a seed refer to; None where the run does not say where
        they are.
        """
        if seed not in self._texts_by_seed:
            keys = [
                repeat["answer"]
                for repeat in self.summary.identity.get("keys", ())
                if repeat["seed"] == seed
            ]
            path = outputs_dir() / "answers" / f"{keys[0]}.jsonl" if keys else None
            self._texts_by_seed[seed] = Texts(texts_file(path)) if path else None

        return self._texts_by_seed[seed]

    @cached_property
    def _texts_by_seed(self) -> dict[int, Texts | None]:
        return {}

    @cached_property
    def _records(self) -> list[Record]:
        path = self.folder / RECORDS_FILE
        try:
            return list(read_records(path))
        except (OSError, ValueError) as error:
            raise UserError(
                f"{path} can't be read: {error}", "the same command makes it again"
            ) from error


def _json_lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_bytes().split(b"\n")
        return [json.loads(line) for line in lines if line]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path} can't be read: {error}",
            "python -m memeval prepare --fresh=prepare makes it again",
        ) from error


def run(*overrides: str, progress: bool = True, **settings: Any) -> Run:
    """Runs one configuration and returns the finished run.

    What was finished before is not done again.

    `progress=False` prints nothing. Works where an event loop is running, as in Jupyter: the run
    has a loop and a thread of its own. Raises `UserError` for settings that can't be run,
    `WorldError` where the disk or the tracking store refuses.
    """
    return _start([*overrides, *as_overrides(settings)], progress=progress).result()


async def arun(*overrides: str, progress: bool = True, **settings: Any) -> Run:
    """`run`, to be awaited: other tasks of the event loop go on, and several runs may be under way
    at once.
    """
    started = _start([*overrides, *as_overrides(settings)], progress=progress)
    return await asyncio.wrap_future(started)


def _start(words: Sequence[str], *, progress: bool) -> Future[Run]:
    """A run in a thread of its own.

    The thread is a daemon, so that Ctrl-C in the caller ends the process.
    """
    future: Future[Run] = Future()

    def target() -> None:
        try:
            future.set_result(_run(words, progress=progress))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            future.set_exception(error)

    future.set_running_or_notify_cancel()
    threading.Thread(target=target, name="memeval-run", daemon=True).start()

    return future


def _run(words: Sequence[str], *, progress: bool) -> Run:
    from memeval.cli.cell import complete_cell
    from memeval.cli.progress import progress_for
    from memeval.pipeline.progress import Silent

    cell = _open(words)

    def show() -> AbstractContextManager[Progress]:
        return progress_for(cell.name) if progress else nullcontext(Silent())

    return Run(cell.folder, complete_cell(cell, show).summary)


def _open(words: Sequence[str]) -> Cell:
    from memeval.cli.compose import compose_config
    from memeval.cli.main import set_environment
    from memeval.pipeline.cell import open_cell

    set_environment()
    command = shlex.join(["python", "-m", "memeval", *map(current_override, words)])
    with _COMPOSING:
        return open_cell(compose_config(words), command)


def load_run(which: str | Path) -> Run:
    """A finished run, by its key, the beginning of its key, or its folder.

    Raises `UserError` where there is none, or more than one.
    """
    folder = Path(which)
    if not (folder / RUN_FILE).is_file():
        folder = _folder_of(str(which))

    try:
        return Run(folder, RunSummary.read(folder))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{folder / RUN_FILE} can't be read: {error}") from error


def _folder_of(key: str) -> Path:
    folders = {folder.name: folder for folder in _run_folders()}
    matching = [name for name in folders if key and name.startswith(key)]
    if len(matching) > 1:
        raise UserError(
            f"{len(matching)} runs begin with '{key}': {', '.join(sorted(matching)[:5])}"
        )

    if not matching:
        raise unknown("run", key, folders)

    return folders[matching[0]]


def load_runs(
    *,
    sweep: str | None = None,
    dataset: str | None = None,
    since: datetime | timedelta | str | None = None,
) -> list[Run]:
    """The finished runs of this project, the oldest first.

    Each argument leaves out the runs that don't match it.

    `since` is a time, a span up to now, or such a span as text: `"7d"`, `"12h"`. Folders that hold
    no readable run are passed over.
    """
    earliest = _earliest(since)
    runs = [run for folder in _run_folders() if (run := _readable(folder)) is not None]
    if sweep is not None:
        runs = [run for run in runs if run.summary.sweep == sweep]

    if dataset is not None:
        name = current_name("dataset", dataset)
        runs = [run for run in runs if _dataset_name(run) == name]

    if earliest is not None:
        runs = [run for run in runs if datetime.fromisoformat(run.summary.finished_at) >= earliest]

    return sorted(runs, key=lambda run: (datetime.fromisoformat(run.summary.finished_at), run.key))


def _dataset_name(run: Run) -> str:
    """The name of a run's data set as it is today, which the run may be older than."""
    name = run.summary.dataset
    return renamed_to("dataset", name) or name


def _run_folders() -> list[Path]:
    folder = outputs_dir() / "runs"
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _readable(folder: Path) -> Run | None:
    try:
        summary = RunSummary.read(folder)
        datetime.fromisoformat(summary.finished_at)
    except (OSError, ValueError, TypeError, KeyError):
        return None

    return Run(folder, summary)


def _earliest(since: datetime | timedelta | str | None) -> datetime | None:
    """The time from which on a run counts, with a time zone."""
    if since is None:
        return None

    if isinstance(since, str):
        age = _AGE.fullmatch(since)
        if age is None:
            raise UserError(
                f"since='{since}' is not a span of time", "use:  since='7d', '12h' or '30m'"
            )

        since = timedelta(**{_UNITS[age["unit"]]: int(age["count"])})

    if isinstance(since, timedelta):
        return datetime.now().astimezone() - since

    return since.astimezone()


def as_overrides(settings: Mapping[str, Any]) -> list[str]:
    """Keyword arguments as overrides.

    Of a dictionary, `name` chooses the option and the other keys set its fields.
    """
    overrides = []
    for name, value in settings.items():
        if not isinstance(value, Mapping):
            overrides.append(f"{name}={_value(value)}")
            continue

        if "name" in value:
            overrides.append(f"{name}={_value(value['name'])}")

        fields = {field: inner for field, inner in value.items() if field != "name"}
        overrides += [f"{name}.{field}={_value(inner)}" for field, inner in fields.items()]

    return overrides


def _value(value: Any) -> str:
    """A value as Hydra's override grammar writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_value, value))}]"

    text = str(value)
    if isinstance(value, int | float) or _PLAIN_VALUE.fullmatch(text):
        return text

    quoted = re.sub(r"(\\*)'", lambda match: match[1] * 2 + r"\'", text)
    trailing = len(quoted) - len(quoted.rstrip("\\"))

    return f"'{quoted}{chr(92) * trailing}'"


def _flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A record with the fields of its dictionaries beside its own, by dotted name."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value

    return flat
