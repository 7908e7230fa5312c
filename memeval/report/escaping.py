"""Strings from outside (names, ids, notes, errors, settings) in Markdown, CSV, HTML and LaTeX.

They are shown literally and have no effect. MLflow also renders the reports. Content of data or a
reply must not become a picture from another server, a link, a tag, a row of a table or a formula.
"""

import re
import unicodedata
from collections.abc import Sequence
from html import escape

from memeval.text.shown import printable

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKS = re.compile(
    # An interval and its header stay as they are, unless the next character would make them a link.
    r"\[(?:95 ?%|[−-]?[\d.,]+k?, [−-]?[\d.,]+k?)\](?![(\[:])"
    r"|[\\`*\[\]|&<>~]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore within a word is not a mark
    r"|://|(?i:www)\.|(?<=\w)@(?=[\w-]+\.)"  # what becomes a link without brackets
)
_FORMULA = re.compile(r"[\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FENCE = re.compile(r"`{3,}")
_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": r"{\char96}",
    "Δ": r"$\Delta$",
    "±": r"$\pm$",
    "−": "$-$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "α": r"$\alpha$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "’": "'",
    "ß": r"\ss{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
_TEX_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
}
"""LaTeX commands for the combining marks."""


def inline(value: object) -> str:
    """Any value as words of a paragraph or a cell, on one line.

    Every mark of Markdown and HTML is escaped.
    """
    line = " ".join(printable(str(value)).split())
    return _escape_opening(_MARKS.sub(_escape, line))


def code(value: object) -> str:
    """Any value as inline code within a table."""
    line = " ".join(printable(str(value)).split()) or " "
    return f"`{line.replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def fenced(text: str, language: str) -> list[str]:
    """A block of code that nothing in the text can end."""
    shown = printable(text)
    # One backtick more than the longest fence inside, which would otherwise end the block.
    fence = max([*_FENCE.findall(shown), "``"], key=len) + "`"
    return [f"{fence}{language}", shown, fence]


def csv_cell(value: object) -> object:
    """A cell that a spreadsheet shows and does not evaluate.

    A cell that would be a formula begins with an apostrophe. Numbers stay numbers.
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value) or not _FORMULA.match(value):
        return value

    return f"'{value}"


def html(value: object) -> str:
    """Any value as text within an element or an attribute of HTML, on one line."""
    return escape(" ".join(printable(str(value)).split()))


def tex(value: object) -> str:
    """Any value as text that LaTeX prints unchanged, in any engine and without a package.

    A letter that plain LaTeX has no glyph for is written as its code: `[U+4E2D]`.
    """
    line = " ".join(printable(str(value)).split())
    # Two hyphens would become a dash.
    return "-{}-".join("".join(map(_tex_letter, part)) for part in line.split("--"))


def tex_row(cells: Sequence[str]) -> str:
    """Escaped cells as a row of a LaTeX table."""
    row = " & ".join(cells)
    # LaTeX would read these as an argument of the row end before them.
    if row.startswith(("[", "*")):
        row = f"{{}}{row}"

    return rf"{row} \\"


def _tex_letter(letter: str) -> str:
    if letter in _TEX:
        return _TEX[letter]
    if letter.isascii():
        return letter

    parts = unicodedata.normalize("NFD", letter)
    base, accent = parts[0], parts[1:]
    if base.isascii() and base.isalpha() and accent in _TEX_ACCENTS:
        # Under an accent, i and j lose their dot.
        bare = f"\\{base}" if base in "ij" else base
        return f"\\{_TEX_ACCENTS[accent]}{{{bare}}}"

    return f"[U+{ord(letter):04X}]"


def _escape(match: re.Match[str]) -> str:
    mark = match[0]
    if len(mark) > 1 and mark.startswith("["):
        return mark
    if mark in _HTML:
        return _HTML[mark]
    # Most renderers turn a bare address (https://…, www.…, a@b.c) into a link.
    if mark == "://":
        return "&#58;//"
    if mark == "@":
        return "&#64;"
    if mark.endswith("."):
        return f"{mark[:-1]}&#46;"

    return f"\\{mark}"


def _escape_opening(line: str) -> str:
    """A line, escaped if it begins like a heading, a list, a rule or a quotation."""
    if re.match(r"#|[-+=](?:\s|[-+=]|$)", line):
        return f"\\{line}"

    return re.sub(r"^(\d{1,9})([.)])(?=\s|$)", r"\1\\\2", line)
