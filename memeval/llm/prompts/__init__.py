"""Prompt templates: plain text files with a system part, a line `---` and a user part.

Their sha256 is part of the keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Self

from memeval.errors import UserError, unknown
from memeval.results.files import reading
from memeval.text.names import text_digest
from memeval.text.shown import one_line

_SECTION = re.compile(r"^=== *(\S+) *===[ \t]*\n", re.MULTILINE)


@dataclass(frozen=True)
class PromptTemplate:
    """The text of a prompt, with fields such as `{question}`."""

    name: str
    system: str
    user: str
    sha256: str
    """Hash of the whole text."""
    parts: Mapping[str, Self] = field(default_factory=dict)
    """The templates by kind, if a prompt has several; `system` and `user` are then empty."""
    is_custom: bool = False
    """Whether a user wrote it."""


def load_builtin(name: str, package: str = __name__) -> PromptTemplate:
    """A built-in template, such as `answer_short`: the file `<name>.txt` of a package.

    Raises `UserError` with the nearest names for an unknown one.
    """
    folder = Path(str(files(package)))
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise unknown("prompt template", name, (other.stem for other in folder.glob("*.txt")))

    return _parse(name, path, ())


def load_from_package(name: str, folder: str, package: str) -> PromptTemplate:
    """A template of an installed package: the file `<name>.txt` in its `folder`, a module's path.

    Raises `UserError` if there is no such file, or it lacks a field.
    """
    try:
        path = Path(str(files(folder).joinpath(f"{name}.txt")))
    except (ImportError, TypeError) as error:
        raise UserError(
            f"prompt '{name}' of {package}: the folder {folder} does not exist: {one_line(error)}"
        ) from error

    return from_file(str(path), ("question", "context"))


def from_file(path: str, needed: tuple[str, ...]) -> PromptTemplate:
    """A user's template.

    Raises `UserError` if the file can't be read or lacks one of the `needed` fields, such as
    `{question}`.
    """
    return replace(_parse(Path(path).name, Path(path), needed), is_custom=True)


def sections_from_file(
    path: str, kinds: tuple[str, ...], needed: tuple[str, ...]
) -> PromptTemplate:
    """A user's template of several parts: one file, with a line `=== kind ===` before each part.

    Raises `UserError` if the file can't be read, or lacks a part, or a part lacks one of the
    `needed` fields.
    """
    # Text above the first section is ignored.
    _, *sections = _SECTION.split(_read(Path(path)))
    names = sections[::2]
    texts = dict(zip(names, sections[1::2], strict=True))
    missing = [kind for kind in kinds if kind not in texts]
    if missing:
        hints = [f"begin it with a line:  === {kind} ===" for kind in missing]
        raise UserError(f"the prompt template {path} lacks the section '{missing[0]}'", *hints)

    for name in names:
        if name not in kinds or names.count(name) > 1:
            raise UserError(
                f"the prompt template {path} has an unknown section '{name}'",
                f"its sections are:  {', '.join(kinds)}",
            )

    parts = {}
    for kind in kinds:
        location = f"{path}, section '{kind}'"
        parts[kind] = _template(location=location, name=kind, text=texts[kind], needed=needed)

    return replace(join_parts(Path(path).name, parts), is_custom=True)


def join_parts(name: str, parts: Mapping[str, PromptTemplate]) -> PromptTemplate:
    """One template of several parts; its sha256 is computed from theirs."""
    digests = "".join(f"{kind} {part.sha256}\n" for kind, part in parts.items())
    return PromptTemplate(
        name=name,
        system="",
        user="",
        sha256=text_digest(digests),
        parts=parts,
    )


def _parse(name: str, path: Path, needed: tuple[str, ...]) -> PromptTemplate:
    return _template(location=str(path), name=name, text=_read(path), needed=needed)


def _read(path: Path) -> str:
    try:
        with reading(f"the prompt template {path}"):
            return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"the prompt template {path} is not UTF-8") from error


def _template(location: str, name: str, text: str, needed: tuple[str, ...]) -> PromptTemplate:
    missing = [f"{{{field}}}" for field in needed if f"{{{field}}}" not in text]
    if missing:
        raise UserError(f"the prompt template {location} lacks {', '.join(missing)}")

    system, separator, user = text.partition("\n---\n")
    if not separator:
        system, user = "", text

    return PromptTemplate(
        name=name,
        system=system.strip(),
        user=user.strip(),
        # Hash of the file as it is, before stripping: it is part of the keys of everything made
        # with it.
        sha256=text_digest(text),
    )
