"""Untrusted text is inert in a report, a table and a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from sample_runs import summary, write_folder

from memeval.report.comparison import comparison_csv, comparison_markdown, comparison_table
from memeval.report.escaping import code, csv_cell, fenced, inline, tex, tex_row
from memeval.report.markdown import write_report
from memeval.report.plots.draw import draw
from memeval.report.plots.prices import sweep_plot
from memeval.results import Note, NoteKind

HOSTILE = (
    "![p](http://evil.test/p.png)",
    "[x](javascript:alert(1))",
    "<script>fetch('http://evil.test')</script>",
    "<img src=http://evil.test/i.png onerror=alert(1)>",
    "a | b | c\n| d |",
    "`code` ``more``",
    "<!-- comment",
    "&#33;[p](http://evil.test)",
    "\\![p](http://evil.test/p.png)",
    "\\|![p](http://evil.test/p.png)",
    "[x]: http://evil.test\n\n![x]",
    "http://evil.test www.evil.test me@evil.test",
    "\x1b[31mred\x1b[0m \u202ereversed",
    "a[/nope] [bold]b",
    "# heading\n\n- list\n1. one",
    "```\n![p](http://evil.test/p.png)\n```",
    "$\\frac{a$",
    '=HYPERLINK("http://evil.test")',
)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_markup_character_keeps_its_meaning(text: str) -> None:
    for shown in (inline(text), inline(f"a {text}")):
        assert "\n" not in shown and "\x1b" not in shown
        assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`*|]", shown)
        assert "<" not in shown and ">" not in shown and "://" not in shown and "www." not in shown
    assert (
        code(text).count("`") == 2
        and "\n" not in code(text)
        and not re.search(r"(?<!\\)\|", code(text))
    )
    fence, *_, last = fenced(text, "sh")
    assert last not in text and fence == f"{last}sh"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+cmd", "'+cmd"),
        ("-x", "'-x"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        (" =1", "' =1"),
        ("\uff1d1", "'\uff1d1"),
        ("-1", "-1"),
        ("-1.5e-3", "-1.5e-3"),
        ("+7", "+7"),
        ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
        ("bm25", "bm25"),
        (-0.5, -0.5),
        ("", ""),
    ],
)
def test_formulas_are_quoted_in_spreadsheet_cells(value: object, written: object) -> None:
    assert csv_cell(value) == written


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("text", HOSTILE)
def test_tables_with_hostile_names_stay_intact(text: str, tmp_path: Path) -> None:
    plain = [summary(system) for system in ("bm25", "rag")]
    cells = [
        replace(cell, params={**cell.params, "llm.model": text * times})
        for times, cell in enumerate(plain, 1)
    ]
    lines = comparison_markdown(cells).splitlines()
    assert len(lines) == 4 and len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    rows = list(csv.reader(io.StringIO(comparison_csv(cells))))
    assert len(rows) == 3 and len(set(map(len, rows))) == 1
    assert not any(cell.startswith(("=", "@", "\t", "\r")) for row in rows for cell in row)
    console = Console(width=400, file=io.StringIO(), force_terminal=True)
    console.print(comparison_table(cells, console.width))
    assert "\x1b[31mred" not in console.file.getvalue()  # type: ignore[attr-defined]
    draw(sweep_plot(cells), tmp_path / "plot.png")


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("text", HOSTILE)
def test_report_with_hostile_texts_stays_intact(text: str, tmp_path: Path) -> None:
    cell = summary("rag", repeats=2)
    categories = tuple(replace(row, name=text, category=text) for row in cell.categories)
    hostile = replace(
        cell,
        name=text,
        dataset=text,
        notes=(Note(NoteKind.REMARK, text),),
        tags={**cell.tags, "protocol": text},
        params={**cell.params, "llm.model": text, text: text},
        categories=categories,
        facets={text: categories},
        command=f"python -m memeval 'llm.model={text}'",
    )
    folder = write_folder(tmp_path, hostile)
    write_report(folder)
    outside = re.sub(
        r"(?ms)^(`{3,})sh\n.*?^\1$", "", (folder / "report.md").read_text(encoding="utf-8")
    )
    outside = re.sub(r"`[^`\n]*`", "", outside)
    assert not re.search(r"(?<!\\)!?\[[^\]]*\]\((?!plots/)", outside)
    assert "<script" not in outside and "<img" not in outside and "://evil" not in outside


def test_latex_prints_letters_without_a_package() -> None:
    assert tex("Čapek, naïve Łódź & 中--") == (
        r"\v{C}apek, na\"{\i}ve \L{}\'{o}d\'{z} \& [U+4E2D]-{}-"
    )
    assert tex_row(["[95%]", "b"]) == r"{}[95%] & b \\"
