"""Data set classes that are not memeval's own: their failures, and the cases that they give."""

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext

from msgspec import ValidationError, to_builtins

from memeval.config.classes import explaining, is_built_in, path_of
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion
from memeval.text.shown import one_line, some_of
from memeval.text.typed import convert, fault_in


def calling(dataset: object, method: str) -> AbstractContextManager[None]:
    """Calls a method of a data set. Raises `UserError` in one line if a user's class fails."""
    if is_built_in(type(dataset)):
        return nullcontext()

    hint = "fix the class, then repeat the command: no model call is made twice"
    return explaining(f"{_named(dataset, method)} failed", hint)


def checked(dataset: object, case: object) -> EvalCase:
    """A case that a user's class gave, with the declared types. Raises `UserError`."""
    where = _named(dataset, "read")
    if not isinstance(case, EvalCase):
        raise UserError(f"{where} must give cases of type EvalCase, not {type(case).__name__}")

    where += f": case {one_line(case.case_id, 60)}"
    try:
        case = convert(to_builtins(case), EvalCase)
    except (TypeError, ValidationError) as error:
        raise UserError(f"{where}: {fault_in(error)}") from None

    turn_ids = case.turn_ids
    for question in case.questions:
        if fault := _fault_of(question, turn_ids):
            raise UserError(f"{where}: question {one_line(question.question_id, 60)}: {fault}")

    return case


def _fault_of(question: EvalQuestion, turn_ids: Collection[str]) -> str:
    """Why a question can't be asked of a case with these turns; empty if it can."""
    if unknown := set(question.evidence).difference(turn_ids):
        shown = one_line(some_of(sorted(unknown), 3), 100)
        return f"its evidence names turns that are not in the case: {shown}"

    right = set(question.right_choices)
    is_lacking = question.choices and question.answerable and not right
    is_many = len(right) > 1 and not question.multi_select
    if is_lacking or is_many or not right <= set(range(len(question.choices))):
        return "right_choices must be one position, from 0; several need multi_select=True"

    return ""


def _named(dataset: object, method: str) -> str:
    return f"{path_of(type(dataset))}.{method}()"
