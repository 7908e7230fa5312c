"""Judges by name."""

from __future__ import annotations

from collections.abc import Callable

from memeval.config.classes import class_at
from memeval.errors import UserError, unknown
from memeval.judges.contract import Judge
from memeval.judges.model import JudgeSettings, ModelJudge
from memeval.judges.token_f1 import TokenF1Judge
from memeval.llm.contract import LanguageModel
from memeval.prompts import PromptTemplate

BUILT_IN = {
    "accuracy": "memeval.judges.accuracy:AccuracyJudge",
    "exact_match": "memeval.judges.exact_match:ExactMatchJudge",
    "keyword": "memeval.judges.keyword:KeywordJudge",
    "llm": "memeval.judges.llm:StrictJudge",
    "longmemeval": "memeval.datasets.longmemeval.judge:LongMemEvalJudge",
    "mem0": "memeval.judges.mem0:Mem0Judge",
    "memae": "memeval.datasets.memory_agent_bench.judge:MemoryAgentBenchJudge",
    "token_f1": "memeval.judges.token_f1:TokenF1Judge",
}
"""Name -> `module:Class`, imported when it is asked for."""


def judge_type(name: str) -> type[Judge]:
    """The class of a judge. Raises `UserError` for an unknown name."""
    if name not in BUILT_IN:
        raise unknown("judge", name, BUILT_IN)

    return class_at(BUILT_IN[name], Judge, "judge", f"judge '{name}'")  # type: ignore[type-abstract]


def template_of(name: str, prompt_file: str | None) -> PromptTemplate | None:
    """The prompt template of a model judge, ours or the user's; None for judges that need none."""
    judge_class = judge_type(name)
    return judge_class.template(prompt_file) if issubclass(judge_class, ModelJudge) else None


def build_judge(
    name: str,
    *,
    threshold: float | None,
    template: PromptTemplate | None,
    model: Callable[[], LanguageModel],
    seed: int,
    settings: JudgeSettings | None = None,
) -> Judge:
    """A judge, ready to judge; `settings` are for those that are models. Raises `UserError` for a
    name that there is not.
    """
    kind = judge_type(name)
    if issubclass(kind, ModelJudge):
        if template is None:
            raise UserError(f"judge '{name}' needs a template")
        return kind(model(), template, seed, settings)
    return TokenF1Judge(0.5 if threshold is None else threshold) if kind is TokenF1Judge else kind()
