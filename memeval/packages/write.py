"""Writes finished runs as one file that can be shared and checked."""

import hashlib
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace as replace_members

from memeval import __version__
from memeval.config.leaves import as_yaml
from memeval.errors import UserError
from memeval.packages import form
from memeval.packages.cleaning import Cleaner
from memeval.packages.export.terms import terms_of
from memeval.packages.facts import environment_facts, machine_class, protocol_of
from memeval.packages.form import (
    PackageEntry,
    PackageManifest,
    PackedData,
    entry_of,
    manifest_bytes,
    package_id,
    withheld,
)
from memeval.packages.rows import references, usages_of
from memeval.packages.signing import sign
from memeval.pipeline.execute.rows import answer_digest
from memeval.pipeline.execute.timeline import unasked_checkpoints
from memeval.pipeline.measure.records import rows_digest, rows_of_run
from memeval.pipeline.verify.sound import OTHER_PRICES, WAY_OUT, WITHOUT_ROWS, verify_run
from memeval.records import Usage
from memeval.results import (
    CONFIG_FILE,
    RECORDS_FILE,
    RUN_FILE,
    AnswerRow,
    IngestRow,
    Record,
    RunSummary,
    Texts,
    VerdictRow,
    as_json,
    json_line,
    texts_file,
)
from memeval.results.fields import read_as
from memeval.results.files import writing
from memeval.results.judge import JudgeIdentity
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.rows import answer_or_ingest, case_of_ingest
from memeval.results.run import Run
from memeval.results.store import sealed_line
from memeval.results.summary import PACKAGE_TAG
from memeval.results.texts import WITHHELD, Joined, reference
from memeval.text.shown import one_line
from memeval.text.yaml_files import load_yaml

_TEXT_FREE_MEMBERS = ("error", "notes")
"""Members of a row that contain no text of data or of a reply."""
Json = dict[str, Any]


class Packed(Struct, frozen=True):
    """Result of packing."""

    path: Path
    id: str
    manifest: PackageManifest
    runs: tuple[Run, ...]


def pack(
    runs: Sequence[Run],
    path: Path,
    *,
    who: str = "",
    licence: str = "",
    supersedes: str = "",
    register: Json | None = None,
    key_file: Path | None = None,
) -> Packed:
    """Writes runs as a package; the same runs give the same bytes.

    `key_file` is an SSH key that signs the manifest. Raises `UserError` for a run that is not sound
    or came in a package itself, `StorageError` if the file can't be written.
    """
    for run in runs:
        _check(run)

    # As written: a corrected accuracy is only for display, and not computed from the rows.
    written = [Run(run.folder, RunSummary.read(run.folder)) for run in runs]
    ordered = sorted(written, key=lambda run: run.key)
    settings = [(dict(run.summary.params), run.summary.command) for run in ordered]
    writer = _Writer(Cleaner(settings))
    for run in ordered:
        writer.add(run)

    manifest = writer.manifest(
        who=one_line(who, 1_000),
        licence=one_line(licence, 1_000),
        supersedes=one_line(supersedes, 100),
        register=register,
    )
    content = manifest_bytes(manifest)
    entries = {form.MANIFEST: content}
    if key_file is not None:
        entries[form.SIGNATURE] = sign(content, key_file)
    with writing(path):
        _write(path, entries | writer.ordered_entries())

    return Packed(path=path, id=package_id(content), manifest=manifest, runs=tuple(ordered))


def _check(run: Run) -> None:
    shown = f"run {run.key} ({one_line(run.name, 80)})"
    if PACKAGE_TAG in run.summary.tags:
        raise UserError(f"{shown} came from a package", "pass that package on unchanged")

    verified = verify_run(run.folder)
    lacks = [line for line in verified.unchecked if line.endswith((WITHOUT_ROWS, OTHER_PRICES))]
    problems = [*verified.problems, *lacks]
    if problems:
        raise UserError(
            f"{shown} can't be packed: {problems[0]}",
            f"to see more:  python -m memeval verify {one_line(run.folder)}",
            WAY_OUT,
        )


class _Writer:
    """Collects the entries of a package."""

    def __init__(self, cleaner: Cleaner) -> None:
        self.cleaner = cleaner
        self.entries: dict[str, bytes] = {}
        self.texts: dict[str, bytes] = {}
        self.data: dict[tuple[str, str], PackedData] = {}
        self.protocols: dict[str, Json] = {}
        self.environments: dict[str, Json] = {}
        self.code = ""

    def add(self, run: Run) -> None:
        allowed = terms_of(run.summary)
        records = run.read_records()
        usages: list[Usage] = []
        rows: dict[str, list[bytes]] = {form.ANSWERS: [], form.VERDICTS: [], form.INGESTS: []}
        digests: dict[str, str] = {}

        for number, keys in enumerate(run.summary.identity["keys"]):
            own = [record for record in records if record.repeat == number]
            repeat = _Repeat(run, keys, own, self.cleaner, texts=allowed.allows_texts)
            for name, lines in repeat.lines.items():
                rows[name] += lines

            usages += usages_of(repeat.answers, repeat.verdicts, repeat.ingests)
            digests |= repeat.digests
            self.texts |= repeat.texts()

        packed = [self._record(record, texts=allowed.allows_texts) for record in records]
        # The same cleaning for the file and for the digests of it.
        files = {CONFIG_FILE: self._config(run), RECORDS_FILE: "".join(packed).encode()}
        for name, content in rows.items():
            files[name] = b"".join(content)

        summary = self._summary(run.summary, files, digests)
        files[RUN_FILE] = summary.to_text().encode()
        for name in form.OF_RUN:
            self.entries[entry_of(run.key, name)] = files[name]

        self.protocols[run.key] = protocol_of(summary, records)
        self.environments[run.key] = environment_facts(summary, usages)
        self.code = summary.tags.get(FIGURES_CODE, "")
        sha256 = summary.data_sha256
        self.data[summary.dataset, sha256] = PackedData(
            name=summary.dataset, sha256=sha256, licence=allowed.licence, texts=allowed.allows_texts
        )

    def _config(self, run: Run) -> bytes:
        path = run.folder / CONFIG_FILE
        settings = load_yaml(path)
        clean = self.cleaner.clean_own(settings)
        return path.read_bytes() if clean == settings else as_yaml(clean).encode()

    def _summary(
        self, summary: RunSummary, files: Mapping[str, bytes], rows: Mapping[str, str]
    ) -> RunSummary:
        clean = self.cleaner
        judge = summary.judge
        if judge is not None:
            judge = read_as(clean.clean_own(judge.to_json()), JudgeIdentity)

        tags = clean.clean_own(dict(summary.tags))
        if "judge_key" in tags and judge is not None:
            tags["judge_key"] = judge.digest
        if "command" in tags:
            tags["command"] = clean.command(summary.tags["command"])

        notes = []
        for note in summary.notes:
            text = clean.clean_own(note.text)
            notes.append(replace_members(note, text=text))

        return replace(
            summary,
            name=clean.clean_own(summary.name),
            command=clean.command(summary.command),
            params=clean.clean_own(dict(summary.params)),
            tags=tags,
            notes=tuple(notes),
            judge=judge,
            files={name: _sha256(files[name]) for name in (CONFIG_FILE, RECORDS_FILE)},
            rows=rows,
            identity=clean.clean_own(dict(summary.identity)),
        )

    def _record(self, record: Record, *, texts: bool) -> str:
        row = _cleaned(self.cleaner, record.to_json())
        if not texts:
            row["question"] = withheld(record.question)
            row["gold"] = list(map(withheld, record.gold))
            if record.choices:
                row["choices"] = list(map(withheld, record.choices))

        return json_line(row)

    def manifest(
        self, *, who: str, licence: str, supersedes: str, register: Json | None
    ) -> PackageManifest:
        """The manifest, once all runs are added."""
        environment = {"packed_on": machine_class(), "runs": self.environments}
        self.entries[form.ENVIRONMENT] = (as_json(environment, indent=1) + "\n").encode()
        if register is not None:
            self.entries[form.REGISTER] = (as_json(register, indent=1) + "\n").encode()

        self.entries[form.TEXTS] = b"".join(self.texts[ref] for ref in sorted(self.texts))
        entries = self.ordered_entries()
        return PackageManifest(
            format=form.FORMAT,
            memeval=__version__,
            code=self.code,
            who=self.cleaner.clean_own(who),
            licence=self.cleaner.clean_own(licence),
            supersedes=supersedes,
            runs=tuple(self.protocols),
            data=tuple(self.data[key] for key in sorted(self.data)),
            protocols=self.protocols,
            replaced=dict(sorted((+self.cleaner.counts).items())),
            entries={name: _entry(content) for name, content in entries.items()},
        )

    def ordered_entries(self) -> dict[str, bytes]:
        """The entries in the order of the file: small ones, which are read first, come first."""
        runs = [name for name in self.entries if name.startswith("runs/")]
        names = (form.ENVIRONMENT, form.REGISTER, *runs, form.TEXTS)
        return {name: self.entries[name] for name in names if name in self.entries}


class _Repeat:
    """The rows of one repeat in the form of a package, and the texts that they refer to."""

    def __init__(
        self, run: Run, keys: Json, records: Sequence[Record], cleaner: Cleaner, *, texts: bool
    ) -> None:
        self.cleaner, self.with_texts = cleaner, texts
        self.lines: dict[str, list[bytes]] = {}
        answers_header = {"answer": keys["answer"], "seed": keys["seed"]}
        verdicts_header = {"judge": keys["judge"], "seed": keys["seed"]}
        answers_name = f"answers/{keys['answer']}.jsonl"
        verdicts_name = f"verdicts/{keys['judge']}.jsonl"
        outputs = run.folder.resolve().parent.parent
        ids = [record.question_id for record in records]
        read = partial(rows_of_run, ids=ids, summary=run.summary)
        answers = read(outputs / answers_name, answers_header, answer_or_ingest).rows
        verdicts = read(outputs / verdicts_name, verdicts_header, VerdictRow.from_json).rows

        self.stored = Texts(texts_file(outputs / answers_name))
        self.answers = [row for row in map(answers.get, ids) if isinstance(row, AnswerRow)]
        self.verdicts = list(filter(None, map(verdicts.get, ids)))
        self.ingests: list[IngestRow] = []
        unasked = unasked_checkpoints(records)
        for row in answers.values():
            # The file may also contain rows of other runs' conversations.
            if isinstance(row, IngestRow) and case_of_ingest(row.id, unasked) is not None:
                self.ingests.append(row)

        answer_rows, verdict_rows = self._clean_rows()
        ingest_rows = [_cleaned(cleaner, row.to_json()) for row in self.ingests]
        self._seal_rows(form.ANSWERS, answers_header, answer_rows)
        self._seal_rows(form.VERDICTS, verdicts_header, verdict_rows)
        self._seal_rows(form.INGESTS, answers_header, ingest_rows)
        self.digests = {
            answers_name: self._digest(ids, form.ANSWERS),
            verdicts_name: self._digest(ids, form.VERDICTS),
        }

    def _clean_rows(self) -> tuple[list[Json], list[Json]]:
        """The answers, and the verdicts, which refer to the cleaned answers."""
        answers, verdicts = [], []
        changed: dict[str, str] = {}
        for row in self.answers:
            clean = self._answer(row)
            answers.append(clean)
            if clean.get("hypothesis") != row.hypothesis:
                changed[row.id] = answer_digest(clean["hypothesis"])

        for verdict in self.verdicts:
            clean = _cleaned(self.cleaner, verdict.to_json())
            verdicts.append(clean)
            if verdict.id in changed:
                clean["judged"] = changed[verdict.id]

        return answers, verdicts

    def _answer(self, row: AnswerRow) -> Json:
        clean = _cleaned(self.cleaner, row.to_json())
        if not self.with_texts and row.seen is not None:
            clean["seen"] = {name: list(map(withheld, seen)) for name, seen in row.seen.items()}

        return clean

    def _seal_rows(self, name: str, header: Json, rows: Iterable[Json]) -> None:
        lines = [sealed_line(header, {"header": header})]
        self.lines[name] = lines + [sealed_line(header, row) for row in rows]

    def _digest(self, ids: Sequence[str], name: str) -> str:
        seals = {}
        for line in self.lines[name][1:]:
            row = json.loads(line)
            seals[row["id"]] = row["seal"]

        return rows_digest(ids, seals)

    def texts(self) -> dict[str, bytes]:
        """The lines of the texts, by reference: all of them if the data may be redistributed,
        otherwise only the texts of replies, and the structure of the others.
        """
        lines: dict[str, bytes] = {}
        for ref, is_reply in references(self.answers, self.ingests):
            self._add_text(ref, lines, show=is_reply or self.with_texts)

        return lines

    def _add_text(self, ref: str, lines: dict[str, bytes], *, show: bool) -> None:
        if ref in lines:
            return

        stored = self.stored.read_stored(ref)
        if isinstance(stored, Joined):
            entry = {"id": ref, "join": stored.separator, "parts": list(stored.parts)}
            lines[ref] = json_line(entry, (",", ":")).encode()
            for part in stored.parts:
                self._add_text(part, lines, show=show)
        elif stored is not None:
            kept: Json = {WITHHELD: True}
            if show:
                clean = self.cleaner.text(stored)
                # A text with replacements no longer matches its reference.
                if reference(clean) == ref:
                    kept = {"text": clean}

            lines[ref] = json_line({"id": ref, **kept}, (",", ":")).encode()


def _cleaned(cleaner: Cleaner, row: Json) -> Json:
    """A row or a record, cleaned for sharing."""
    cleaned = {}
    for name, value in row.items():
        clean = cleaner.clean_own if name in _TEXT_FREE_MEMBERS else cleaner.clean_data
        cleaned[name] = clean(value)

    return cleaned


def _entry(content: bytes) -> PackageEntry:
    return PackageEntry(_sha256(content), len(content))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _write(path: Path, entries: Mapping[str, bytes]) -> None:
    part = path.with_name(f".{path.name}.tmp")
    try:
        with zipfile.ZipFile(part, "w") as archive:
            for name, content in entries.items():
                info = zipfile.ZipInfo(name, form.EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system, info.external_attr = form.UNIX, form.PRIVATE
                archive.writestr(info, content, compresslevel=9)

        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
