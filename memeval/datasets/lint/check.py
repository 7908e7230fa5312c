"""All checks of a run."""

from collections.abc import Iterator

from memeval.datasets.lint.bounds import check_bounds, same_everywhere
from memeval.datasets.lint.fairness import check_budget, check_judge, check_tuning
from memeval.datasets.lint.gold import check_memories, check_prompts, check_settings
from memeval.datasets.lint.records import Finding, Lint, LintedRun
from memeval.results import is_imported
from memeval.results.summary import PACKAGE_TAG
from memeval.text.shown import counted

CHECKS = (
    check_prompts,
    check_settings,
    check_memories,
    check_budget,
    check_judge,
    check_tuning,
    check_bounds,
)


def lint_run(material: LintedRun) -> Lint:
    findings: list[Finding] = []
    for check in CHECKS:
        findings += check(material)

    return Lint(
        findings=tuple(findings),
        remarks=tuple(same_everywhere(material)),
        unchecked=tuple(unchecked(material)),
    )


def unchecked(material: LintedRun) -> Iterator[str]:
    """Parts that could not be checked."""
    if material.cases is None:
        yield "memories and top_k: the run's data was not read; if its file is yours:  --data FILE"
    elif PACKAGE_TAG in material.summary.tags and not any(material.memories.values()):
        yield "memories: the run came in a package, which contains none"

    if lacking := _without_context(material):
        yield f"contexts: the texts of {counted(lacking, 'answer')} are not on this machine"

    yield from material.missing
    if not any(prompt.messages for prompt in material.prompts.values()):
        yield "prompts: none were sent, or their texts are not on this machine"

    if is_imported(material.summary):
        yield "tuning: another program gave the answers, and its settings are not known"

    if material.summary.params.get("judge.class") is not None:
        yield "the judge: your own class gets the whole question, including the evidence"


def _without_context(material: LintedRun) -> int:
    """Number of the answers whose context has no text on this machine."""
    lacking = 0
    for record in material.records:
        prompt = material.prompts.get((record.question_id, record.repeat))
        lacking += record.context is not None and (prompt is None or prompt.context is None)

    return lacking
