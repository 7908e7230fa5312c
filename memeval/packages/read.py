"""Opens packages of others. Nothing is unpacked before the list of entries has been checked, and no
name in it leads out of the target folder.
"""

import hashlib
import json
import os
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any

import yaml  # type: ignore[import-untyped]
from msgspec import Struct

from memeval.errors import UserError
from memeval.packages import form
from memeval.packages.form import PackageManifest, entry_of, manifest_bytes, package_id
from memeval.pipeline.verify.sound import recorded_keys
from memeval.results import CONFIG_FILE, RECORDS_FILE, RUN_FILE, RunSummary, texts_file
from memeval.results.fields import read_as
from memeval.results.files import reading, temporary_folder, writing
from memeval.results.private import make_folder, open_private
from memeval.results.run import Run
from memeval.text.shown import one_line

_CHUNK = 2**20
_END_MARK = b"PK\x05\x06"
_ZIP = form.ZIP_VERSION
_WRITTEN = (form.EPOCH, form.UNIX, form.PRIVATE, 0, 0, _ZIP, _ZIP, 0, 0, b"", b"")
"""The result of `_describe` for an entry that `pack` wrote."""
_END = struct.Struct("<4s4H2LH")
"""Mark, two numbers of disks, entries here and in all, size and place of the directory, comment."""
Json = dict[str, Any]


class Package(Struct, frozen=True):
    """A package, unpacked to a folder with the layout of a home's `outputs/`."""

    path: Path
    folder: Path
    id: str
    """Sixteen hex digits of the digest of its manifest."""
    manifest: PackageManifest
    signature: bytes | None
    """Signature of the manifest's bytes."""
    environment: Json
    """Environment of the runs: `packed_on`, and `runs` by key."""
    register: Json | None
    """Statement registered before the runs."""
    runs: tuple[Run, ...]
    """Like runs of a home; texts that may not be redistributed are `sha256:…`."""


@contextmanager
def open_package(path: str | Path) -> Iterator[Package]:
    """Unpacks a package to a folder that is removed at the end.

    Raises `UserError` for a file that is not a package, or is damaged, and `StorageError` if it
    can't be unpacked here.
    """
    with temporary_folder("package") as folder:
        yield unpack_to(Path(path), Path(folder))


def unpack_to(path: Path, folder: Path) -> Package:
    """Unpacks a package to an empty folder, comparing each entry with the manifest.

    Raises `UserError` naming the file and the mistake, and `StorageError` if the folder can't be
    written: that is not a fault of the package.
    """
    with _open_archive(path) as archive:
        content = _read_entry(archive, form.MANIFEST)
        manifest = _manifest(path, content)
        _check_list(path, archive, manifest)
        # First under their names in the package: only entries with the right digest are read.
        raw = folder / "package"
        with writing(folder):
            for name in manifest.entries:
                _extract(path, archive, name, raw / name, manifest)

        is_signed = form.SIGNATURE in archive.namelist()
        signature = _read_entry(archive, form.SIGNATURE) if is_signed else None

    register = None
    if form.REGISTER in manifest.entries:
        register = _read_object(path, raw / form.REGISTER, form.REGISTER)

    environment = _read_object(path, raw / form.ENVIRONMENT, form.ENVIRONMENT)
    with writing(folder):
        runs = tuple(_lay_out(path, raw, folder, key) for key in manifest.runs)

    return Package(
        path=path,
        folder=folder,
        id=package_id(content),
        manifest=manifest,
        signature=signature,
        environment=environment,
        register=register,
        runs=runs,
    )


@contextmanager
def _open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    # Opening a named pipe would wait for a writer.
    if path.exists() and not path.is_file():
        raise UserError(f"{one_line(path)} is not a file")

    try:
        with reading(one_line(path)), zipfile.ZipFile(path) as archive:
            _check_form(path, archive)
            yield archive
    # An archive whose bytes were changed can raise zlib.error and others.
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError) as error:
        raise _error(path, f"it is not an intact zip file ({one_line(error, 100)})") from error


def _error(path: Path, problem: str) -> UserError:
    return UserError(f"{one_line(path.name)} is not an intact package: {problem}")


def _check_form(path: Path, archive: zipfile.ZipFile) -> None:
    """Raises `UserError` for anything that a package never contains, before unpacking."""
    infos = archive.infolist()
    if len(infos) > form.MAX_ENTRIES:
        raise _error(path, f"{len(infos):,} entries, more than {form.MAX_ENTRIES:,}")

    for info in infos:
        is_known = info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if _describe(info) != _WRITTEN or info.orig_filename != info.filename or not is_known:
            shown = one_line(info.orig_filename, 100)
            raise _error(
                path, f"'{shown}' has a kind, a time or permissions that pack does not write"
            )

    if form.MANIFEST not in archive.namelist():
        raise _error(path, f"it has no {form.MANIFEST}")

    sizes = [info.file_size for info in infos]
    if max(sizes) > form.LARGEST_ENTRY:
        raise _error(path, f"an entry is larger than {form.LARGEST_ENTRY:,} bytes")
    if sum(sizes) > form.LARGEST:
        raise _error(path, f"its entries are larger than {form.LARGEST:,} bytes")
    if not _is_gapless(path, infos):
        raise _error(
            path, "the zip file contains more than its entries, or describes them inconsistently"
        )


def _describe(info: zipfile.ZipInfo) -> tuple[object, ...]:
    """The directory's data about an entry besides its name, position, size and digest."""
    made = (info.date_time, info.create_system)
    attributes = (info.external_attr, info.internal_attr, info.volume)
    versions = (info.create_version, info.extract_version, info.reserved)
    return (*made, *attributes, *versions, info.flag_bits, info.comment, info.extra)


def _is_gapless(path: Path, infos: Sequence[zipfile.ZipInfo]) -> bool:
    """Whether the entries are contiguous, starting at the first byte, each preceded by its data
    from the directory, and followed only by the directory: then other programs can't find different
    content in the file.
    """
    with path.open("rb") as file:
        offset = 0
        for info in infos:
            expected = info.FileHeader()
            file.seek(offset)
            if info.header_offset != offset or file.read(len(expected)) != expected:
                return False

            offset += len(expected) + info.compress_size

        size = file.seek(0, os.SEEK_END)
        file.seek(size - _END.size)
        signature, *disks, here, total, length, start, comment = _END.unpack(file.read())

    is_end = (signature, *disks, comment) == (_END_MARK, 0, 0, 0) and here == total == len(infos)
    return is_end and start == offset and start + length + _END.size == size


def _manifest(path: Path, content: bytes) -> PackageManifest:
    try:
        values = json.loads(content)
        if isinstance(values, dict) and values.get("format") != form.FORMAT:
            raise UserError(
                f"{one_line(path.name)} has the format {one_line(values.get('format'), 20)}, "
                f"but this version reads {form.FORMAT}",
                "a newer memeval may read it:  pip install -U memeval-bench",
            )

        manifest = read_as(values, PackageManifest)
    except (ValueError, RecursionError) as error:
        raise _error(path, f"{form.MANIFEST}: {one_line(error, 200)}") from error

    listed = [form.ENVIRONMENT]
    if form.REGISTER in manifest.entries:
        listed.append(form.REGISTER)
    for key in manifest.runs:
        listed += [entry_of(key, name) for name in form.OF_RUN]

    if list(manifest.entries) != [*listed, form.TEXTS] or not manifest.runs:
        raise _error(path, f"{form.MANIFEST} does not list the entries of its runs in order")
    if list(manifest.protocols) != list(manifest.runs):
        raise _error(path, f"{form.MANIFEST} does not have a protocol for each run")
    if content != manifest_bytes(manifest):
        raise _error(path, f"{form.MANIFEST} is not in the form that pack writes")

    return manifest


def _check_list(path: Path, archive: zipfile.ZipFile, manifest: PackageManifest) -> None:
    names = archive.namelist()
    first = [form.MANIFEST, form.SIGNATURE] if form.SIGNATURE in names else [form.MANIFEST]
    listed = [*first, *manifest.entries]
    for name, expected in zip_longest(names, listed):
        if name != expected:
            shown = one_line(expected if name is None else name, 100)
            raise _error(path, f"'{shown}' is not where {form.MANIFEST} lists it")

    for name, entry in manifest.entries.items():
        if archive.getinfo(name).file_size != entry.size:
            raise _error(path, f"'{name}' does not have the size listed in {form.MANIFEST}")


def _read_entry(archive: zipfile.ZipFile, name: str) -> bytes:
    with archive.open(name) as file:
        content = file.read(form.LARGEST_SMALL + 1)

    if len(content) > form.LARGEST_SMALL:
        raise zipfile.BadZipFile(f"{name} is larger than {form.LARGEST_SMALL:,} bytes")

    return content


def _extract(
    path: Path, archive: zipfile.ZipFile, name: str, target: Path, manifest: PackageManifest
) -> None:
    entry = manifest.entries[name]
    make_folder(target.parent)
    digest, size = hashlib.sha256(), 0
    with archive.open(name) as file, open(target, "xb", opener=open_private) as output:
        while chunk := file.read(_CHUNK):
            size += len(chunk)
            # The size in the directory may be wrong.
            if size > entry.size:
                break

            digest.update(chunk)
            output.write(chunk)

    if size != entry.size or digest.hexdigest() != entry.sha256:
        raise _error(path, f"'{name}' is damaged or was edited: it differs from {form.MANIFEST}")


def _read_object(path: Path, file: Path, name: str) -> Json:
    try:
        if file.stat().st_size > form.LARGEST_SMALL:
            raise ValueError("too large")

        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _error(path, f"{name}: {one_line(error, 200)}") from error

    if not isinstance(content, dict):
        raise _error(path, f"{name} is not an object")

    return content


def _lay_out(path: Path, raw: Path, folder: Path, key: str) -> Run:
    """Puts the entries of a run into the layout of a home."""
    run_folder = folder / "runs" / key
    make_folder(run_folder)
    for name in (RUN_FILE, CONFIG_FILE, RECORDS_FILE):
        _link(raw / entry_of(key, name), run_folder / name)

    try:
        if (run_folder / RUN_FILE).stat().st_size > form.LARGEST_SMALL:
            raise ValueError("too large")

        _check_config((run_folder / CONFIG_FILE).read_bytes())
        summary = RunSummary.read(run_folder)
        # They become file names: `recorded_keys` refuses keys that could lead elsewhere.
        keys = list(map(recorded_keys, summary.identity["keys"]))
    except (ValueError, KeyError, TypeError) as error:
        raise _error(path, f"{entry_of(key, RUN_FILE)}: {one_line(error, 200)}") from error

    if summary.run_key != key:
        raise _error(path, f"{entry_of(key, RUN_FILE)} is about a different run")

    answers, verdicts = {}, {}
    for repeat_keys in keys:
        answers[repeat_keys["answer"]] = folder / "answers" / f"{repeat_keys['answer']}.jsonl"
        verdicts[repeat_keys["judge"]] = folder / "verdicts" / f"{repeat_keys['judge']}.jsonl"

    _split_repeats(path, raw / entry_of(key, form.ANSWERS), "answer", answers)
    _split_repeats(path, raw / entry_of(key, form.INGESTS), "answer", answers)
    _split_repeats(path, raw / entry_of(key, form.VERDICTS), "judge", verdicts)

    for file in answers.values():
        texts = texts_file(file)
        # One file for all: a reference is the digest of its text.
        if not texts.exists():
            _link(raw / form.TEXTS, texts)

    return Run(run_folder, summary)


def _link(file: Path, target: Path) -> None:
    """Gives a file a second name, or copies it on a file system without hard links."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copyfile(file, target)


def _check_config(content: bytes) -> None:
    """Raises `ValueError` for a config.yaml that can't be read safely."""
    if len(content) > form.LARGEST_CONFIG:
        raise ValueError(f"{CONFIG_FILE} is too large")
    # Interpolations would read the environment of the person who opens it.
    if b"${" in content:
        raise ValueError(f"{CONFIG_FILE} contains an interpolation")

    # The loader in C crashes the process on deep nesting; its events are read without recursion.
    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    try:
        for event in yaml.parse(content, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > form.DEEPEST_CONFIG or isinstance(event, yaml.AliasEvent):
                raise ValueError(f"{CONFIG_FILE} is nested too deeply, or refers to itself")
    except yaml.YAMLError as error:
        raise ValueError(f"{CONFIG_FILE} is not YAML: {one_line(error, 100)}") from error


def _split_repeats(path: Path, entry: Path, stage: str, files: Mapping[str, Path]) -> None:
    """Appends the rows of each repeat to the file of its key."""
    target: IO[bytes] | None = None
    headers = set()
    try:
        with entry.open("rb") as rows:
            for line in rows:
                if line.startswith(b'{"header":'):
                    if target is not None:
                        target.close()

                    if line in headers:
                        raise ValueError("a header occurs twice")

                    headers.add(line)
                    target = _target(line, stage, files)
                if target is None:
                    raise ValueError("a row without a header")

                target.write(line)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _error(path, f"{entry.name}: {one_line(error, 200)}") from error
    finally:
        if target is not None:
            target.close()


def _target(line: bytes, stage: str, files: Mapping[str, Path]) -> IO[bytes]:
    key = json.loads(line)["header"].get(stage)
    # Only keys of the run's own identity become file names.
    if key not in files:
        raise ValueError(f"its header names no {stage} key of the run")

    make_folder(files[key].parent)
    return open(files[key], "ab", opener=open_private)
