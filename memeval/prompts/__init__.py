"""The wordings: plain text files, a system part and a user template with a line `---` between. Their sha256 enters the keys."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from memeval.errors import UserError, unknown

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Wording:
    """The words of a prompt."""

    name: str
    system: str
    user: str
    sha256: str
    """Of the whole text."""


def shipped(name: str) -> Wording:
    """A wording of ours, such as `answer_short`. Raises `UserError` for a name that there is not."""
    path = _FOLDER / f"{name}.txt"
    if not path.is_file():
        raise unknown("wording", name, (other.stem for other in _FOLDER.glob("*.txt")))
    return _parse(name, path, ())


def from_file(path: str, needed: tuple[str, ...]) -> Wording:
    """A user's wording. Raises `UserError` where the file can't be read or lacks one of the `needed` fields, such as `{question}`."""
    return _parse(Path(path).name, Path(path), needed)


def _parse(name: str, path: Path, needed: tuple[str, ...]) -> Wording:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the wording {path} can't be read: {error}") from error
    missing = [field for field in needed if "{" + field + "}" not in text]
    if missing:
        raise UserError(f"the wording {path} lacks {', '.join('{' + field + '}' for field in missing)}")
    system, separator, user = text.partition("\n---\n")
    if not separator:
        system, user = "", text
    return Wording(name, system.strip(), user.strip(), hashlib.sha256(text.encode()).hexdigest())
