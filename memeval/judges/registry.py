"""Judges by name."""

from __future__ import annotations

from collections.abc import Callable

from memeval.errors import UserError, unknown
from memeval.judges.accuracy import AccuracyJudge
from memeval.judges.contract import Judge
from memeval.judges.exact_match import ExactMatchJudge
from memeval.judges.keyword import KeywordJudge
from memeval.judges.llm import StrictJudge
from memeval.judges.longmemeval import LongMemEvalJudge
from memeval.judges.mem0 import Mem0Judge
from memeval.judges.memae import MemaeJudge
from memeval.judges.model import JudgeSettings, ModelJudge
from memeval.judges.token_f1 import TokenF1Judge
from memeval.llm.contract import LanguageModel
from memeval.prompts import Wording

_PLAIN: dict[str, type[Judge]] = {judge.name: judge for judge in (KeywordJudge, ExactMatchJudge, TokenF1Judge, AccuracyJudge)}
_MODELS: dict[str, type[ModelJudge]] = {judge.name: judge for judge in (StrictJudge, Mem0Judge, LongMemEvalJudge, MemaeJudge)}


def judge_type(name: str) -> type[Judge]:
    """The class behind a name. Raises `UserError` for a name that there is not."""
    known: dict[str, type[Judge]] = {**_PLAIN, **_MODELS}
    if name not in known:
        raise unknown("judge", name, known)
    return known[name]


def wording_of(name: str, prompt_file: str | None) -> Wording | None:
    """The words of a model judge, ours or the user's; None for judges that need none."""
    return _MODELS[name].wording(prompt_file) if name in _MODELS else None


def build_judge(
    name: str,
    *,
    threshold: float | None,
    wording: Wording | None,
    model: Callable[[], LanguageModel],
    seed: int,
    settings: JudgeSettings | None = None,
) -> Judge:
    """A judge, ready to judge; `settings` are for those that are models. Raises `UserError` for a
    name that there is not.
    """
    kind = judge_type(name)
    if issubclass(kind, ModelJudge):
        if wording is None:
            raise UserError(f"judge '{name}' needs a wording")
        return kind(model(), wording, seed, settings)
    return TokenF1Judge(0.5 if threshold is None else threshold) if kind is TokenF1Judge else kind()
