"""Compares a finished run with its digests, to find parts that were damaged or edited since, have a
different key, or are missing. The digests are not signatures. They reveal damage and careless
edits, but anyone can write new digests.
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from memeval import __version__
from memeval.config.identity import IdentityInputs, keys, run_key
from memeval.config.resolve import read_config
from memeval.pipeline.execute.memory import read_manifest
from memeval.pipeline.execute.rows import Bill
from memeval.pipeline.execute.timeline import unasked_checkpoints
from memeval.pipeline.measure.records import Ingest, members_of_rows, rows_digest, rows_of_run
from memeval.pipeline.open.code import OtherMetrics
from memeval.pipeline.verify.figures import figure_problems, note_problems
from memeval.pipeline.verify.settings import setting_problems, tag_problems, witness_problems
from memeval.pipeline.verify.stored import text_problems
from memeval.records import Status
from memeval.results import (
    CONFIG_FILE,
    RECORDS_FILE,
    RUN_FILE,
    SEAL,
    AnswerRow,
    IngestRow,
    Record,
    RunSummary,
    VerdictRow,
    texts_file,
)
from memeval.results.calibration import calibration_problem
from memeval.results.fields import as_plain, as_read, read_as, read_json
from memeval.results.files import memory_folders
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.prices import has_other_prices
from memeval.results.rows import answer_or_ingest, case_of_ingest
from memeval.results.store import Parse, R, SoundRows
from memeval.results.summary import PACKAGE_RUN, PACKAGE_TAG
from memeval.text.redaction import holds_replacement
from memeval.text.shown import counted, one_line, some_of
from memeval.witness.figures import select_members

WAY_OUT = (
    "to repair it:  repeat its command, which rewrites its folder (with --fresh, also rows, texts "
    "and memories, from cached replies); if it came in a package, unpack that again"
)
OTHER_PRICES = (
    "costs: the prices have changed; to compute costs again, repeat the command of your own run"
)
WITHOUT_ROWS = "is missing: the records can't be compared with rows"
"""End of a message about a file of rows."""
MAX_NAMED = 3
"""Maximum ids that a line names; the others are counted."""


def verify_run(
    folder: Path, *, brings_prices: bool = False, keeps_rows: bool = True
) -> "FolderCheck":
    """Compares a run folder, its rows and its memories with `run.json`. Only reads.

    With `brings_prices`, the prices in use are the run's own. Without `keeps_rows`, it checks rows
    and records, but does not keep them in memory.
    """
    check = FolderCheck(folder, brings_prices=brings_prices, keeps_rows=keeps_rows)
    check.run()
    return check


class FolderCheck:
    """The check of a run folder, and its findings."""

    def __init__(
        self, folder: Path, *, brings_prices: bool = False, keeps_rows: bool = True
    ) -> None:
        self.brings_prices = brings_prices
        self.keeps_rows = keeps_rows
        self.parse_answer = answer_or_ingest if keeps_rows else _without_ranking
        self.ingests: list[Ingest] | None = []
        self.records: list[Record] = []
        self.lines: list[dict[str, Any]] = []
        """The members that the witness reads, of each record as the file contains it."""
        self.answers: list[SoundRows[AnswerRow | IngestRow] | None] = []
        """The answer rows of each repeat; None if they are not available."""
        self.verdicts: list[SoundRows[VerdictRow] | None] = []
        self.folder = folder.resolve()
        self.outputs = self.folder.parent.parent
        self.name = ""
        self.problems: list[str] = []
        """Mismatches, one line each."""
        self.figure_findings: list[str] = []
        """The problems that are about figures, not about files."""
        self.unchecked: list[str] = []
        """Parts that could not be compared, with reasons."""

    def run(self) -> None:
        """Checks everything; a damaged part does not stop the other checks, but without its records
        a run's rows and figures are not checked.
        """
        try:
            summary = RunSummary.read(self.folder)
        except OSError as error:
            self.problems.append(f"{RUN_FILE} can't be read: {error.strerror or error}")
            return
        except ValueError as error:
            self.problems.append(one_line(error))
            return

        self.name = summary.name
        self._check_members(summary)
        self.problems += summary.find_damage(self.folder)
        self.problems += filter(None, [calibration_problem(summary, self.folder)])
        if self.folder.parent.name == "runs" and self.folder.name != summary.run_key:
            self.problems.append(
                f"the folder is named {self.folder.name}, but contains the run {summary.run_key}"
            )

        repeats = self._check_keys(summary)
        records = self._read_records(summary)
        # Without the records, every comparison with them would be a separate problem.
        if records is not None:
            self._check_rows(summary, repeats, records)
            self._check_figures(summary, records)
            self.lines.clear()
            if self.keeps_rows:
                self.records = records

        # The seed is part of the key only if a model is used at ingest: otherwise the repeats share
        # a memory, which is read once.
        for key in dict.fromkeys(repeat["prepare"] for repeat in repeats):
            for folder in memory_folders(self.outputs.parent / "data" / "prepared", key):
                self.problems += memory_problems(folder, key)

    def _check_members(self, summary: RunSummary) -> None:
        """Checks that `run.json` has exactly the members that this version writes."""
        if summary.identity.get("version") == __version__:
            content = read_json((self.folder / RUN_FILE).read_bytes())
            del content[SEAL]
            # By `asdict`: a member that was read as its default is not in the object's own `vars`.
            expected = as_plain(dataclasses.asdict(summary))
            if content != json.loads(json.dumps(expected)):
                self.problems.append(f"{RUN_FILE}: it has unexpected or missing members")

    def _check_figures(self, summary: RunSummary, records: list[Record]) -> None:
        """Computes the figures again, with those of the ingests if the rows are available."""
        ingests = self.ingests if summary.repeats else None
        if summary.is_stopped:
            # Costs also count for conversations without an answer, which no record names.
            ingests = None
            self.unchecked.append("figures of ingests: the run was stopped during ingest")

        has_prices = self.brings_prices or not has_other_prices(summary.tags)
        if not has_prices:
            self.unchecked.append(OTHER_PRICES)

        try:
            differing = figure_problems(summary, records, ingests, has_prices=has_prices)
            self._add_figure_problems(differing)
            if ingests is not None and summary.identity.get("version") == __version__:
                self.problems += note_problems(summary, records, ingests)

            self._add_figure_problems(witness_problems(summary, self.lines))
        except Exception as error:  # noqa: BLE001
            # Edited records may contain values that no measure can handle.
            self._add_figure_problems(
                [f"{RECORDS_FILE}: figures can't be computed: {one_line(error)}"]
            )

        if summary.protocol_metrics:
            names = ", ".join(one_line(name, 40) for name in summary.protocol_metrics[:MAX_NAMED])
            self.unchecked.append(f"the data set's own metrics ({names} …): they need the data set")

        lacking = OtherMetrics.of(summary.tags.get(FIGURES_CODE, "")).run
        if lacking:
            names = some_of([one_line(name, 40) for name in sorted(lacking)], MAX_NAMED)
            self.unchecked.append(f"added metrics ({names}): they are not installed here")

    def _add_figure_problems(self, problems: Iterable[str]) -> None:
        for problem in problems:
            self.problems.append(problem)
            self.figure_findings.append(problem)

    def _read_records(self, summary: RunSummary) -> list[Record] | None:
        """The records that can be read; None if the file can't be."""
        records: list[Record] = []
        unformatted: list[str] = []
        is_ours = summary.identity.get("version") == __version__
        try:
            with (self.folder / RECORDS_FILE).open("rb") as file:
                for number, line in enumerate(file, start=1):
                    try:
                        row = dict(read_json(line))
                        record = read_as(row, Record)
                        records.append(record)
                        self.lines.append(select_members(row))
                        if is_ours and not _is_as_written(row, record):
                            unformatted.append(record.question_id)
                    except (ValueError, TypeError, RecursionError):
                        self.problems.append(f"{RECORDS_FILE}, line {number}: not a record")
        except OSError:
            return None  # already among the damage

        self._note_records(unformatted, "not formatted as a run writes them")
        statuses = Counter(record.status for record in records)
        if statuses != Counter(summary.statuses):
            self.problems.append(
                f"{RECORDS_FILE} has {list_statuses(statuses)}, but {RUN_FILE} says "
                f"{list_statuses(summary.statuses)}"
            )

        return records

    def _check_keys(self, summary: RunSummary) -> list[dict[str, Any]]:
        """The keys in `run.json`, compared with those computed from the config."""
        identity = summary.identity
        try:
            recorded = list(map(recorded_keys, identity["keys"]))
            inputs, version = IdentityInputs(**identity["inputs"]), identity["version"]
            read_as(identity["inputs"], IdentityInputs)  # the constructor checks no types
        except (KeyError, TypeError, ValueError) as error:
            self.problems.append(f"{RUN_FILE}: its identity is damaged ({one_line(error)})")
            return []

        self.problems += tag_problems(summary)

        if PACKAGE_TAG in summary.tags:
            self.unchecked.append("it came from a package: verify FILE.memeval compares its key")
            return recorded

        # Another version may classify a field differently, and compute another key from one config.
        if version != __version__:
            self.unchecked.append(
                f"made by memeval {one_line(version, 20)}: this version can't check whether "
                f"{CONFIG_FILE} gives this key"
            )
            return recorded

        try:
            self._compare_config(summary, inputs, [repeat["seed"] for repeat in recorded])
        except Exception as error:  # noqa: BLE001
            # The file may contain anything, and reading it may raise any error. If it is missing or
            # damaged, a line says so.
            if CONFIG_FILE not in " ".join(self.problems):
                self.problems.append(f"{CONFIG_FILE} can't be read as a config: {one_line(error)}")

        return recorded

    def _compare_config(
        self, summary: RunSummary, inputs: IdentityInputs, seeds: list[int]
    ) -> None:
        config = read_config(self.folder / CONFIG_FILE)
        self.problems += setting_problems(summary, config)
        computed = []
        for seed in seeds:
            own_keys = structs.asdict(keys(config, inputs, seed))
            computed.append({"seed": seed, **own_keys})

        if holds_replacement((self.folder / CONFIG_FILE).read_text(encoding="utf-8")):
            self.unchecked.append(
                f"a path or host was replaced in {CONFIG_FILE}: it can't be checked "
                "whether it gives this key"
            )
        elif computed != summary.identity["keys"] or run_key(config, inputs) != summary.run_key:
            self.problems.append(f"{CONFIG_FILE} gives a different key than {summary.run_key}")

    def _check_rows(
        self, summary: RunSummary, repeats: list[dict[str, Any]], records: list[Record]
    ) -> None:
        # A run from a package has another key here, and its rows contain the original one.
        run_key = summary.tags.get(PACKAGE_RUN, summary.run_key)
        bill, bill_of_ingests, has_answers = Bill(run_key), Bill(run_key), True
        for number, repeat in enumerate(repeats):
            own_records = [record for record in records if record.repeat == number]
            self._check_seed_and_top_k(summary, repeat, own_records)
            ids = [record.question_id for record in own_records]
            answers = self._read_rows("answer", repeat, self.parse_answer, ids, summary)
            verdicts = self._read_rows("judge", repeat, VerdictRow.from_json, ids, summary)
            has_answers = has_answers and answers is not None
            if self.keeps_rows:
                self.answers.append(answers)
                self.verdicts.append(verdicts)

            self._keep_ingests(answers, repeat["seed"], bill_of_ingests, own_records)
            # A repeat's bill depends on the repeats before it.
            if verdicts and has_answers:
                assert answers is not None, "the last of all answers"
                differing = [
                    record.question_id
                    for record in own_records
                    if not agrees(record, answers.rows, verdicts.rows, bill)
                ]
                self._note_records(differing, "differing from the rows")

            texts = texts_file(self.outputs / f"answers/{repeat['answer']}.jsonl")
            for problem in text_problems(texts):
                self.problems.append(f"{texts.parent.name}/{texts.name}: {problem}")

    def _check_seed_and_top_k(
        self, summary: RunSummary, repeat: Mapping[str, Any], records: list[Record]
    ) -> None:
        top_k = summary.params.get("top_k")
        differing = []
        for record in records:
            shown_of_unknown = record.shown_evidence_ranks is not None and record.top_k is None
            is_other = record.seed != repeat["seed"] or record.top_k not in (top_k, None)
            if is_other or shown_of_unknown:
                differing.append(record.question_id)

        self._note_records(differing, "with a different seed or top_k")

    def _note_records(self, ids: list[str], predicate: str) -> None:
        """Adds a problem of some records, if there are any."""
        if ids:
            count = counted(len(ids), "record is", "records are")
            self.problems.append(f"{RECORDS_FILE}: {count} {predicate}: {name_ids(ids)}")

    def _keep_ingests(
        self,
        answers: SoundRows[AnswerRow | IngestRow] | None,
        seed: int,
        bill: Bill,
        records: list[Record],
    ) -> None:
        if answers is None:
            self.ingests = None
        if answers is None or self.ingests is None:
            return

        # A run with more conversations may have the same answer key, and so the same file.
        unasked = unasked_checkpoints(records)
        for row in answers.rows.values():
            case = case_of_ingest(row.id, unasked)
            if case is not None and isinstance(row, IngestRow):
                self.ingests.append(Ingest(case, seed, row, bill.usages_of(row)))

    def _read_rows(
        self,
        stage: str,
        repeat: Mapping[str, Any],
        parse: Parse[R],
        ids: list[str],
        summary: RunSummary,
    ) -> SoundRows[R] | None:
        folder = "answers" if stage == "answer" else "verdicts"
        name = f"{folder}/{repeat[stage]}.jsonl"
        header = {stage: repeat[stage], "seed": repeat["seed"]}
        path = self.outputs / name
        try:
            rows = rows_of_run(path, header, parse, ids=ids, summary=summary)
        except FileNotFoundError:
            # A run folder that was copied elsewhere has no rows: this is not damage.
            if (self.outputs / "answers").is_dir():
                self.problems.append(f"{name} is missing")
            else:
                self.unchecked.append(f"{name} {WITHOUT_ROWS}")

            return None
        except OSError as error:
            self.problems.append(f"{name} can't be read: {error.strerror or error}")
            return None

        if rows.dropped:
            lines = counted(rows.dropped, "line")
            self.problems.append(f"{name}: {lines} torn, damaged, edited or from another key")

        if not rows.has_header:
            self.problems.append(f"{name}: the header of its key is missing")
        if rows_digest(ids, rows.seals) != summary.rows.get(name):
            self.problems.append(f"{name}: the rows differ from the run's rows")

        return rows


def recorded_keys(repeat: Mapping[str, Any]) -> dict[str, Any]:
    """Seed and keys of a repeat. Raises `TypeError` for a key that could be a path elsewhere."""
    recorded = {name: repeat[name] for name in ("seed", "prepare", "answer", "judge")}
    for name, value in recorded.items():
        if name != "seed" and not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", str(value)):
            raise TypeError(f"{name} is not a key: {one_line(value, 40)}")

    return recorded


def _without_ranking(row: Mapping[str, Any]) -> AnswerRow | IngestRow:
    parsed = answer_or_ingest(row)
    if isinstance(parsed, AnswerRow):
        return structs.replace(parsed, ranking=None)

    return parsed


def _is_as_written(row: Mapping[str, Any], record: Record) -> bool:
    """Whether a line equals what a run writes for its record."""
    written = record.to_json()
    # `written` may have tuples instead of lists: only then is the slower comparison needed.
    return row == written or row == as_read(written)


def agrees(
    record: Record,
    answers: Mapping[str, AnswerRow | IngestRow],
    verdicts: Mapping[str, VerdictRow],
    bill: Bill,
) -> bool:
    """Whether a record agrees with the rows of its question."""
    answer = answers.get(record.question_id)
    if not isinstance(answer, AnswerRow):
        return False

    members = members_of_rows(answer, verdicts.get(record.question_id), bill)
    return all(getattr(record, name) == value for name, value in members.items())


def memory_problems(folder: Path, key: str) -> Iterator[str]:
    """Mismatches in the memories saved under a key; a missing one is built when needed."""
    shown_folder = f"data/prepared/{folder.parent.name}/{folder.name}"
    for memory in sorted(folder.iterdir()):
        if memory.is_dir() and not memory.name.startswith("."):
            try:
                read_manifest(memory, key)
            except ValueError as error:
                yield f"{shown_folder}/{one_line(memory.name, 60)}: {error}"


def name_ids(ids: list[str]) -> str:
    """The first ids and the number of the others."""
    return some_of([one_line(name, 60) for name in ids], MAX_NAMED)


def list_statuses(statuses: Mapping[Status, int]) -> str:
    """`24 ok, 1 answer_failed`."""
    listed = [f"{count} {status}" for status, count in sorted(statuses.items())]
    return ", ".join(listed) or "nothing"
