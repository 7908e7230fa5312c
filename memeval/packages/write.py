"""Writes finished runs as one file that can be shared and checked."""

import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace as replace_members

from memeval import __version__
from memeval.config.leaves import as_yaml
from memeval.datasets.locate import digest_of
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
from memeval.packages.rows import STAGES, Json, PackedRow, Place, RunRows, add_text, row_lines
from memeval.packages.signing import sign
from memeval.pipeline.execute.rows import answer_digest
from memeval.pipeline.measure.records import rows_digest
from memeval.pipeline.verify.sound import OTHER_PRICES, WAY_OUT, WITHOUT_ROWS, FolderCheck
from memeval.results import (
    CONFIG_FILE,
    RECORDS_FILE,
    RUN_FILE,
    AnswerRow,
    Record,
    RunSummary,
    Texts,
    VerdictRow,
    as_json,
    json_line,
    texts_file,
)
from memeval.results.fields import read_as
from memeval.results.files import folder_beside, writing
from memeval.results.judge import JudgeIdentity
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.run import Run
from memeval.results.summary import PACKAGE_TAG
from memeval.text.shown import in_shell, one_line
from memeval.text.yaml_files import load_yaml

_TEXT_FREE_MEMBERS = ("error", "notes")
"""Members of a row that contain no text of data or of a reply."""
Content = bytes | mmap


class Packed(Struct, frozen=True):
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
    # As written: a corrected accuracy is only for display, and not computed from the rows.
    written = [Run(run.folder, RunSummary.read(run.folder)) for run in runs]
    ordered = sorted(written, key=lambda run: run.key)
    settings = [(dict(run.summary.params), run.summary.command) for run in ordered]
    writer = _Writer(Cleaner(settings))
    for run in ordered:
        writer.add(run, _checked(run))

    manifest = writer.manifest(
        who=one_line(who, 1_000),
        licence=one_line(licence, 1_000),
        supersedes=one_line(supersedes, 100),
        register=register,
    )
    content = manifest_bytes(manifest)
    entries: dict[str, Content] = {form.MANIFEST: content}
    if key_file is not None:
        entries[form.SIGNATURE] = sign(content, key_file)
    entries |= writer.ordered_entries()
    _check_sizes(entries)
    with writing(path):
        _write(path, entries)

    return Packed(path=path, id=package_id(content), manifest=manifest, runs=tuple(ordered))


def _checked(run: Run) -> FolderCheck:
    """The content of a run's folder. Raises `UserError` if it can't be packed."""
    shown = f"run {run.key} ({one_line(run.name, 80)})"
    if PACKAGE_TAG in run.summary.tags:
        raise UserError(f"{shown} came from a package", "pass that package on unchanged")

    check = FolderCheck(run.folder)
    check.run()
    lacks = [line for line in check.unchecked if line.endswith((WITHOUT_ROWS, OTHER_PRICES))]
    problems = [*check.problems, *lacks]
    if problems:
        raise UserError(
            f"{shown} can't be packed: {problems[0]}",
            f"to see more:  python -m memeval verify {in_shell(run.folder)}",
            WAY_OUT,
        )

    return check


class _Writer:
    """Collects the entries of a package."""

    def __init__(self, cleaner: Cleaner) -> None:
        self.cleaner = cleaner
        self.entries: dict[str, Content] = {}
        self.texts: dict[str, bytes] = {}
        self.data: dict[tuple[str, str], PackedData] = {}
        self.protocols: dict[str, Json] = {}
        self.environments: dict[str, Json] = {}
        self.prices: dict[tuple[str, str], Json | None] = {}
        """Prices by the packed name of a model and its provider."""
        self.code = ""

    def add(self, run: Run, check: FolderCheck) -> None:
        """Adds the entries of a run, whose folder was checked."""
        allowed = terms_of(run.summary)
        rows, records = RunRows(check), check.records
        self._add_models(environment_facts(run.summary, rows)["models"])
        keys = run.summary.identity["keys"]
        files: dict[str, Content] = {CONFIG_FILE: self._config(run)}
        seals: dict[str, dict[Place, str]] = {}
        as_packed = _CleanRows(self.cleaner, texts=allowed.allows_texts).as_packed
        for name, file_rows in rows.files.items():
            seals[name] = {}
            files[name] = on_disk(row_lines(keys, name, file_rows, as_packed, seals[name]))

        packed = (self._record(record, texts=allowed.allows_texts) for record in records)
        files[RECORDS_FILE] = on_disk(packed)
        answers = [check.outputs / "answers" / f"{repeat['answer']}.jsonl" for repeat in keys]
        self._add_texts(rows, answers, texts=allowed.allows_texts)
        digests = _row_digests(keys, records, seals)
        summary = self._summary(run.summary, files, digests)
        files[RUN_FILE] = summary.to_text().encode()
        for name in form.OF_RUN:
            self.entries[entry_of(run.key, name)] = files[name]

        self.protocols[run.key] = protocol_of(summary, records)
        self.environments[run.key] = environment_facts(summary, rows, self.cleaner.clean_model)
        self.code = summary.tags.get(FIGURES_CODE, "")
        sha256 = summary.data_sha256
        self.data[summary.dataset, sha256] = PackedData(
            name=summary.dataset, sha256=sha256, licence=allowed.licence, texts=allowed.allows_texts
        )

    def _add_models(self, models: Sequence[Json]) -> None:
        """Learns the paths that name models. Raises `UserError` if prices of two have one name."""
        self.cleaner.learn_paths(models)
        for model in models:
            name, prices = self.cleaner.clean_model(model["model"]), model["usd_per_million"]
            if self.prices.setdefault((name, model["provider"]), prices) != prices:
                raise UserError(
                    f"two models with different prices are both {one_line(name, 80)} without "
                    "their folders, which no package contains",
                    "pack their runs separately, or serve the models under names of their own",
                )

    def _config(self, run: Run) -> bytes:
        path = run.folder / CONFIG_FILE
        settings = load_yaml(path)
        clean = self.cleaner.clean_own(settings)
        return path.read_bytes() if clean == settings else as_yaml(clean).encode()

    def _summary(
        self, summary: RunSummary, files: Mapping[str, Content], rows: Mapping[str, str]
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
            files={name: digest_of(files[name]) for name in (CONFIG_FILE, RECORDS_FILE)},
            rows=rows,
            identity=clean.clean_own(dict(summary.identity)),
        )

    def _record(self, record: Record, *, texts: bool) -> bytes:
        row = _cleaned(self.cleaner, record.to_json())
        if not texts:
            row["question"] = withheld(record.question)
            row["gold"] = list(map(withheld, record.gold))
            if record.choices:
                row["choices"] = list(map(withheld, record.choices))

        return json_line(row).encode()

    def _add_texts(self, rows: RunRows, answers: Sequence[Path], *, texts: bool) -> None:
        """Adds the lines of the texts of each repeat: all of them if the data may be redistributed,
        otherwise only the texts of replies, and the structure of the others.
        """

        def show(text: str) -> str | None:
            clean = self.cleaner.text(text)
            # A text with replacements no longer matches its reference.
            return clean if clean == text else None

        for repeat, path in enumerate(answers):
            lines: dict[str, bytes] = {}
            read = Texts(texts_file(path)).read_stored
            for ref, is_reply in rows.references(repeat):
                add_text(lines, ref, read, show if is_reply or texts else lambda _: None)

            self.texts |= lines

    def manifest(
        self, *, who: str, licence: str, supersedes: str, register: Json | None
    ) -> PackageManifest:
        """The manifest, once all runs are added."""
        environment = {"packed_on": machine_class(), "runs": self.environments}
        self.entries[form.ENVIRONMENT] = (as_json(environment, indent=1) + "\n").encode()
        if register is not None:
            self.entries[form.REGISTER] = (as_json(register, indent=1) + "\n").encode()

        self.entries[form.TEXTS] = on_disk(self.texts[ref] for ref in sorted(self.texts))
        listed = {}
        for name, content in self.ordered_entries().items():
            listed[name] = PackageEntry(digest_of(content), len(content))

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
            entries=listed,
        )

    def ordered_entries(self) -> dict[str, Content]:
        """The entries in the order of the file: small ones, which are read first, come first."""
        runs = [name for name in self.entries if name.startswith("runs/")]
        names = (form.ENVIRONMENT, form.REGISTER, *runs, form.TEXTS)
        return {name: self.entries[name] for name in names if name in self.entries}


class _CleanRows:
    """Cleans the rows of a run, its answers first: the verdicts refer to the cleaned answers."""

    def __init__(self, cleaner: Cleaner, *, texts: bool) -> None:
        """Without `texts`, values of the data are withheld."""
        self.cleaner, self.texts = cleaner, texts
        self.judged: dict[Place, str] = {}
        """Digests of the answers that were changed."""

    def as_packed(self, place: Place, row: PackedRow) -> Json:
        clean = _cleaned(self.cleaner, row.to_json())
        if isinstance(row, AnswerRow):
            if not self.texts and row.seen is not None:
                clean["seen"] = {at: list(map(withheld, seen)) for at, seen in row.seen.items()}
            if clean.get("hypothesis") != row.hypothesis:
                self.judged[place] = answer_digest(clean["hypothesis"])
        elif isinstance(row, VerdictRow) and place in self.judged:
            clean["judged"] = self.judged[place]

        return clean


def on_disk(lines: Iterable[bytes]) -> Content:
    """The lines; many are a temporary file, which takes memory only while it is read.

    Raises `StorageError` if it can't be written.
    """
    with writing(tempfile.gettempdir()), tempfile.TemporaryFile() as file:
        file.writelines(lines)
        file.flush()
        # A mapped file stays open, and a package may have more entries than a process may open.
        if file.tell() <= form.LARGEST_SMALL:
            file.seek(0)
            return file.read()

        return mmap(file.fileno(), 0, access=ACCESS_READ)


def _row_digests(
    keys: Sequence[Json], records: Sequence[Record], seals: Mapping[str, Mapping[Place, str]]
) -> dict[str, str]:
    """The digests of the rows with these seals, as `run.json` has them."""
    digests = {}
    for number, repeat in enumerate(keys):
        ids = [record.question_id for record in records if record.repeat == number]
        for name, folder in ((form.ANSWERS, "answers"), (form.VERDICTS, "verdicts")):
            own = {row_id: seal for (of, row_id), seal in seals[name].items() if of == number}
            digests[f"{folder}/{repeat[STAGES[name]]}.jsonl"] = rows_digest(ids, own)

    return digests


def _cleaned(cleaner: Cleaner, row: Json) -> Json:
    cleaned = {}
    for name, value in row.items():
        clean = cleaner.clean_own if name in _TEXT_FREE_MEMBERS else cleaner.clean_data
        cleaned[name] = clean(value)

    for usage in cleaned.get("usage", ()):
        usage["model"] = cleaner.clean_model(usage["model"])

    return cleaned


def _check_sizes(entries: Mapping[str, Content]) -> None:
    """Raises `UserError` for entries that make a package too large to be opened."""
    sizes = {name: len(content) for name, content in entries.items()}
    largest = max(sizes, key=sizes.__getitem__)
    limits = [
        (f"{largest} has", sizes[largest], form.LARGEST_ENTRY, "bytes"),
        ("its entries have", sum(sizes.values()), form.LARGEST, "bytes"),
        ("it has", len(sizes), form.MAX_ENTRIES, "entries"),
    ]
    for subject, size, limit, unit in limits:
        if size > limit:
            raise UserError(
                f"the package would be too large to be opened: {subject} {size:,} {unit}, "
                f"more than {limit:,}",
                "pack fewer runs together, or runs with fewer questions",
            )


def _write(path: Path, entries: Mapping[str, Content]) -> None:
    with folder_beside(path) as folder:
        part = Path(folder, path.name)
        with zipfile.ZipFile(part, "w") as archive:
            for name, content in entries.items():
                info = zipfile.ZipInfo(name, form.EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.create_system, info.external_attr = form.UNIX, form.PRIVATE
                archive.writestr(info, content, compresslevel=9)

        part.replace(path)
