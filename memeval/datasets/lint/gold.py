"""Finds leaked gold answers: in prompts, in settings, in memories."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memeval.datasets.lint.records import Finding, LintedRun
from memeval.datasets.lint.words import gold_runs, spaced
from memeval.records import EvalCase, format_time

MIN_IN_PROMPT = 3
MIN_IN_MEMORY = 4
"""Minimum number of words of a gold that is searched for. A memory rephrases, and may contain a
short gold by chance.
"""
WHY_PROMPT = "the reader is given the answer, so the run measures the prompt, not the memory"
WHY_MEMORY = (
    "these words are not in the conversation, so the answer reached the memory in another way, "
    "for example through an extraction prompt"
)
Hit = tuple[str, str, str]
"""Where the gold of a question was found, the question's id, and the matching words."""


def check_prompts(material: LintedRun) -> Iterator[Finding]:
    """Finds gold in the reader's prompt outside its context: in instructions and examples."""
    texts: dict[str, str] = {}
    for record in material.records:
        prompt = material.prompts.get((record.question_id, record.repeat))
        if prompt is None:
            continue

        text = "\n".join(prompt.messages)
        for known in (prompt.context, record.question, *record.choices):
            if known:
                # A question may contain words of its own gold, and a context should.
                text = text.replace(known, "\n")

        texts[spaced(text)] = "the answer prompt"

    return _findings("gold in prompt", "gold answers", WHY_PROMPT, _golds_in(material, texts))


def check_settings(material: LintedRun) -> Iterator[Finding]:
    """Finds gold in settings, and in the user's own files that settings name."""
    texts = {spaced(text): name for name, text in material.settings.items()}
    return _findings("gold in settings", "gold answers", WHY_PROMPT, _golds_in(material, texts))


def _golds_in(material: LintedRun, texts: Mapping[str, str]) -> Iterator[Hit]:
    runs_of: dict[str, list[str]] = {}
    for record in material.records:
        if record.question_id not in runs_of:
            runs_of[record.question_id] = gold_runs(record.gold, record.question, MIN_IN_PROMPT)

    for text, source in texts.items():
        for question_id, runs in runs_of.items():
            yield from _hits(source, text, question_id, runs)


def check_memories(material: LintedRun) -> Iterator[Finding]:
    """Finds gold in contexts and memories of a case whose conversation does not contain it."""
    texts_by_case = {
        name: spaced(known_text(case)) for name, case in (material.cases or {}).items()
    }
    stored = {name: spaced("\n".join(texts)) for name, texts in material.memories.items()}
    in_memory: list[Hit] = []
    in_context: list[Hit] = []

    for record in material.records:
        # The right choice is shown to the reader among the others: it is in every prompt.
        known = texts_by_case.get(record.case_id)
        if known is None or record.choices:
            continue

        runs = gold_runs(record.gold, record.question, MIN_IN_MEMORY)
        # A date may follow from the time of a turn, without being said.
        unsaid = [run for run in runs if run not in known and not any(map(str.isdigit, run))]
        memory = stored.get(record.case_id, "")
        in_memory += _hits("the memory", memory, record.question_id, unsaid)
        prompt = material.prompts.get((record.question_id, record.repeat))
        context = spaced(prompt.context) if prompt and prompt.context else ""
        in_context += _hits("the reader's context", context, record.question_id, unsaid)

    what = "gold answers that are not in the conversation,"
    return _findings("gold in memory", what, WHY_MEMORY, [*in_memory, *in_context])


def _hits(source: str, text: str, question_id: str, runs: Sequence[str]) -> Iterator[Hit]:
    """The first of a question's runs of words that occurs in a text, if any."""
    for run in runs:
        if run in text:
            yield source, question_id, run.strip()
            return


def _findings(kind: str, what: str, why: str, hits: Iterable[Hit]) -> Iterator[Finding]:
    """A finding per source, with all questions whose gold it contains."""
    questions: dict[str, dict[str, None]] = defaultdict(dict)
    shown: dict[str, str] = {}
    for source, question_id, run in hits:
        questions[source][question_id] = None
        shown.setdefault(source, run)

    for source, ids in questions.items():
        yield Finding(
            kind=kind,
            what=f"{what} in words such as “{shown[source]}”",
            where=source,
            why=why,
            questions=tuple(ids),
        )


def known_text(case: EvalCase) -> str:
    """Everything that a memory may know of a case: turns, captions, speakers, dates."""
    parts = []
    for session in case.sessions:
        if session.started_at is not None:
            parts.append(format_time(session.started_at))

        for turn in session.turns:
            parts += [f"{turn.speaker}: {turn.text}", turn.caption or ""]

    return "\n".join(parts)
