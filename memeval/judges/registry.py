"""Judges by name: built in, from an installed package, or at a class path; which of them apply to a
kind of answer, and which one `judge=auto` selects.
"""

from collections.abc import Iterable
from functools import cache
from operator import attrgetter

from memeval.config.classes import explaining, path_of
from memeval.config.options import Registry, available, built_in_classes
from memeval.errors import UserError
from memeval.judges.contract import Judge, JudgeContext
from memeval.records import AnswerKind

JUDGES = Registry("judge", Judge)  # type: ignore[type-abstract]


def judge_type(name: str, path: str | None = None) -> type[Judge]:
    """The judge of that name, or at a class path. Raises `UserError`, also if it has no `name`."""
    judge = JUDGES.load(name, path)
    if not isinstance(getattr(judge, "name", None), str):
        raise UserError(f"judge '{name}': {path_of(judge)} does not define name of Judge, a string")

    return judge


def build_judge(name: str, context: JudgeContext, class_path: str | None = None) -> Judge:
    """Builds a judge.

    Raises `UserError` for an unknown name, and for a class that can't be built.
    """
    judge_class = judge_type(name, class_path)
    with explaining(f"judge '{name}': {path_of(judge_class)} can't be created"):
        return judge_class.build(context)


def usual_judge(kind: AnswerKind, benchmark: str | None, *, has_model: bool) -> str:
    """The judge that `judge=auto` selects: the benchmark's official one, or the kind's usual one.

    `has_model` is whether there is a language model; without one, a judge that works without a
    model replaces the official one.
    """
    judges = applicable_judges(kind, benchmark)
    usual = []
    for name, judge in judges.items():
        if judge.needs_model and not has_model:
            continue
        if judge.benchmark is not None:
            return name
        if kind in judge.usual_for:
            usual.append(name)

    # A model, if there is one, judges better than a rule.
    usual.sort(key=lambda name: not judges[name].needs_model)
    return usual[0]


def applicable_judges(kind: AnswerKind, benchmark: str | None) -> dict[str, type[Judge]]:
    """The judges by name that judge a kind of answer, without official ones of other benchmarks.

    Judges of installed packages, which must be imported, are considered only for a benchmark that
    has no official judge in memeval.
    """
    judges = _built_in_judges()
    if benchmark not in map(attrgetter("benchmark"), judges.values()):
        judges = judges | _judges(set(available(JUDGES.group)) - judges.keys())

    return {name: judge for name, judge in judges.items() if judge.applies_to(kind, benchmark)}


@cache
def _built_in_judges() -> dict[str, type[Judge]]:
    return _judges(built_in_classes(JUDGES.group))


def _judges(names: Iterable[str]) -> dict[str, type[Judge]]:
    judges = {}
    for name in sorted(names):
        try:
            judges[name] = judge_type(name)
        except UserError:
            continue  # `auto` names no class, and a package may be broken

    return judges
