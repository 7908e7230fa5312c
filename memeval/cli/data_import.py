"""`python -m memeval data import FILE… --into FILE`: your own conversations as a data set."""

import argparse
import json
from pathlib import Path

from memeval.cli.data_check import check
from memeval.cli.plan_text import asked_counts, outlook_line
from memeval.datasets.importing.cases import ALL
from memeval.datasets.importing.forms import FORMS
from memeval.datasets.importing.read import Imported, ImportOptions, import_files
from memeval.datasets.importing.table import parse_map
from memeval.errors import UserError, unknown
from memeval.results.files import reading
from memeval.results.private import new_file
from memeval.runs.display.terminal import print_folded
from memeval.runs.forecast.outlook import outlook_for
from memeval.text.personal import Redactor
from memeval.text.shown import counted, one_line

QUESTIONS_A_CASE = 10
"""Questions per case, assumed if the cases have no questions yet."""


def import_data(chosen: argparse.Namespace) -> int:
    """Writes the file, reports counts of messages kept and left out, and the difference that the
    cases could show.

    Exit status 2 if the written file has a mistake.
    """
    target = Path(chosen.into)
    table = Path(f"{target}.redacted")
    for path in (target, table):
        if path.exists():
            raise UserError(f"{path} already exists.", "move it away, or name another file")

    options, redactor = _import_options(chosen), _redactor(chosen)
    imported = import_files(list(map(Path, chosen.files)), options, redactor)
    with new_file(target) as file:
        imported.write(file, lines=target.suffix == ".jsonl")

    cases = "all in one case" if imported.case == ALL else f"one case per {imported.case}"
    print(f"{FORMS[imported.form].title}, {one_line(cases, 80)}")
    for line in imported.log.lines():
        print_folded(f"  {one_line(line)}")

    if redactor is not None:
        _write_table(redactor, table)

    outlook = _outlook(imported, target)
    # The check reads the file again: a large file should not be in memory twice.
    del imported
    status = check(target)
    if status == 0:
        print_folded(outlook)

    return status


def _import_options(chosen: argparse.Namespace) -> ImportOptions:
    form = vars(chosen)["as"]  # `as` is a keyword of Python
    if chosen.windows is not None and chosen.case is not None:
        raise UserError("--windows and --case both define cases: use only one of them.")
    if form is not None and form not in FORMS:
        raise unknown("form in --as", one_line(form), FORMS)

    return ImportOptions(
        form=form,
        columns=parse_map(chosen.map),
        date_format=chosen.date_format,
        case=chosen.case,
        windows=chosen.windows,
    )


def _redactor(chosen: argparse.Namespace) -> Redactor | None:
    if not chosen.redact and chosen.redact_names is None:
        return None

    names: list[str] = []
    if chosen.redact_names is not None:
        try:
            with reading(chosen.redact_names, end="."):
                names = Path(chosen.redact_names).read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise UserError(f"{chosen.redact_names} is not UTF-8 text.") from error

    return Redactor(names=names)


def _write_table(redactor: Redactor, table: Path) -> None:
    """Writes the originals of the placeholders to a file next to the data, for its owner alone."""
    kinds = [counted(count, kind) for kind, count in sorted(redactor.counts.items())]
    if not kinds:
        print("  redacted: nothing found")
        return

    with new_file(table) as file:
        json.dump(redactor.originals, file, indent=1, ensure_ascii=False)
        file.write("\n")

    print(f"  redacted: {', '.join(kinds)}; {table} lists the originals: keep it private")


def _outlook(imported: Imported, target: Path) -> str:
    count, questions = asked_counts(imported.cases)
    per_case = None
    if not questions:
        count = len(imported.cases)
        per_case = QUESTIONS_A_CASE
        questions = per_case * count

    outlook = outlook_for(target.stem, questions=questions, cases=count)
    line = outlook_line(outlook, per_case=per_case)
    if count == 1:
        line += "; for more cases:  --case NAME or --windows N"

    return f"  {line}"
