"""Downloads data sets, and checks existing files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memeval.datasets.contract import DatasetInfo, FileInfo
from memeval.datasets.io.part_file import part_file
from memeval.datasets.locate import build, excerpt_of, git_blob, is_registered, locate, missing
from memeval.datasets.registry import has_adapter
from memeval.datasets.stats import NOUNS, counts
from memeval.datasets.transfer import FetchLimits, Progress, Transfer
from memeval.errors import UserError, WorldError
from memeval.results.files import file_digest


def fetch(
    info: DatasetInfo,
    folder: Path,
    progress: Progress | None = None,
    limits: FetchLimits | None = None,
    files: Sequence[FileInfo] | None = None,
) -> Path:
    """Downloads a data set to its path below `folder`, and returns that path. For a data set of
    several files, downloads all of them or only `files`.

    An intact existing file is not downloaded again. The bytes go to a `.part` file, which a later
    call continues; the file gets its name only after its hash is checked. Raises `UserError` if
    there is nothing to fetch, no hash to compare with, or another file in the way, and `WorldError`
    if the download fails.
    """
    limits = limits or FetchLimits()
    if info.url is None and any(file.url for file in info.files):
        for file in info.files if files is None else files:
            fetch(info=info.part(file), folder=folder, progress=progress, limits=limits)

        return folder / info.file
    if info.url is None:
        raise _nothing_to_fetch(info)

    info = replace(info, sha256=info.sha256 or limits.sha256)
    target = folder / info.file
    if _is_there(info, target):
        return target

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with part_file(target) as part:
            # Another download may have ended while this one waited.
            if not _is_there(info, target):
                _download(Transfer(info, part, limits, progress))
    except OSError as error:
        raise WorldError(
            f"data set '{info.name}' can't be written to {target.parent}: {error.strerror or error}"
        ) from error

    return target


def _nothing_to_fetch(info: DatasetInfo) -> UserError:
    if info.by_hand:
        return UserError(f"data set '{info.name}' can't be fetched directly.", info.how_to_get)

    reason = "ships with memeval" if info.file else "needs no download"
    return UserError(f"data set '{info.name}' {reason}: nothing to fetch.")


def _is_there(info: DatasetInfo, target: Path) -> bool:
    """Whether the registered file exists already.

    Raises `UserError` if another file is in the way, or no sha256 is registered.
    """
    # Checked only once: another download may put the right file there at any moment.
    in_the_way = target.exists()
    if in_the_way and target.is_file() and is_registered(info, target):
        return True

    if info.pin is None:
        problem = (
            f"no sha256 is registered for data set '{info.name}': the download can't be checked."
        )
        if in_the_way:
            problem = f"{target} already exists, but no sha256 is registered to compare it with."

        page = (info.url or "").replace("/resolve/", "/blob/")
        raise UserError(
            problem,
            f"give the expected sha256:  python -m memeval data fetch {info.name} --sha256 HEX   "
            f"(shown by the publisher: {page})",
            "runs on such a file are tagged as unpinned",
        )

    if in_the_way:
        raise UserError(
            f"{target} already exists, and is not the registered file.",
            "move it away, then fetch again",
        )

    return False


def _download(transfer: Transfer) -> None:
    """Fills the part file with the registered content, and gives it the name of the whole file.

    Raises `WorldError`, and keeps nothing, if different content arrives.
    """
    info, part = transfer.info, transfer.part
    continued = transfer.run()
    name, digest_of_part = "sha256", part.digest
    if not info.sha256:
        name, digest_of_part = "git blob", partial(git_blob, part.file)

    if digest_of_part() != info.pin and continued:
        # The continued part may have been the beginning of another file.
        part.cut(0)
        transfer.run()

    digest = digest_of_part()
    if digest != info.pin:
        part.discard()
        known = f" ({info.variants[digest]})" if digest in info.variants else ""
        raise WorldError(
            f"{info.url} returned a different file: its {name} is {digest}{known}, not "
            f"{info.pin}. It was discarded."
        )

    # Renamed in one step, so that an incomplete file never has this name.
    part.path.replace(part.target)


class Verification(Struct, frozen=True):
    """Result of `verify`."""

    path: Path | None
    """None for a set that is generated."""
    sha256: str
    right: bool
    problems: tuple[str, ...]
    """Differences from the registered data set, one line each."""
    excerpt: str = ""
    """Description of the excerpt, if the file is a registered one."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts of cases, sessions, turns and questions; empty for a file that no adapter reads."""
    notes: tuple[str, ...] = ()
    """Repairs and omissions of the adapter, counted."""
    repairs: tuple[str, ...] = ()
    """Every single repair."""


def verify(
    info: DatasetInfo, folder: Path, settings: Mapping[str, Any] | None = None
) -> Verification:
    """Compares a data set with its registered hashes and counts, and reads all of it.

    `settings` select which part of it. Raises `UserError` if it is missing or does not parse.
    """
    given = {"allow_unpinned": True, **(settings or {})}
    dataset = build(info.name, folder, **given) if has_adapter(info.name) else None
    path, digest = None, ""
    if info.file:
        path = dataset.path if dataset else Path(given.get("path") or locate(info, folder))
        if not path.exists():
            raise missing(info, path)
        if path.is_file():
            digest = file_digest(path)

    if dataset is None:
        unlike = tuple(_unlike(info, path, digest, info.files))
        return Verification(path=path, sha256=digest, right=not unlike, problems=unlike)

    problems = list(_unlike(info, path, digest, dataset.files_read()))
    loaded = dataset.open()
    read = counts(dataset.read())
    # A data set of a package may bring its file along with its class.
    if path is None and loaded.path.is_file():
        path = loaded.path

    part = excerpt_of(info, digest)
    if not part:
        problems += _unlike_counts(read, dataset.expected_counts())

    return Verification(
        path=path,
        sha256=digest or loaded.sha256,
        right=not problems,
        problems=tuple(problems),
        excerpt=part.what if part else "",
        counts=read,
        notes=tuple(dict.fromkeys((*loaded.notes, *dataset.notes()))),
        repairs=tuple(dataset.repairs()),
    )


def _unlike_counts(read: Mapping[str, int], expected: Mapping[str, int]) -> Iterator[str]:
    for noun, count in expected.items():
        if noun in NOUNS and read[noun] != count:
            yield f"{read[noun]} {noun}, not {count}"


def _unlike(
    info: DatasetInfo, path: Path | None, digest: str, files: Sequence[FileInfo]
) -> Iterator[str]:
    """How files differ from the registered ones; none for a registered excerpt."""
    if path is None or excerpt_of(info, digest):
        return

    if digest and info.sha256 not in (None, digest):
        yield (
            f"sha256 is {digest}, not {info.sha256}: {info.variants.get(digest, 'an unknown file')}"
        )

    for part in files:
        file = path / part.name
        if not file.is_file():
            yield f"{part.name} is missing"
        elif is_registered(part, file):
            continue
        elif part.sha256 is not None:
            yield f"{part.name}: sha256 is {file_digest(file)}, not {part.sha256}"
        else:
            yield f"{part.name}: git blob is {git_blob(file)}, not {part.git_blob}"
