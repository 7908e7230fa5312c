"""A finished run: its folder, its summary, its records and the texts that they refer to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.errors import UserError, unknown
from memeval.results.fields import read_as, read_json
from memeval.results.files import dump_file, memory_folders, reading
from memeval.results.record import Record, read_records
from memeval.results.rows import INGEST_PREFIX, Written, case_of_ingest
from memeval.results.summary import RECORDS_FILE, RunSummary
from memeval.results.texts import Texts, texts_file
from memeval.text.names import digest_name
from memeval.text.shown import one_line

if TYPE_CHECKING:
    import pandas as pd

MADE_AGAIN = "to recreate it, repeat the run's command"


@dataclass(frozen=True, repr=False)
class Run:
    """A finished run."""

    folder: Path
    """The run folder, `outputs/runs/<run key>`."""
    summary: RunSummary
    """Everything that the run measured."""

    def __hash__(self) -> int:
        return hash(self.folder)

    def __repr__(self) -> str:
        name, dataset = one_line(self.name, 100), one_line(self.summary.dataset, 60)
        return f"<Run {one_line(self.key, 40)}: {name} on {dataset}>"

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
        """Metrics by the names of docs/metrics.md; None if a metric is not defined."""
        return dict(self.summary.metrics)

    @property
    def params(self) -> dict[str, str | int | float | bool | None]:
        """The resolved settings, by dotted name."""
        return dict(self.summary.params)

    @property
    def valid(self) -> bool:
        """False if the coverage is below `min_coverage`."""
        return self.summary.valid

    def records(self) -> pd.DataFrame:
        """One row per question and repeat, in the data set's order.

        Nested fields have dotted names (`verdict.label`, `metrics.token_f1`, `times.answer_ms`);
        lists stay lists. Raises `UserError` if the records can't be read.
        """
        import pandas as pd

        return pd.DataFrame([_flatten(record.to_json()) for record in self._records])

    def retrieved(self) -> pd.DataFrame:
        """One row per retrieved chunk, best first.

        Columns: `question_id`, `repeat`, `rank` (from 1), `turn_ids`, `evidence` (whether it covers
        a piece of evidence), `score`, `time` and `text`, as it was shown to the reader. Questions
        without retrieved chunks have no rows. `text` is None if the texts are not on this machine.
        """
        import pandas as pd

        columns = ["question_id", "repeat", "rank", "turn_ids", "evidence", "score", "time", "text"]
        rows = []
        for record in self._records:
            evidence = set(record.evidence)
            for rank, chunk in enumerate(record.retrieved or (), start=1):
                row = {
                    "question_id": record.question_id,
                    "repeat": record.repeat,
                    "rank": rank,
                    "turn_ids": list(chunk.turn_ids),
                    "evidence": not evidence.isdisjoint(chunk.turn_ids),
                    "score": chunk.score,
                    "time": chunk.time,
                    "text": self._text(record, chunk.text),
                }
                rows.append(row)

        return pd.DataFrame(rows, columns=columns)

    def context(self, question_id: str, repeat: int = 0) -> str | None:
        """The context of one answer as the reader saw it; None if it is not kept.

        Raises `UserError` for a question that the run did not ask.
        """
        record = self._record(question_id, repeat)
        return self._text(record, record.context)

    def prompt(self, question_id: str, repeat: int = 0) -> list[dict[str, str | None]]:
        """The messages that were sent for one answer, with `role` and `content`; empty if nothing
        was sent, as with the offline reader.

        Raises `UserError` for a question that the run did not ask.
        """
        record = self._record(question_id, repeat)
        return [
            {"role": message.role, "content": self._text(record, message.text)}
            for message in record.prompt
        ]

    def dump(self) -> pd.DataFrame:
        """Items that the memories extracted or wrote, one row each: `case_id`, `repeat`, and the
        item's own fields (`kind`, `text` …). A case with questions between its sessions has several
        memories, each with `asked_after`: the session after which it was asked, or `end`.

        Empty for systems that only keep the turns themselves, and if the memories are not on this
        machine.
        """
        import pandas as pd

        return pd.DataFrame(
            [{**origin, **item} for origin, items in self.read_dumps() for item in items]
        )

    def read_dumps(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """For each memory, the columns that identify it, and its items: see `dump`.

        Raises `UserError` if records, answers or items can't be read.
        """
        prepared = self._outputs_folder.parent / "data" / "prepared"
        for number, keys in enumerate(self.summary.identity.get("keys", ())):
            # The first one, as in a run: memories with the same key have the same content.
            for folder in memory_folders(prepared, str(keys.get("prepare")))[:1]:
                for name, case_id in self._memories(keys.get("seed")).items():
                    origin: dict[str, Any] = {"case_id": case_id, "repeat": number}
                    if name != case_id:
                        origin["asked_after"] = name.removeprefix(f"{case_id}@")

                    yield origin, _json_lines(dump_file(folder / digest_name(name)))

    def _memories(self, seed: int) -> dict[str, str]:
        """The case of each memory of a repeat, by the name of the memory: a case with questions
        between its sessions has several.
        """
        cases = {record.case_id: () for record in self._records}
        memories = dict(zip(cases, cases, strict=True))
        path = self._answers(seed)
        for row in _json_lines(path, with_text=INGEST_PREFIX.encode()) if path else ():
            name = str(row.get("id"))
            case = case_of_ingest(name, cases) if name.startswith(INGEST_PREFIX) else None
            if case is not None:
                memories[name.removeprefix(INGEST_PREFIX)] = case

        return memories

    def read_records(self) -> list[Record]:
        """The records. Raises `UserError` if they can't be read."""
        return list(self.iter_records())

    def iter_records(self) -> Iterator[Record]:
        """The records one by one: those of a large run may not fit in memory. Raises `UserError` if
        they can't be read.
        """
        path = self.folder / RECORDS_FILE
        try:
            with reading(path, MADE_AGAIN):
                yield from read_records(path)
        except ValueError as error:
            raise UserError(f"{path} can't be read: {one_line(error, 1000)}", MADE_AGAIN) from error

    def read_written(self, record: Record) -> list[Written]:
        """Figures of the content that a model wrote into a record's memory, one for each
        checkpoint; empty without `writer=tools`.
        """
        if record.seed not in self._written_by_seed:
            path, by_ingest = self._answers(record.seed), {}
            if path is not None:
                for row in _json_lines(path, with_text=b'"written":'):
                    if "written" in row:
                        by_ingest[str(row.get("id"))] = read_as(row["written"], Written)

            self._written_by_seed[record.seed] = by_ingest

        sessions = []
        for name, written in self._written_by_seed[record.seed].items():
            if case_of_ingest(name, {record.case_id: ()}) is not None:
                sessions.append(written)

        return sessions

    def texts_of(self, record: Record) -> Texts | None:
        """The texts that a record refers to; None if the run does not record where they are."""
        if record.seed not in self._texts_by_seed:
            path = self._answers(record.seed)
            self._texts_by_seed[record.seed] = Texts(texts_file(path)) if path else None

        return self._texts_by_seed[record.seed]

    def _text(self, record: Record, ref: str | None) -> str | None:
        texts = self.texts_of(record)
        return None if texts is None else texts.get(ref)

    def _answers(self, seed: int) -> Path | None:
        """The file of a repeat's answers; None if the run does not name it."""
        for keys in self.summary.identity.get("keys", ()):
            if keys.get("seed") == seed:
                # Only the file name: a path in an edited run.json must not lead elsewhere.
                name = Path(str(keys.get("answer"))).name
                return self._outputs_folder / "answers" / f"{name}.jsonl"

        return None

    @cached_property
    def _texts_by_seed(self) -> dict[int, Texts | None]:
        return {}

    @cached_property
    def _written_by_seed(self) -> dict[int, dict[str, Written]]:
        """By seed, then by the id of the ingest row."""
        return {}

    def _record(self, question_id: str, repeat: int) -> Record:
        repeats = {
            record.repeat: record for record in self._records if record.question_id == question_id
        }
        if not repeats:
            known = {record.question_id for record in self._records}
            raise unknown("question", question_id, known, "all of them:  run.records()")
        if repeat not in repeats:
            numbers = ", ".join(map(str, sorted(repeats)))
            raise UserError(f"{question_id} has no repeat {one_line(repeat)}, only {numbers}")

        return repeats[repeat]

    @property
    def _outputs_folder(self) -> Path:
        """`outputs/` of the home that the run folder is in."""
        return self.folder.resolve().parent.parent

    @cached_property
    def _records(self) -> list[Record]:
        return self.read_records()


def _json_lines(path: Path, with_text: bytes = b"") -> list[dict[str, Any]]:
    """A file's rows, or only those whose line contains `with_text`: parsing a row takes long."""
    try:
        with path.open("rb") as lines:
            return [dict(read_json(line)) for line in lines if line.strip() and with_text in line]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise UserError(
            f"{path} can't be read: {getattr(error, 'strerror', None) or error}",
            "to recreate it:  python -m memeval prepare --fresh=prepare",
        ) from error


def _flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A record with its nested dictionaries flattened into dotted names."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value

    return flat
