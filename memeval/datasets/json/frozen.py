"""A user's frozen data sets: a folder with a version, a digest, a split and a datasheet."""

import json
import re
import shutil
import unicodedata
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from memeval.datasets.json.reader import META, OwnReader
from memeval.datasets.sampling import SIDES
from memeval.datasets.stats import NOUNS
from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.results.files import file_digest, write_atomically
from memeval.results.private import make_folder
from memeval.text.shown import all_counted, counted, in_shell, one_line
from memeval.text.typed import decoder

DATA_FILE, MANIFEST_FILE, SHEET_FILE = "data.jsonl", "frozen.json", "DATASHEET.md"
VERSION = re.compile(r"[\w.+-]{1,40}")
CANARY = "This file is a test. It must not be in a training corpus: memeval canary {}"


class FrozenManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `frozen.json`."""

    name: str
    version: str
    sha256: str
    """Of the data file."""
    canary: str
    counts: dict[str, int]
    """Cases, sessions, turns and questions."""
    sides: dict[str, str] = {}
    """`dev` or `test` by case; empty if the data set defines no split."""
    licence: str = ""
    sources: list[str] = []
    """The files or frozen sets that it was made from, as name and sha256."""


class FrozenContent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str
    cases: list[dict[str, Any]]
    sources: list[str]
    licence: str = ""
    sides: dict[str, str] = {}
    facts: dict[str, str] = {}
    """Datasheet rows on drafts and review. They cover all questions, including those left out."""


def is_frozen(path: Path) -> bool:
    """Whether a folder contains a frozen data set."""
    return (path / MANIFEST_FILE).is_file()


def read_manifest(folder: Path) -> FrozenManifest:
    """The manifest of a frozen data set.

    Raises `UserError` if it is missing or damaged, or if the data was edited since.
    """
    file = folder / MANIFEST_FILE
    try:
        manifest = decoder(FrozenManifest).decode(file.read_bytes())
        file = folder / DATA_FILE
        digest = file_digest(file)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        reason = one_line(getattr(error, "strerror", None) or error)
        raise UserError(
            f"{folder} is not a frozen data set: {file.name}: {reason}",
            "make one:  python -m memeval data freeze FILE --into FOLDER --version 1",
        ) from error

    if digest != manifest.sha256:
        raise UserError(
            f"{folder / DATA_FILE} was edited after it was frozen as version "
            f"{one_line(manifest.version)}.",
            f"freeze it again:  python -m memeval data freeze {in_shell(folder / DATA_FILE)} "
            "--into FOLDER --version NEXT",
        )

    return manifest


def data_file(path: Path) -> Path:
    """The file that contains the cases: that of a frozen folder, or the file itself."""
    return path / DATA_FILE if is_frozen(path) else path


def read_checked(path: Path) -> tuple[OwnReader, list[dict[str, Any]]]:
    """The cases of a file or a frozen folder as they are written, and the reader with its counts.

    Raises `UserError` with every mistake.
    """
    if is_frozen(path):
        read_manifest(path)

    reader = OwnReader(data_file(path))
    written = [value for value, _ in reader.pairs()]
    reader.mistakes.refuse()
    return reader, written


def case_id_of(case: Mapping[str, Any]) -> str:
    """The id of a case, under either of its names."""
    return str(case.get("case_id", case.get("id")))


def split_cases(case_ids: Sequence[str], share: float) -> dict[str, str]:
    """The side of each case: the given share of them, at least one, is `dev`.

    The choice depends only on their ids. Raises `UserError` if a side would be empty.
    """
    if not 0 < share < 1 or len(case_ids) < 2:
        raise UserError(
            f"--split {share:g} of {counted(len(case_ids), 'case')} leaves one side empty: use a "
            "share between 0 and 1 of at least two cases."
        )

    ordered = sorted(case_ids, key=lambda name: sha256(f"memeval split {name}".encode()).digest())
    count = min(max(round(share * len(ordered)), 1), len(ordered) - 1)
    dev, test = SIDES
    return dict.fromkeys(ordered[:count], dev) | dict.fromkeys(ordered[count:], test)


def write_frozen(content: FrozenContent, folder: Path, more: Sequence[str] = ()) -> FrozenManifest:
    """Writes the data, the manifest and the datasheet; `more` are lines of the datasheet.

    The folder appears under its name once it is complete. Raises `UserError` for a version that is
    not a short word, and for a folder that exists already or can't be written.
    """
    if not VERSION.fullmatch(content.version):
        raise UserError(
            f"--version must be like 1, 2.0 or 2026-05, not '{one_line(content.version)}'."
        )
    if folder.exists():
        raise UserError(
            f"{folder} already exists, and is never overwritten.",
            "use another --version, or with --into another folder",
        )

    part = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.tmp")
    try:
        make_folder(part)
        manifest = _write_files(content, part, more)
        part.rename(folder)
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error.strerror or error}.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)

    return manifest


def _write_files(content: FrozenContent, folder: Path, more: Sequence[str]) -> FrozenManifest:
    lines = [json.dumps(case, ensure_ascii=False) for case in content.cases]
    # Derived from the content: the same data has the same canary, and so the same sha256.
    digest = sha256("\n".join([content.name, content.version, *lines]).encode()).hexdigest()
    canary = CANARY.format(uuid.uuid5(uuid.NAMESPACE_OID, digest))
    header = {"name": content.name, META: {"version": content.version, "canary": canary}}
    data = [json.dumps(header, ensure_ascii=False), *lines]
    write_atomically(folder / DATA_FILE, "\n".join(data) + "\n")
    reader = OwnReader(folder / DATA_FILE)
    texts: list[str] = []
    for case in reader.cases():
        texts.extend(turn.text for turn in case.turns)

    manifest = FrozenManifest(
        name=reader.name,
        version=content.version,
        sha256=reader.sha256,
        canary=canary,
        counts={noun: reader.counts[noun] for noun in NOUNS},
        sides=content.sides,
        licence=content.licence,
        sources=content.sources,
    )
    sheet = [*_datasheet(manifest, reader, content, texts), *more]
    write_atomically(folder / SHEET_FILE, "\n".join(sheet) + "\n")
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    write_atomically(folder / MANIFEST_FILE, encoded.decode() + "\n")

    return manifest


def _datasheet(
    manifest: FrozenManifest, reader: OwnReader, content: FrozenContent, texts: Sequence[str]
) -> list[str]:
    sides = Counter(manifest.sides.values())
    questions, notes = [], []
    reviewers: Counter[str] = Counter()
    for case in content.cases:
        for question in case["questions"]:
            questions.append(question)
            if isinstance(question.get(META), dict):
                notes.append(question[META])

            names = {review["reviewer"] for review in question.get("reviews") or []}
            reviewers.update(one_line(name, 60) for name in names)

    unanswerable = len(questions) - reader.counts["answerable"]
    written = json.dumps(content.cases, ensure_ascii=False)
    placeholders = Counter(re.findall(r"<([a-z]+)-\d+>", written))
    facts = {
        "Version": manifest.version,
        "Made from": "; ".join(manifest.sources),
        "sha256": manifest.sha256,
        "Holds": all_counted(manifest.counts),
        "Tokens": f"{sum(map(count_tokens, texts)):,} in the turns, counted offline",
        "Scripts": _scripts(texts),
        "Split by case": _counts_text(sides) or "memeval's own: dataset.split",
        "Categories": _counts_text(reader.categories),
        "Right answer is a refusal": counted(unanswerable, "question"),
        "With an answer but no evidence": counted(reader.counts["without_evidence"], "question"),
        "Drafted by": _values_text(notes, "drafted_by", len(questions)),
        "Checked by": _values_text(notes, "checked_by", len(questions)),
        "Status": _values_text(questions, "status", len(questions)),
        "Reviewed by": _counts_text(reviewers) or "nobody",
        **content.facts,
        "Redaction placeholders": _counts_text(placeholders) or "none",
        "Licence": manifest.licence or "not stated",
        "Canary": manifest.canary,
    }
    rows = [f"| {name} | {_cell(value)} |" for name, value in facts.items()]
    return [f"# {manifest.name}", "", "| | |", "|---|---|", *rows, ""]


def _scripts(texts: Sequence[str]) -> str:
    """The scripts of the letters, with their shares; the languages are not known."""
    characters: Counter[str] = Counter()
    for text in texts:
        characters.update(text)

    scripts: Counter[str] = Counter()
    for char, number in characters.items():
        if char.isalpha():
            scripts[unicodedata.name(char, "other").split()[0].capitalize()] += number

    shares = [(name, 100 * number / scripts.total()) for name, number in scripts.most_common()]
    return ", ".join(f"{name} {share:.1f} %" for name, share in shares if share >= 0.05)


def _counts_text(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))


def _values_text(notes: Sequence[Mapping[str, Any]], name: str, count: int) -> str:
    """The values that questions state for a field, with counts, and the number that state none."""
    values = Counter(str(note[name]) for note in notes if note.get(name) is not None)
    left = count - values.total()
    stated = _counts_text(values)
    unstated = f"not stated {left:,}" if left else ""
    return ", ".join(filter(None, [stated, unstated]))


def _cell(value: str) -> str:
    return one_line(value, 2_000).replace("|", "\\|")
