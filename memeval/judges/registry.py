"""Judges by name: built in, brought by an installed package, or named by a class path."""

from __future__ import annotations

from memeval.config.options import Registry
from memeval.errors import MemevalError, UserError
from memeval.judges.contract import Judge, JudgeContext
from memeval.text.shown import one_line

JUDGES = Registry("judge", Judge)  # type: ignore[type-abstract]
judge_type = JUDGES.load


def build_judge(name: str, context: JudgeContext, class_path: str | None = None) -> Judge:
    """A judge, ready to judge.

    Raises `UserError` for an unknown name, and for a class that can't be built.
    """
    judge_class = judge_type(name, class_path)
    try:
        return judge_class.build(context)
    except MemevalError:
        raise
    except Exception as error:
        path = f"{judge_class.__module__}:{judge_class.__qualname__}"
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise UserError(f"judge '{name}': {path} can't be built: {reason}") from error
