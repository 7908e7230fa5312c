"""Checks for a memory that leaves nothing out, a judge that sees more than the answer, and tuning
on the measured questions.
"""

from collections.abc import Iterator

from memeval.datasets.lint.records import Finding, LintedRun, differing_settings
from memeval.datasets.lint.words import runs_of, spaced, words_of
from memeval.results import RunSummary, is_imported
from memeval.text.shown import counted, some_of

COPIED_WORDS = 40
"""Minimum number of consecutive words of its context that make an answer a copy of it."""
UNTUNED = ("dataset", "judge", "llm.judge", "num_runs", "seed", "min_coverage", "max_ingest_loss")
"""Settings that determine what is asked and how it is judged. All others may be tuned."""


def check_budget(material: LintedRun) -> Iterator[Finding]:
    """Finds questions for which `top_k` includes all turns of the case."""
    top_k = material.summary.params.get("top_k")
    if not isinstance(top_k, int) or material.cases is None:
        return

    everything = {name: case.turn_ids for name, case in material.cases.items()}
    held = []
    for record in material.records:
        turns = everything.get(record.case_id)
        chunks = record.retrieved or ()
        covered: set[str] = set()
        for chunk in chunks:
            covered.update(chunk.turn_ids)

        if turns and len(chunks) <= top_k and covered >= turns:
            held.append(record.question_id)

    if held:
        yield Finding(
            kind="retrieves everything",
            what=f"top_k={top_k} covers every turn",
            where="the chunks that the reader was shown",
            why="nothing is left out, so recall is 1 by construction and retrieval is not measured",
            questions=tuple(dict.fromkeys(held)),
        )


def check_judge(material: LintedRun) -> Iterator[Finding]:
    """Finds answers that pass their context to the judge, and reasons that name evidence."""
    copied, named = [], []
    for record in material.records:
        prompt = material.prompts.get((record.question_id, record.repeat))
        answer = words_of(record.hypothesis or "")
        if prompt and prompt.context and len(answer) >= COPIED_WORDS:
            context = spaced(prompt.context)
            for run in runs_of(answer, COPIED_WORDS):
                if run in context:
                    copied.append(record.question_id)
                    break

        reason = record.verdict.reason if record.verdict else ""
        seen = f"{record.question} {record.hypothesis} {' '.join(record.gold)}"
        # Only ids with a colon, such as D3:14: others may be plain words or numbers.
        for turn in record.evidence:
            if ":" in turn and turn in reason and turn not in seen:
                named.append(record.question_id)
                break

    if copied:
        yield Finding(
            kind="judge saw more",
            what=f"answers copy {COPIED_WORDS} words or more of their context",
            where="the answers that were judged",
            why="the judge then finds the gold answer in the copied context: a lenient judge "
            "measures recall",
            questions=tuple(dict.fromkeys(copied)),
        )

    if named:
        yield Finding(
            kind="judge saw more",
            what="reasons name evidence turns",
            where="the judge's reasons",
            why="a judge should only see the question, the gold answer and the answer; this one "
            "saw where the answer is",
            questions=tuple(dict.fromkeys(named)),
        )


def check_tuning(material: LintedRun) -> Iterator[Finding]:
    """Finds other settings of the same system that were tried on the same questions, unless the
    questions are meant for tuning.
    """
    if material.summary.params.get("dataset.split") == "dev" or is_imported(material.summary):
        return  # two runs of imported answers may be of different systems

    asked = dict.fromkeys(record.question_id for record in material.records)
    rivals, shared = [], set()
    for summary, questions in material.siblings:
        common = asked.keys() & questions
        if common and is_tuned(material.summary, summary):
            rivals.append(summary.run_key)
            shared |= common

    if rivals:
        yield Finding(
            kind="tuned on test",
            what=(
                f"{counted(len(rivals), 'run')} of this system with other settings on the same "
                "questions"
            ),
            where=f"runs {some_of(rivals, 5)}",
            why="the best of several settings on the same questions looks better than it is; "
            "tune on dataset.split=dev and report dataset.split=test",
            questions=tuple(name for name in asked if name in shared),
        )


def is_tuned(summary: RunSummary, other: RunSummary) -> bool:
    """Whether two runs have the same system and judge, but different other settings."""
    names = differing_settings(summary, other)
    if "system" in names or "judge" in names:
        return False

    return not all(map(is_untuned, names))


def is_untuned(name: str) -> bool:
    """Whether a setting is one of `UNTUNED`, or belongs to such a group."""
    return any(name == group or name.startswith(f"{group}.") for group in UNTUNED)
