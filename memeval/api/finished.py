"""A finished run and its records, as pandas tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.config.paths import outputs_dir, prepared_dir
from memeval.errors import UserError, unknown
from memeval.results import (
    RECORDS_FILE,
    Record,
    RunSummary,
    Texts,
    read_records,
    texts_file,
)
from memeval.results.files import dump_file, memory_folders
from memeval.text.names import digest_name

if TYPE_CHECKING:
    import pandas as pd


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
        texts are not on this machine.
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
                # The first, as a run takes it: a memory of the same key holds the same.
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
        """The texts that the answers under a seed refer to; None if the run names no file."""
        if seed not in self._texts_by_seed:
            keys = [
                repeat["answer"]
                for repeat in self.summary.identity.get("keys", ())
                if repeat["seed"] == seed
            ]
            # Only the name: what an edited run.json says must not lead elsewhere.
            name = Path(str(keys[0])).name if keys else None
            path = outputs_dir() / "answers" / f"{name}.jsonl" if name else None
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


def _flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A record with the fields of its dictionaries beside its own, by dotted name."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value

    return flat
