"""OpsEval's four schemas: a row of one of its files becomes an item, and each flaw in it becomes a
named repair.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from memeval.datasets.io.fields import Fields, read_records
from memeval.datasets.opseval.items import OpsEvalItem, Rows
from memeval.datasets.opseval.letters import (
    CLEAN_LETTERS,
    MARKED,
    gold_letters,
    split_choices,
    without_answer,
)

FILES: Mapping[str, str] = {
    "wired_network": "Wired Network.json",
    "5g_communication": "5G Communication.json",
    "oracle_database": "Oracle Database.json",
    "log_analysis": "Log Analysis.json",
}
"""File of each domain, below the folder of its split."""
STATEMENT = ("正确", "错误")
"""Choices of a statement that has none: A true and B false, as in nearly all other rows with two
choices.
"""


def read_file_of(domain: str, content: bytes, path: Path, rows: Rows) -> None:
    """Adds the rows of a domain's file.

    Raises `UserError` naming file, record and field if a row does not match its schema.
    """
    records = read_records(content, path, "question")
    seen: set[str] = set()
    for row in records:
        row_id = row.answer("id")
        row.check_new("id", row_id, seen)
        item = _READERS[domain](row, row_id, rows)
        if item:
            rows.items.append(item)

    rows.counts[domain] = len(records)


def _wired(row: Fields, row_id: str, rows: Rows) -> OpsEvalItem | None:
    """A row with choices in a list, `type` 1 if several are right, topics and a solution."""
    item = OpsEvalItem(
        row_id=row_id,
        domain="wired_network",
        question=row.filled("question"),
        choices=_choices(row),
        multi_select=_is_multi_select(row, "type"),
        topics=tuple(map(str.strip, row.texts("topic"))),
        solution=row.text("solution").strip(),
    )
    if not item.choices:
        rows.repair(row_id, "left_out", "there are no choices")
        return None

    return _with_gold(row, rows, item)


def _5g(row: Fields, row_id: str, rows: Rows) -> OpsEvalItem | None:
    """A row with choices in a list and again below the question, `qtype` 1 if several are right."""
    choices, several = _choices(row), _is_multi_select(row, "qtype")
    if not choices:
        rows.repair(row_id, "statement", f"no choices: given A {STATEMENT[0]} and B {STATEMENT[1]}")

    listed = "\n".join(f"{chr(ord('A') + index)}: {choice}" for index, choice in enumerate(choices))
    question = row.filled("question").strip()
    item = OpsEvalItem(
        row_id=row_id,
        domain="5g_communication",
        question=question.removesuffix(listed).strip() or question,
        choices=choices or STATEMENT,
        multi_select=several,
        solution=row.text("solution").strip(),
    )
    return _with_gold(row, rows, item)


def _log(row: Fields, row_id: str, rows: Rows) -> OpsEvalItem | None:
    """A row with choices inside the question's text if there are some and the answer is letters;
    else with an answer in words.
    """
    lettered = split_choices(row.filled("question"))
    # Also in lower case: the golds of two of these questions are `b` and `ac`.
    if lettered and gold_letters(row.answer("answer"), len(lettered.choices)):
        return _read_inline(row, row_id, rows, domain="log_analysis")

    question = _without_given_answer(row.text("question"), row_id, rows)
    gold = row.answer("answer").strip()
    return OpsEvalItem(row_id=row_id, domain="log_analysis", question=question, gold=(gold,))


def _read_inline(row: Fields, row_id: str, rows: Rows, domain: str) -> OpsEvalItem | None:
    """A row with the choices in its text.

    The schema does not say how many are right, so that several may always be chosen.
    """
    lettered = split_choices(row.text("question"))
    if not lettered:
        rows.repair(row_id, "left_out", "no choices can be found in the question")
        return None

    if lettered.irregularities:
        rows.repair(row_id, "labels", f"labels of choices: {', '.join(lettered.irregularities)}")

    solution = row.text("solution").strip() if "solution" in row.values else ""
    item = OpsEvalItem(
        row_id=row_id,
        domain=domain,
        question=lettered.question,
        choices=lettered.choices,
        # Not derived from the gold, which would reveal how many choices are right.
        multi_select=True,
        solution=solution,
    )
    return _with_gold(row, rows, item)


_READERS: Mapping[str, Callable[[Fields, str, Rows], OpsEvalItem | None]] = {
    "wired_network": _wired,
    "5g_communication": _5g,
    "oracle_database": partial(_read_inline, domain="oracle_database"),
    "log_analysis": _log,
}


def _with_gold(row: Fields, rows: Rows, item: OpsEvalItem) -> OpsEvalItem | None:
    """The item with its gold, but nothing that reveals it; None if the gold can't be read."""
    # Some files mark the right choice, which would give the reader the answer.
    shown = tuple(MARKED.sub("", choice) for choice in item.choices)
    if shown != item.choices:
        rows.repair(item.row_id, "told", "a choice is marked as the right one: the mark is cut off")

    right = _gold(row=row, row_id=item.row_id, rows=rows, count=len(shown))
    if right is None:
        return None

    gold = tuple(shown[position] for position in right)
    question = _without_given_answer(item.question, item.row_id, rows)
    return replace(item, question=question, choices=shown, right=right, gold=gold)


def _gold(row: Fields, row_id: str, rows: Rows, count: int) -> tuple[int, ...] | None:
    answer = row.answer("answer")
    right = gold_letters(answer, count)
    if right is None:
        description = f"the answer '{answer.strip()}' is not one of the {count} choices"
        rows.repair(row_id, "left_out", description)
        return None

    read = ", ".join(chr(ord("A") + position) for position in right)
    named = gold_letters(answer, 26) or right
    if len(named) > len(right):
        description = f"the answer '{answer.strip()}' of {count} choices read as {read}"
        rows.repair(row_id, "range", description)
    elif not CLEAN_LETTERS.fullmatch(answer):
        rows.repair(row_id, "gold", f"the answer {answer!r} read as {read}")

    return right


def _without_given_answer(question: str, row_id: str, rows: Rows) -> str:
    kept = without_answer(question).strip()
    if kept != question.strip() and kept:
        cut = " ".join(question.strip()[len(kept) :].split())
        rows.repair(row_id, "told", f"cut off: {cut[:60]}")
        return kept

    return question.strip()


def _choices(row: Fields) -> tuple[str, ...]:
    choices = tuple(map(str.strip, row.texts("choices")))
    if not all(choices) or len(choices) == 1 or len(choices) > 26:
        raise row.wrong("choices", "must be empty or a list of 2 to 26 strings, none of them empty")

    return choices


def _is_multi_select(row: Fields, name: str) -> bool:
    kind = row.integer(name)
    if kind not in (0, 1):
        raise row.wrong(name, f"is {kind}, not 0 (one is right) or 1 (several are)")

    return kind == 1
