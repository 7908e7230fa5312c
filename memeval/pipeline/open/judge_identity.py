"""Builds the object that identifies who judged a cell."""

from typing import Any

from memeval.config.classes import is_built_in
from memeval.config.roles import JUDGE, settings_of_role
from memeval.judges.contract import is_fenced
from memeval.judges.lexical import THRESHOLD, TokenF1Judge
from memeval.judges.model import ModelJudge
from memeval.judges.registry import judge_type
from memeval.llm.contract import FixedSampling
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.cell_checks import has_judging_model
from memeval.pipeline.open.code import class_identity
from memeval.pipeline.open.models import sampling_of
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.results import JudgeIdentity
from memeval.results.judge import RECORDED
from memeval.results.prices import provider_of
from memeval.text.redaction import redacted_in


def judge_identity(cell: Cell) -> JudgeIdentity | None:
    """The judge of a cell; None if its questions end after their retrieval."""
    if retrieves_only(cell.config):
        return None

    judging = cell.config.judge
    judge_class = judge_type(judging.name, judging.class_)
    members: dict[str, Any] = {"name": judging.name, "threshold": judging.threshold}
    # With `judge=auto` the judge's own YAML is not read, and the default is the class's.
    if issubclass(judge_class, TokenF1Judge) and judging.threshold is None:
        members["threshold"] = THRESHOLD
    if not is_built_in(judge_class):
        members["own_class"] = class_identity(judge_class)
    if judging.name == RECORDED:
        members["model"] = cell.config.system.get("judged_by") or ""
    if cell.judge_template is not None and has_judging_model(cell.config):
        members |= _of_model(cell, judge_class)

    # Redacted as in run.json: a URL may contain a password.
    return JudgeIdentity(**redacted_in(members))


def _of_model(cell: Cell, judge_class: type[Any]) -> dict[str, Any]:
    """Identity of a judge that calls a model, other than its name."""
    assert cell.judge_template is not None, "a judge that asks a model has a prompt"
    settings = settings_of_role(cell.config.llm, JUDGE)
    members: dict[str, Any] = {
        "prompt_sha256": cell.judge_template.sha256,
        "model": settings.model or settings.name,
    }
    if settings.name == "openai" and settings.base_url:
        sampling = sampling_of(settings, JUDGE)
        members["address"] = settings.base_url
        members["request"] = {
            **sampling.parameters(provider_of(settings.base_url), FixedSampling()),
            "seed": settings.send_seed,
            **(settings.extra_body or {}),
        }

    # A custom judge that calls a model itself may use these settings or ignore them.
    is_ours = issubclass(judge_class, ModelJudge)
    members["repeats"] = cell.config.judge.repeats
    members["fence"] = is_fenced(cell.config.judge, cell.judge_template)
    if not is_ours or judge_class.says_yes_or_no:
        members["reading"] = cell.config.judge.reading
    if not is_ours or judge_class.counts_rubrics:
        members["scoring"] = cell.config.judge.scoring

    return members
