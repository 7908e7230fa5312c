"""Texts from outside (names, ids, notes, errors, settings) in Markdown and CSV: they are shown, and do nothing.

A report is also the page that MLflow renders. What stands in data or in a reply must not become a picture that calls out, a link, a tag,
another row of a table or a formula.
"""

from __future__ import annotations

import re

from memeval.shown import printable

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKS = re.compile(r"[\\`*\[\]|&<>~]|(?<![^\W_])_|_(?![^\W_])|://|(?i:www)\.|(?<=\w)@(?=[\w-]+\.)")
_FORMULA = re.compile(r"[\s]*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FENCE = re.compile(r"`{3,}")


def inline(value: object) -> str:
    """Any value as words of a paragraph or a cell: on one line, every mark of Markdown and HTML escaped."""
    line = " ".join(printable(str(value)).split())
    return _opening(_MARKS.sub(_escaped, line))


def code(value: object) -> str:
    """Any value as inline code within a table."""
    line = " ".join(printable(str(value)).split())
    return f"`{line.replace('`', chr(39)).replace('|', chr(92) + '|')}`" if line else "` `"


def fenced(text: str, language: str) -> list[str]:
    """A block of code that its own text can't end."""
    shown = printable(text)
    fence = max([*_FENCE.findall(shown), "``"], key=len) + "`"
    return [f"{fence}{language}", shown, fence]


def csv_cell(value: object) -> object:
    """A cell that a spreadsheet shows and does not reckon with: what would be a formula begins with an apostrophe. Numbers stay numbers."""
    if not isinstance(value, str) or _NUMBER.fullmatch(value) or not _FORMULA.match(value):
        return value
    return f"'{value}"


def _escaped(found: re.Match[str]) -> str:
    mark = found[0]
    if mark in _HTML:
        return _HTML[mark]
    if mark == "://":
        return "&#58;//"  # else most renderers make a bare address a link
    if mark == "@":
        return "&#64;"
    if mark.endswith("."):
        return f"{mark[:-1]}&#46;"
    return f"\\{mark}"


def _opening(line: str) -> str:
    """A line whose beginning makes no heading, list, rule or quotation."""
    if re.match(r"#|[-+=](?:\s|[-+=]|$)", line):
        return f"\\{line}"
    return re.sub(r"^(\d{1,9})([.)])(?=\s|$)", r"\1\\\2", line)
