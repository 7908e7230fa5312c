"""The checks of a run: leaked gold answers in prompts, settings and memories; a memory that leaves
nothing out; a judge that sees more than the answer; tuning on the measured questions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from memeval.datasets.lint.bounds import check_bounds, same_everywhere
from memeval.datasets.lint.records import Finding, Lint, LintedRun, differing_settings
from memeval.datasets.lint.words import gold_runs, runs_of, spaced, words_of
from memeval.records import EvalCase, format_time
from memeval.results import RunSummary, is_imported
from memeval.results.summary import PACKAGE_TAG
from memeval.text.shown import counted, some_of

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
COPIED_WORDS = 40
"""Minimum number of consecutive words of its context that make an answer a copy of it."""
UNTUNED = ("dataset", "judge", "llm.judge", "num_runs", "seed", "min_coverage", "max_ingest_loss")
"""Settings that determine what is asked and how it is judged. All others may be tuned."""


def lint_run(material: LintedRun) -> Lint:
    findings: list[Finding] = []
    for check in (
        check_prompts,
        check_settings,
        check_memories,
        check_budget,
        check_judge,
        check_tuning,
        check_bounds,
    ):
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
    golds: dict[str, list[str]] = {}
    for record in material.records:
        if record.question_id not in golds:
            golds[record.question_id] = gold_runs(record.gold, record.question, MIN_IN_PROMPT)

    for text, source in texts.items():
        for question_id, runs in golds.items():
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
