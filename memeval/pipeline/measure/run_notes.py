"""Notes of a run: facts that a reader of the figures must know."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import structs

from memeval.config.schema import TOOLS
from memeval.judges.contract import is_fenced
from memeval.metrics.lifecycle import leak_sentence
from memeval.metrics.registry import metrics
from memeval.pipeline.execute.repeat import Finished
from memeval.pipeline.measure.figures import (
    Headline,
    found_nothing,
    in_headline,
    statuses,
    total_health,
)
from memeval.pipeline.measure.provenance import reads_offline
from memeval.pipeline.measure.records import Ingest
from memeval.pipeline.measure.selection import notes_on_questions
from memeval.pipeline.measure.spending import measure_writes, requests_of, usages
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.records import Role
from memeval.results import Note, NoteKind, Record
from memeval.results.note import remarks
from memeval.results.steps import StepCall
from memeval.statistics.clusters import dominating_cluster
from memeval.systems.base import NOTHING_FITS
from memeval.text.shown import one_line, some_of
from memeval.text.words import script_without_words

CUT_CONTEXT = ("cut_chunks", "cut_tokens")
"""Notes of the chat systems on a context that was too long: one sentence covers them all."""
UNLISTED = (*CUT_CONTEXT, "edges", *map(attrgetter("models_note"), Role))
"""Notes that are not listed one by one; `compare` sums up the edges."""
LONGEST_NOTE = 1000
"""Longest note in characters: the rest of an error or of a system's note is in the records."""
MAX_EXAMPLES = 3
"""Maximum number of texts shown for each kind of note; the records contain all of them."""


def notes(
    cell: Cell, finished: Finished, rows: Sequence[Record], ingest_rows: Sequence[Ingest]
) -> Iterator[Note]:
    """Notes for a reader of the figures."""
    if finished.stopped:
        text = f"{finished.stopped}. The figures are those of the questions answered so far."
        yield Note(NoteKind.STOPPED, text)

    if found_nothing(rows, ingest_rows):
        yield Note(NoteKind.NOTHING_FOUND, _reason_for_no_context(cell, rows))

    yield from remarks(notes_on_questions(cell, rows))
    yield from remarks(_settings(cell, rows))
    yield from notes_of_rows(rows, ingest_rows, cell.dataset.headline)
    yield from remarks(_compressions(cell, ingest_rows))
    yield from remarks(_skipped_lines(finished))
    yield from remarks(finished.notes)


def _reason_for_no_context(cell: Cell, rows: Sequence[Record]) -> str:
    """Why no question got any context."""
    start = "No question got any context from the memory: "
    calls = list[StepCall]()
    for row in rows:
        for step in row.steps:
            calls += step.calls

    if cell.config.reader.name == TOOLS and not calls:
        return f"{start}the model called no tool."
    if calls and all(call.fault for call in calls):
        return f"{start}every call of a tool failed."
    if cell.config.context_tokens is not None:
        return (
            f"{start}nothing was found, or no text fits into "
            f"context_tokens={cell.config.context_tokens}."
        )

    unfit = sum(NOTHING_FITS in row.notes for row in rows)
    if unfit:
        return (
            f"{start}its search found something for {unfit:,} of {len(rows):,} answers, but "
            "nothing fits into the system's budget."
        )

    return f"{start}its search found nothing. python -m memeval check shows what it finds."


def notes_of_rows(
    rows: Sequence[Record], ingest_rows: Sequence[Ingest], headline: Headline
) -> Iterator[Note]:
    """Notes that follow from records and ingests alone."""
    yield from remarks(estimate_notes(rows, ingest_rows))
    yield from remarks(model_notes(rows, ingest_rows))
    yield from remarks(_script_notes(rows))
    yield from remarks(timing_notes(rows))
    yield from remarks(domination_notes(rows, headline))
    yield from _failures(rows)
    yield from remarks(_losses(ingest_rows))
    yield from remarks(_operation_notes(rows, ingest_rows))
    yield from remarks(_writer_notes(ingest_rows))
    yield from remarks(_notes_in_rows(rows, ingest_rows))


def shortened_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes as stored in `run.json`."""
    return tuple(structs.replace(note, text=one_line(note.text, LONGEST_NOTE)) for note in notes)


def domination_notes(rows: Sequence[Record], headline: Headline) -> Iterator[str]:
    """A note on a conversation that decides the accuracy nearly alone."""
    cases: dict[str, set[str]] = {}
    for row in rows:
        if in_headline(headline, row):
            cases.setdefault(row.case_id, set()).add(row.question_id)

    name = dominating_cluster({case: len(questions) for case, questions in cases.items()})
    if name is not None:
        yield (
            f"{one_line(name, 80)} holds half of the questions or more: the accuracy is nearly "
            "that of one conversation."
        )


def estimate_notes(rows: Sequence[Record], ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    """A note on calls whose tokens the endpoint did not report."""
    sent = counted = 0
    for usage in usages([*rows, *ingest_rows]):
        if usage.provider != "offline":
            sent += usage.calls
            counted += usage.calls if usage.estimated else 0

    if counted:
        yield (
            f"The endpoint did not report the tokens of {counted:,} of {sent:,} calls: memeval "
            "counted them itself, so tokens and cost are estimates."
        )


def model_notes(rows: Sequence[Record], ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    """A note on each role whose replies named several models."""
    calling = [*rows, *map(attrgetter("row"), ingest_rows)]
    for role in Role:
        note, total, is_noted = role.models_note, 0, False
        models: Counter[str] = Counter()
        for row in calling:
            requested = None
            for usage in row.usage:
                if usage.role is role:
                    requested = usage.model
            if requested is not None:
                total += 1
                is_noted |= note in row.notes
                named = row.notes.get(note)
                # Without the note, each reply named the requested model, or none; an empty note
                # means that the names are not known.
                if not isinstance(named, list):
                    named = [requested]
                models.update(map(in_words, named))

        if is_noted and len(models) > 1:
            counts = [f"{name} in {count:,} of {total:,} rows" for name, count in models.items()]
            yield (
                f"Replies to {role} calls named different models "
                f"({some_of(counts, MAX_EXAMPLES)}): the figures mix them."
            )


def _settings(cell: Cell, rows: Sequence[Record]) -> Iterator[str]:
    """Consequences of a cell's data, model and judge for its figures."""
    if not cell.loaded.pinned:
        pin = cell.loaded.info.sha256 or cell.loaded.info.files
        why = "is not the registered one" if pin else "is unpinned: no sha256 is registered for it"
        sha256 = cell.loaded.file_sha256 or cell.loaded.sha256
        yield (
            f"The data file {why} (sha256 {sha256[:12]}…): its figures can't be "
            "compared with others."
        )

    settings = cell.dataset.settings
    if settings.canaries:
        yield (
            f"Canaries: {settings.canaries} facts of other users and {settings.canaries} stored "
            f"orders are planted in each conversation (canary_seed={settings.canary_seed}); no "
            "question asks for one. Figures without them are about different data."
        )

    if retrieves_only(cell.config):
        yield "Retrieval only (stages=retrieve): nothing was answered or judged."
    # A custom system may answer without the reader.
    elif reads_offline(cell) and any(usage.role is Role.ANSWER for usage in usages(rows)):
        agree = " Repeats agree by construction." if _repeats_agree(cell) else ""
        yield (
            "Answers come from the offline extractive reader: it is deterministic, and not a "
            f"language model.{agree}"
        )

    if cell.judge_template and not is_fenced(cell.config.judge, cell.judge_template):
        yield (
            "The judge gets its data without marks around it, as in its prompt template; to add "
            "marks, set judge.fence=true."
        )

    if cell.config.llm.name == "mock":
        yield "The mock model replaces a language model: its figures mean nothing."


def _repeats_agree(cell: Cell) -> bool:
    """Whether the system finds the same in each repeat, under any seed."""
    # `random_k` draws its chunks by the seed; a custom class or a service may, too.
    is_drawn = cell.config.system["name"] == "random_k" or cell.source.settings.is_served
    return cell.has_built_in_system and not is_drawn


def timing_notes(rows: Sequence[Record]) -> Iterator[str]:
    """A note on a latency that was measured for fewer than half of the answers."""
    answered = timed = 0
    for row in rows:
        if row.status.is_complete:
            answered += 1
            timed += row.times.retrieval_ms is not None

    if 0 < timed < answered / 2:
        yield (
            f"retrieval ms was measured in {timed:,} of {answered:,} answers only: in the "
            "others it could not be separated from the process's other work."
        )


def _script_notes(rows: Sequence[Record]) -> Iterator[str]:
    """Notes on golds in scripts whose words can't be counted."""
    scripts = Counter(filter(None, (script_without_words(" ".join(row.gold)) for row in rows)))
    names = [metric.name for metric in metrics().values() if metric.needs_words]
    for script, count in scripts.items():
        yield (
            f"{count} of {len(rows)} records have a gold in {script}, which has no spaces between "
            f"words: {', '.join(names)} are not measured for them. exact_match, contains "
            "and judges that are models are."
        )


def _operation_notes(rows: Sequence[Record], ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    """Notes on forgotten facts that were still found, and on unsupported operations."""
    if sentence := leak_sentence(rows):
        yield f"{sentence}."

    counts: Counter[str] = Counter()
    unsupported: Counter[str] = Counter()
    for operation in requests_of(ingest_rows):
        counts[operation.kind.value] += 1
        if operation.items is None:
            unsupported[operation.kind.value] += 1

    for kind, count in unsupported.items():
        yield (
            f"{kind} is not supported by this system: {count} of {counts[kind]} requests changed "
            "nothing in its memory."
        )


def _writer_notes(ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    written = measure_writes(ingest_rows)
    if written and not written["writes"]:
        calls, faults = written["write_calls"], written["write_errors"]
        why = f"of its {calls:,.0f} calls, {faults:,.0f} failed or were not run"
        yield f"The writer stored nothing: {why}."


def _notes_in_rows(rows: Sequence[Record], ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    cut = sum("cut_chunks" in row.notes for row in rows)
    if cut:
        yield f"The oldest part of the context was cut for {cut} of {len(rows)} answers."

    yield from notes_by_name([row.notes for row in rows], f"of {len(rows)} answers")
    # A conversation with checkpoints has one ingest row for each.
    by_case: dict[tuple[str, int], dict[str, object]] = {}
    for ingest in sorted(ingest_rows, key=lambda ingest: ingest.row.id):
        by_case.setdefault((ingest.case_id, ingest.seed), {}).update(ingest.row.notes)

    yield from notes_by_name(list(by_case.values()), f"of {len(by_case)} conversations, at ingest")


def notes_by_name(notes: Sequence[Mapping[str, object]], of: str) -> Iterator[str]:
    """Each kind of note with its count, and a few examples."""
    counts: dict[str, Counter[str]] = {}
    for row_notes in notes:
        for name, value in row_notes.items():
            if name not in UNLISTED:
                counts.setdefault(name, Counter())[in_words(value)] += 1

    for name, texts in sorted(counts.items()):
        heading, others = name.replace("_", " "), texts.total()
        examples = sorted(texts.items(), key=lambda item: (-item[1], item[0]))[:MAX_EXAMPLES]
        for text, count in examples:
            yield f"{heading}: {text} ({count} {of})"
            others -= count

        if others:
            yield f"{heading}: others like these ({others} {of})"


def in_words(value: object) -> str:
    """A system's note as part of a sentence: `unreadable 3, cut 1` for a mapping."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {in_words(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]

    return str(value)


def _skipped_lines(finished: Finished) -> Iterator[str]:
    dropped = sum(repeat.answers.dropped + repeat.verdicts.dropped for repeat in finished.repeats)
    if dropped:
        yield (
            f"{dropped} lines of an earlier pass were torn, damaged, edited or from another "
            "key: they were skipped and made again."
        )


def _failures(rows: Sequence[Record]) -> Iterator[Note]:
    for status, count in statuses(rows).items():
        if not status.is_complete:
            text = f"{count} of {len(rows)} records are {status} and have no score"
            for row in rows:
                if row.status == status and (why := _reason_of(row)):
                    text += f": {why}"
                    break

            yield Note(NoteKind.NO_SCORE, f"{text}.", count)


def _reason_of(record: Record) -> str:
    """Why a record has no score, as far as the record says."""
    if record.tries and record.verdict:
        replies = "replies" if record.verdict.votes else "reply"
        why = one_line(record.verdict.reason)
        return f"the judge's {replies}: {why}; the same command asks again"

    return record.error or ""


def _losses(ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    ingested, incomplete = set(), set()
    for ingest in ingest_rows:
        if ingest.row.health is not None:
            ingested.add((ingest.case_id, ingest.seed))
            if ingest.row.health.lost:
                incomplete.add((ingest.case_id, ingest.seed))

    if incomplete:
        yield (
            f"{total_health(ingest_rows).summary}, in {len(incomplete)} of {len(ingested)} "
            "conversations: their answers are based on an incomplete memory."
        )


def _compressions(cell: Cell, ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    turn = cell.config.compression_turn
    if turn == "never" or not ingest_rows:
        return

    # The maximum over a conversation's checkpoints: the turn may be after the first of them.
    most: dict[tuple[str, int], int] = {}
    for ingest in ingest_rows:
        # Failed ingests have no health, and were not compressed.
        if ingest.row.health is not None:
            conversation = ingest.case_id, ingest.seed
            most[conversation] = max(most.get(conversation, 0), ingest.row.compressions)

    idle = list(most.values()).count(0)
    if idle:
        yield (
            f"compression_turn={turn} is past the end of {idle} of {len(most)} "
            "conversations and never fired there."
        )
