"""`python -m memeval show RUN [QUESTION]`: a run, or everything about one of its questions."""

import textwrap
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain

from memeval.api.selecting import select_one
from memeval.cli.finished_data import DATA, find_cases
from memeval.cli.parser import RUN, Parser
from memeval.comparison.tables import WIDTH, align
from memeval.errors import UserError
from memeval.metrics.accuracy import corrected_text
from memeval.metrics.formats import (
    NONE,
    count,
    coverage_percent,
    dollars,
    milliseconds,
    percent,
    with_interval,
)
from memeval.metrics.metric import SHOW, with_interval_of
from memeval.metrics.registry import texts_at
from memeval.records import Role
from memeval.report.flags import flags
from memeval.results import Record, RunSummary, Texts, judge_shown
from memeval.results.prices import total_cost_usd
from memeval.results.rows import Written
from memeval.results.run import Run
from memeval.results.steps import AgentStep
from memeval.results.summary import as_yaml
from memeval.runs.display.terminal import print_folded
from memeval.text.redaction import redacted
from memeval.text.shown import counted, one_line, printable

MISSING = "(not on this machine)"
FIRST_LINES = 3
"""Maximum lines of a tool's result that are shown."""
TIME_NAMES = {"place_ms": "waiting for a slot"}
"""Display names of times whose field names are not clear enough."""

USAGE = f"""
shows a finished run, or everything about one of its questions

{RUN}
question? QUESTION  id, such as conv-26/q12
{DATA}
"""
PARSER = Parser.of("show", USAGE)


def show(arguments: Sequence[str]) -> int:
    """Prints a run, or one of its questions."""
    options = PARSER.parse_args(list(arguments))
    (run,) = select_one(options.run, "show").chosen
    lines = run_lines(run)
    if options.data is not None and options.question is None:
        raise UserError("show reads --data only for a QUESTION")
    if options.question is not None:
        lines = question_lines(run, options.question, options.data)

    for line in lines:
        print_folded(printable(line))

    return 0


def run_lines(run: Run) -> Iterator[str]:
    """A run: figures, categories, settings and notes."""
    summary = run.summary
    get = summary.metrics.get
    yield f"{one_line(summary.name)}  {run.key}"
    for name, value in {
        "data set": one_line(summary.dataset),
        "sweep": one_line(summary.sweep or NONE),
        "judge": one_line(judge_shown(summary.judge)) or NONE,
        "finished": summary.finished_at,
        "command": one_line(summary.command, 1000),
        "folder": str(run.folder),
        "flags": ", ".join(flags(summary)) or NONE,
    }.items():
        yield f"  {name + ':':<10} {value}"

    yield ""
    for name, value in {
        "accuracy [95 %]": with_interval_of("accuracy", summary),
        "corrected accuracy": corrected_text(summary) or NONE,
        "re-run std": percent(get("accuracy_std")),
        "questions": count(summary.asked),
        "coverage": coverage_percent(get("coverage")),
        **texts_at(SHOW, summary),
    }.items():
        if value:
            yield f"  {name + ':':<24} {value}"

    rows = [["category", "n", "accuracy [95 %]"]]
    for row in summary.categories:
        accuracy = with_interval(*row.share)
        rows.append([one_line(row.name), count(row.n), accuracy])

    yield from ["", *align(rows), "", "settings:"]
    for name in sorted(summary.params):
        yield f"  {one_line(name)}: {one_line(as_yaml(summary.params[name]))}"

    for note in summary.notes:
        yield f"note: {one_line(str(note), 1000)}"

    yield f"to see a question:  python -m memeval show {run.key} QUESTION"


def question_lines(run: Run, question_id: str, data: str | None = None) -> Iterator[str]:
    """All information about a question: gold answer, evidence, and each repeat's answer."""
    records = find_records(run, question_id)
    first = records[0]
    yield f"{one_line(first.question_id)}  {one_line(first.category_name)}"
    yield from wrap("question", first.question)
    for index, choice in enumerate(first.choices):
        right = " (right)" if index in first.right_choices else ""
        yield from wrap(f"choice {index + 1}{right}", choice)

    for gold in first.gold:
        yield from wrap("gold", gold)

    if not first.answerable:
        yield "  the right answer is a refusal"

    cases, why = find_cases(run, {first.case_id}, data)
    spoken: dict[str, str] = {}
    for case in (cases or {}).values():
        spoken = {turn.turn_id: f"{turn.speaker}: {turn.text}" for turn in case.turns}

    for turn_id in first.evidence:
        yield from wrap(f"evidence {one_line(turn_id)}", spoken.get(turn_id, MISSING))

    if why and first.evidence:
        yield from wrap("evidence is not shown", why)

    for record in records:
        yield ""
        yield from record_lines(run.summary, record, run.texts_of(record))
        yield from writer_lines(run.read_written(record), record, run.texts_of(record))


def find_records(run: Run, question_id: str) -> list[Record]:
    """The records of a question, one per repeat.

    Raises `UserError` with the nearest ids for a question that the run did not ask.
    """
    asked: list[Record] = []
    ids: dict[str, None] = {}
    for record in run.iter_records():
        ids[record.question_id] = None
        if record.question_id == question_id:
            asked.append(record)

    if asked:
        return asked

    near = get_close_matches(question_id, ids, n=3, cutoff=0.5) or list(ids)[:3]
    raise UserError(
        f"run {run.key} has no question '{one_line(question_id)}'",
        f"similar:  {', '.join(map(one_line, near))}",
    )


def record_lines(summary: RunSummary, record: Record, texts: Texts | None) -> Iterator[str]:
    """One repeat's answer to a question, from the memory to the verdict."""
    head = f"repeat {record.repeat}, seed {record.seed}: {record.status.value}"
    yield f"{head}  ({one_line(summary.name)})"
    yield from wrap("answer", record.hypothesis or NONE)
    if record.raw:
        yield from wrap("whole reply", record.raw)
    if record.error:
        yield from wrap("error", record.error)

    if record.verdict:
        verdict = record.verdict
        yield f"  verdict: {verdict.label.value} by {one_line(verdict.judge)}"
        if verdict.reason:
            yield from wrap("reason", verdict.reason)

    if record.evidence_ranks is not None:
        ranks = ["not found" if rank is None else str(rank) for rank in record.evidence_ranks]
        yield f"  ranks of the evidence: {', '.join(ranks) or NONE}"

    yield from lines_of_steps(record.steps, set(record.evidence), texts)
    yield from retrieved_lines(record, texts)
    if record.context is not None:
        yield f"  context that the reader saw ({count(record.context_tokens)} tokens):"
        yield from indent(text_of(texts, record.context))

    yield from spending_lines(record)


def lines_of_steps(
    steps: Sequence[AgentStep], evidence: Collection[str], texts: Texts | None
) -> Iterator[str]:
    """Steps of a model with tools: its text, its calls with the evidence among their turns, and the
    first lines of their results.
    """
    for number, step in enumerate(steps, start=1):
        faults = f": {', '.join(step.faults)}" if step.faults else ""
        yield f"  step {number}{faults}"
        if step.text is not None:
            yield from indent(text_of(texts, step.text))

        for call in step.calls:
            held = [turn for turn in call.turn_ids or () if turn in evidence]
            ended = call.fault or f"{count(call.tokens)} tokens"
            if held:
                ended += f", evidence {', '.join(map(one_line, held))}"

            arguments = one_line(text_of(texts, call.arguments))
            yield from wrap(f"call of {one_line(call.name)}", f"{arguments} → {ended}")
            lines = text_of(texts, call.result).splitlines()
            if len(lines) > FIRST_LINES:
                lines[FIRST_LINES:] = ["…"]

            yield from indent("\n".join(lines))


def writer_lines(parts: Sequence[Written], record: Record, texts: Texts | None) -> Iterator[str]:
    """Work of a model on each session of a question's conversation, under `writer=tools`."""
    for session in chain.from_iterable(part.sessions for part in parts):
        done = [
            counted(session.steps, "reply", "replies"),
            counted(session.calls, "call"),
            counted(session.writes, "write"),
        ]
        done += [f"{kind} {number}" for kind, number in session.faults.items()]
        if session.limited:
            done.append("ended at a limit")

        yield f"  writer, session {one_line(session.session_id)}: {', '.join(done)}"
        yield from lines_of_steps(session.made, set(record.evidence), texts)


def retrieved_lines(record: Record, texts: Texts | None) -> Iterator[str]:
    """Chunks the reader saw, best first; a star marks evidence."""
    evidence = set(record.evidence)
    for rank, chunk in enumerate(record.retrieved or (), start=1):
        ids = ", ".join(map(one_line, chunk.turn_ids)) or NONE
        line = f"retrieved {rank}: turns {ids}"
        if chunk.score is not None:
            line = f"retrieved {rank}: score {chunk.score:.4g} turns {ids}"

        yield f"  {line}" if evidence.isdisjoint(chunk.turn_ids) else f" *{line} (evidence)"
        yield from indent(text_of(texts, chunk.text))


def spending_lines(record: Record) -> Iterator[str]:
    """Tokens and cost by role, and the times of the steps."""
    for role in Role:
        usages = [usage for usage in record.usage if usage.role is role]
        if not usages:
            continue

        sent = received = 0
        models: dict[str, None] = {}
        for usage in usages:
            sent += usage.prompt_tokens or 0
            received += usage.completion_tokens or 0
            models[one_line(usage.model)] = None

        cost = dollars(total_cost_usd(usages, billed=False))
        yield (
            f"  {role.value}: {sent:,} tokens sent, {received:,} received, cost $ {cost} "
            f"({', '.join(models)})"
        )

    shown = []
    for name, value in record.times.numbers().items():
        if name.endswith("_ms"):
            title = TIME_NAMES.get(name, name.removesuffix("_ms"))
            shown.append(f"{title} {milliseconds(value)}")

    yield f"  times: {', '.join(shown) or NONE}"


def text_of(texts: Texts | None, reference: str | None) -> str:
    """The text of a reference, without secrets."""
    if texts and (text := texts.get(reference)) is not None:
        return redacted(text)

    return MISSING


def wrap(name: str, text: str) -> Iterator[str]:
    """A named text, wrapped; its own line breaks are kept."""
    first, *others = printable(redacted(text)).split("\n")
    for line in textwrap.wrap(f"{name}: {first}", WIDTH - 2, subsequent_indent="  "):
        yield f"  {line}"

    if others:
        yield from indent("\n".join(others))


def indent(text: str) -> Iterator[str]:
    """The lines of a text, wrapped and indented by four columns."""
    for line in printable(text).split("\n"):
        # textwrap returns nothing for an empty line.
        for part in textwrap.wrap(line, WIDTH - 4) or [""]:
            yield f"    {part}"
