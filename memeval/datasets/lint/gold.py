"""Gold answers that nobody said: in prompts, in settings, in memories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from memeval.datasets.lint.records import Finding, Material, SentPrompt
from memeval.datasets.lint.words import gold_runs, spaced
from memeval.records import EvalCase, format_time
from memeval.results import Record

LEAST_IN_PROMPT = 3
LEAST_IN_MEMORY = 4
"""Words of a gold that are searched for. A memory puts things in its own words, and may meet a
short gold by chance.
"""
WHY_PROMPT = "the reader is given the answer: what is measured is the prompt, not the memory"
WHY_MEMORY = (
    "nobody said these words: the answer reached the memory another way, such as by the examples "
    "of an extraction's prompt"
)


def check_prompts(material: Material) -> Iterator[Finding]:
    """Gold in what the reader was sent around its context: instructions and examples."""
    golds = golds_of(material, LEAST_IN_PROMPT)
    texts: dict[str, None] = {}
    for record in material.records:
        prompt = material.prompts.get((record.question_id, record.repeat))
        if prompt is not None:
            texts[spaced(around(prompt, record))] = None

    yield from _found(
        golds, dict.fromkeys(texts, "the prompt of the answers"), "gold in prompt", WHY_PROMPT
    )


def around(prompt: SentPrompt, record: Record) -> str:
    """A prompt without its context, question and choices."""
    text = "\n".join(prompt.messages)
    for own in (prompt.context, record.question, *record.choices):
        if own:
            # A question may hold words of its own gold, and a context should.
            text = text.replace(own, "\n")

    return text


def check_settings(material: Material) -> Iterator[Finding]:
    """Gold in settings, and in the files of the user's own that settings name."""
    golds = golds_of(material, LEAST_IN_PROMPT)
    texts = {spaced(text): name for name, text in material.settings.items()}
    yield from _found(golds, texts, "gold in settings", WHY_PROMPT)


def golds_of(material: Material, least: int) -> dict[str, list[str]]:
    """Runs of words that give a question's answer away, by question."""
    golds = {}
    for record in material.records:
        if record.question_id not in golds:
            golds[record.question_id] = gold_runs(record.gold, record.question, least)

    return golds


def _found(
    golds: dict[str, list[str]], texts: dict[str, str], kind: str, why: str
) -> Iterator[Finding]:
    """A finding per source, with all questions whose gold is there."""
    questions: dict[str, list[str]] = defaultdict(list)
    shown: dict[str, str] = {}
    for text, source in texts.items():
        for question_id, runs in golds.items():
            held = next((run for run in runs if run in text), None)
            if held is not None and question_id not in questions[source]:
                questions[source].append(question_id)
                shown.setdefault(source, held.strip())

    for source, ids in questions.items():
        if ids:
            what = f"gold answers in words such as “{shown[source]}”"
            yield Finding(kind=kind, what=what, where=source, why=why, questions=tuple(ids))


def check_memories(material: Material) -> Iterator[Finding]:
    """Gold in contexts and memories of a case in which nobody said it."""
    held: dict[str, list[str]] = {"the memory": [], "the context of the answer": []}
    shown: dict[str, str] = {}
    said = {name: spaced(said_in(case)) for name, case in (material.cases or {}).items()}
    stored = {name: spaced("\n".join(texts)) for name, texts in material.memories.items()}

    for record in material.records:
        # The right choice is shown to the reader among the others: it is in every prompt.
        if record.case_id not in said or record.choices:
            continue

        runs = gold_runs(record.gold, record.question, LEAST_IN_MEMORY)
        # A date follows from the time at which something was said: nobody has to say it.
        unsaid = [run for run in runs if run not in said[record.case_id] and not _has_digit(run)]
        prompt = material.prompts.get((record.question_id, record.repeat))
        context = spaced(prompt.context) if prompt and prompt.context else ""
        sources = {
            "the memory": stored.get(record.case_id, ""),
            "the context of the answer": context,
        }
        for source, text in sources.items():
            match = next((run for run in unsaid if run in text), None)
            if match is not None and record.question_id not in held[source]:
                held[source].append(record.question_id)
                shown.setdefault(source, match.strip())

    for source, ids in held.items():
        if ids:
            what = f"gold answers that nobody said, in words such as “{shown[source]}”"
            yield Finding("gold in memory", what, source, WHY_MEMORY, tuple(ids))


def _has_digit(run: str) -> bool:
    return any(character.isdigit() for character in run)


def said_in(case: EvalCase) -> str:
    """All that a memory may know of a case: turns, captions, speakers, dates."""
    parts = []
    for session in case.sessions:
        if session.started_at is not None:
            parts.append(format_time(session.started_at))

        for turn in session.turns:
            parts += [f"{turn.speaker}: {turn.text}", turn.caption or ""]

    return "\n".join(parts)
