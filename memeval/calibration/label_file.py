"""Files of labels, CSV or JSON lines: judgements of answers by a person or another source.

A row of a file that `label` writes names its run, the question, the repeat and, by a digest, the
answer. Rows from other sources contain the judge's verdict with the label, see `judge probe`.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from memeval.calibration.scored import AnswerKey, JudgedAnswer, by_key
from memeval.datasets.io.entries import Mistakes
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.lines import parse_lines
from memeval.datasets.io.tables import read_table
from memeval.errors import UserError
from memeval.report.escaping import csv_cell
from memeval.report.tables import csv_text
from memeval.results import json_line, write_atomically
from memeval.results.files import reading, writing
from memeval.results.private import make_folder
from memeval.text.redaction import redacted
from memeval.text.shipped import location_of
from memeval.text.shown import one_line, printable

SUFFIXES = (".csv", ".jsonl")
COLUMNS = ("run", "question_id", "repeat", "category", "question", "gold", "answer", "answer_id")
VERDICT, LABEL = "verdict", "label"
REFUSAL = "(none: the right answer is a refusal)"
WORDS = {
    **dict.fromkeys(("right", "correct", "yes", "y", "true", "1"), True),
    **dict.fromkeys(("wrong", "incorrect", "no", "n", "false", "0"), False),
}
"""The accepted words for a label or a verdict."""


class LabelRow(Struct, frozen=True):
    where: str
    """Line of the file, for errors."""
    run: str
    """Run key; empty if the label is not about a run's answer."""
    question_id: str
    repeat: int
    answer_id: str
    kind: str
    """Kind of answer, if the file states it."""
    judge: str
    """Judge that gave the verdict, as named in tables; empty if the file does not state it."""
    judge_key: str
    """Digest of that judge, see `JudgeIdentity`; empty if the file does not state it."""
    verdict: bool | None
    label: bool | None
    """None if not labelled yet."""

    @property
    def key(self) -> AnswerKey:
        return self.question_id, self.repeat


def suffix_of(path: Path) -> str:
    """`.csv` or `.jsonl`. Raises `UserError` for another suffix."""
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{one_line(path)}: the name of a label file must end in .csv or .jsonl")

    return path.suffix.lower()


def read_labels(path: Path) -> list[LabelRow]:
    """The rows of a file.

    Raises `UserError` if it can't be read, with a line for each row that does not fit.
    """
    suffix = suffix_of(path)
    with reading(one_line(path)):
        content = path.read_bytes()

    given: Iterable[Fields]
    if suffix == ".csv":
        # Spreadsheets in some countries write semicolons.
        header = content.lstrip().partition(b"\n")[0]
        delimiter = ";" if header.count(b";") > header.count(b",") else ","
        table = read_table(content, path, [LABEL], delimiter)
        given = (fields for fields in table if any(fields.values.values()))
    else:
        given = list(parse_lines(content.split(b"\n"), path))
        if given and not any(LABEL in fields.values for fields in given):
            raise UserError(
                f"{one_line(path)} is not a file of labels: no row has the field {LABEL}",
                "write one:  python -m memeval label RUN",
            )

    rows: list[LabelRow] = []
    problems: list[str] = []
    for fields in given:
        row = _row(fields.record, fields.values)
        if isinstance(row, str):
            problems.append(row)
        else:
            rows.append(row)

    raise_problems(path, problems)
    if not rows:
        raise UserError(f"{one_line(path)} has no rows")

    return rows


def raise_problems(path: Path, problems: list[str]) -> None:
    """Raises `UserError` with a line for each problem, if there is one."""
    Mistakes(path, location_of("docs/judging.md"), messages=problems).refuse()


def _row(where: str, content: Mapping[str, Any]) -> LabelRow | str:
    texts = {}
    for name in ("run", "question_id", "answer_id", "kind", "judge", "judge_key"):
        value = content.get(name)
        if value is not None and not isinstance(value, str):
            return f"{where}: {name} is not a string"

        # An apostrophe before text that looks like a formula was added by `csv_cell`.
        if value and value[0] == "'" and csv_cell(value[1:]) == value:
            value = value[1:]

        texts[name] = value or ""

    marks = {}
    for name in (LABEL, VERDICT):
        value = content.get(name)
        word = "" if value is None else str(value).strip().lower()
        if word and word not in WORDS:
            return f"{where}: {name} must be right or wrong, not '{one_line(word, 40)}'"

        marks[name] = WORDS.get(word)

    repeat = str(content.get("repeat") or 0)
    if not (repeat.isascii() and repeat.isdigit() and len(repeat) < 10):
        return f"{where}: repeat must be a number from 0, not '{one_line(repeat, 40)}'"

    texts["kind"] = one_line(texts["kind"], 40)
    return LabelRow(
        where=where, repeat=int(repeat), verdict=marks[VERDICT], label=marks[LABEL], **texts
    )


class LabelSheet(Struct, frozen=True):
    """Answers of one run to be labelled, with the labels given so far."""

    path: Path
    run_key: str
    answers: tuple[JudgedAnswer, ...]
    labels: dict[AnswerKey, bool]
    show_verdict: bool = False
    """Whether the judge's verdict is shown; a person who labels should not see it."""

    def with_label(self, key: AnswerKey, label: bool) -> Self:
        return replace(self, labels={**self.labels, key: label})

    def write(self) -> None:
        """Writes the whole file, or leaves the old one. Raises `StorageError`."""
        suffix = suffix_of(self.path)
        rows = list(map(self._content, self.answers))
        text = _as_csv(rows) if suffix == ".csv" else "".join(map(json_line, rows))

        with writing(self.path):
            make_folder(self.path.parent)
            write_atomically(self.path, text)

    def _content(self, answer: JudgedAnswer) -> dict[str, Any]:
        content: dict[str, Any] = {
            "run": self.run_key,
            "question_id": answer.question_id,
            "repeat": answer.repeat,
            "category": answer.category,
            "question": redacted(answer.question),
            "gold": gold_text(answer),
            "answer": redacted(answer.answer),
            "answer_id": answer.answer_id,
        }
        if self.show_verdict:
            content[VERDICT] = right_or_wrong(answer.right)

        content[LABEL] = right_or_wrong(self.labels.get(answer.key))
        return content


def right_or_wrong(right: bool | None) -> str:
    """A verdict or a label, if any, as its word."""
    if right is None:
        return ""

    return "right" if right else "wrong"


def gold_text(answer: JudgedAnswer) -> str:
    """The right answers on one line."""
    return redacted("; ".join(answer.gold)) or REFUSAL


def _as_csv(rows: Iterable[dict[str, Any]]) -> str:
    lines: list[Iterable[object]] = []
    for row in rows:
        if not lines:
            lines.append(row)  # the header: the names of its members

        lines.append(map(printable, map(str, row.values())))

    return csv_text(lines)


def keep_labels(
    path: Path, run_key: str, answers: Sequence[JudgedAnswer]
) -> dict[AnswerKey, bool | None]:
    """The answers that a file already lists, in its order, with their labels; None without a label.

    Empty if the file does not exist. Raises `UserError` if the file is about another run, or has
    labels of answers that the run no longer has: a person's work is never overwritten.
    """
    if not path.exists():
        return {}

    other = "write to another file:  --output FILE"
    of_run = by_key(answers)
    kept: dict[AnswerKey, bool | None] = {}
    for row in read_labels(path):
        name, where = one_line(row.question_id), f"{one_line(path)}: {row.where}"
        if row.run != run_key:
            raise UserError(f"{where}: a label for run '{one_line(row.run)}', not {run_key}", other)
        if row.key in kept:
            raise UserError(f"{where}: '{name}' is listed twice")

        answer = of_run.get(row.key)
        if answer is not None and answer.answer_id == row.answer_id:
            kept[row.key] = row.label
        elif row.label is not None:
            raise UserError(f"{where}: the run now has a different answer to '{name}'", other)

    return kept
