"""Writes the page: one file, with its style, its script and its data in it."""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memeval.metrics.formats import (
    NONE,
    count,
    coverage_percent,
    figure,
    interval,
    percent,
    probability,
)
from memeval.process.collector import rare_collections
from memeval.records import Status
from memeval.report.compared import ComparisonData
from memeval.report.page.build import page_data
from memeval.report.page.data import ConversationData, PageData
from memeval.report.page.runs import PageRun
from memeval.results import write_atomically
from memeval.text.shown import printable

if TYPE_CHECKING:
    from jinja2 import Environment, Template

FILES = Path(__file__).parent / "files"
FORMS = 6
"""Number of line styles in the style sheet."""
SCRIPTS = ("text", "store", "filters", "list", "question", "sorting", "start")
"""The parts of the script, in the order in which they are put together."""


def write_page(
    folders: Sequence[Path], target: Path, comparison: ComparisonData | None = None
) -> None:
    """Writes the page of one run folder, or of several side by side, to `target`, with the findings
    of their comparison.

    Raises `OSError` if a file can't be read or written, `ValueError` if a run is damaged.
    """
    with rare_collections():
        runs = list(map(PageRun.read, folders))
        html = render(page_data(runs, comparison))

    write_atomically(target, html)


def render(data: PageData) -> str:
    style = _source("style.css")
    script = "\n".join(_source(f"{name}.js") for name in SCRIPTS)
    labels, keys, unscored = [], [], []
    statuses: dict[str, None] = {}
    for cell in data.cells:
        labels.append(cell.label)
        keys.append(cell.summary.run_key)
        statuses |= dict.fromkeys(cell.summary.statuses)
        if cell.scored < cell.asked or not set(cell.summary.statuses) <= {Status.OK.value}:
            unscored.append(cell)

    index = {**data.questions.index, "cells": labels, "keys": keys}
    comparison, differences = data.comparison, {}
    if comparison and comparison.baseline:
        differences = {row.cell: row for row in comparison.differences}

    return load_template().render(
        page=data,
        to_baseline=bool(comparison and comparison.baseline),
        forest=comparison and comparison.forest,
        number_of={key: number for number, key in enumerate(keys, start=1)},
        largest=largest_difference(data.conversations),
        differences=differences,
        statuses=list(statuses),
        unscored=unscored,
        notes=notes(data),
        index=as_data(index),
        style=raw(style),
        script=raw(script),
        policy=policy(style, script),
    )


def _source(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def notes(data: PageData) -> list[tuple[str, list[str]]]:
    """Each note once, with the labels of the cells that have it."""
    cells_of: dict[str, list[str]] = {}
    for cell in data.cells:
        for note in cell.notes:
            cells_of.setdefault(note, []).append(cell.label)

    return list(cells_of.items())


def as_data(value: Any) -> str:
    """JSON for a `script` element: nothing in it can end that element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    # `</script>` and `<!--` are markup even within a JSON string.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")

    return raw(text)


def policy(style: str, script: str) -> str:
    """Content security policy of the page: run this script and this style, and fetch nothing."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def raw(text: str) -> str:
    """memeval's own text, which the template must not escape."""
    from markupsafe import Markup

    return Markup(text)


@cache
def load_template(name: str = "page.html.j2") -> "Template":
    """A page's template, compiled once in a process."""
    return _environment().get_template(name)


def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def show(value: Any) -> Any:
        """Text from outside; characters that change how the text around is read become visible."""
        if isinstance(value, str) and type(value) is not Markup:
            return printable(value)

        return value

    environment = Environment(
        loader=FileSystemLoader(FILES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        # A misspelt name in the template is an error, instead of an empty place on the page.
        undefined=StrictUndefined,
        finalize=show,
    )
    environment.filters |= {
        "percent": percent,
        "coverage": coverage_percent,
        "count": count,
        "figure": figure,
        "p": probability,
        "pairwise": pairwise,
    }
    environment.globals |= {"interval": interval, "shade": shade, "NONE": NONE, "form_of": form_of}
    return environment


def form_of(line: int) -> int:
    """The line style in the style sheet for a line; each style has its own dashes."""
    return line % FORMS + 1


LEVELS = 3
"""Shades of a colour on either side of no difference."""


def shade(value: float | None, largest: float) -> str:
    """Class of a coloured figure: `plus1` … `plus3`, `minus1` … `minus3`, or `none`."""
    if value is None or largest <= 0 or abs(value) < 0.05 * largest:
        return "none"

    level = min(LEVELS, 1 + int(LEVELS * abs(value) / largest))
    return f"{'plus' if value > 0 else 'minus'}{level}"


def largest_difference(conversations: Sequence[ConversationData]) -> float:
    """The largest difference in any conversation: the shades are relative to it."""
    largest = 0.0
    for conversation in conversations:
        for difference in conversation.differences:
            largest = max(largest, abs(difference or 0.0))

    return largest


def review_page(file: Path, reviewer: str) -> tuple[str, str]:
    """The page for reviewing the user's own questions: its HTML, and the content security policy to
    send with it. It loads and saves through the server.
    """
    style = _source("style.css") + _source("review.css")
    script = "\n".join([_source("text.js"), _source("review.js")])
    html = load_template("review.html.j2").render(
        file=file.name, reviewer=reviewer, style=raw(style), script=raw(script)
    )
    page_policy = "connect-src 'self'; frame-ancestors 'none'"
    return html, f"{policy(style, script)}; {page_policy}"
