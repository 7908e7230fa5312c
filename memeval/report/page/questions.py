"""The questions of a page: an index for lists and filters, and compressed blocks with the rest."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from memeval.errors import UserError
from memeval.records import Label, Status, format_time, labelled
from memeval.report.page.data import QuestionData
from memeval.report.page.runs import PageRun, questions_of
from memeval.results import Record, RetrievedChunk, Texts, as_json, is_imported
from memeval.results.prices import total_cost_usd
from memeval.results.run import Run
from memeval.results.steps import AgentStep
from memeval.results.texts import Joined
from memeval.statistics.means import sum_or_none
from memeval.text.redaction import redacted, redacted_in

RIGHT, WRONG, ABSTAINED, UNSCORED, FAILED, MIXED, NOT_ASKED = "rwaufm-"
"""Letters for the outcomes of answers, which the script draws. `m`: the repeats differ."""
LABELS = {
    Label.CORRECT: RIGHT,
    Label.WRONG: WRONG,
    Label.ABSTAINED: ABSTAINED,
    Label.UNSCORED: UNSCORED,
}
INDEX = "cases categories ids case category text gold marks shown disagree block".split()
"""Members of the index, in their order."""
ALL_SHOWN, SOME_SHOWN, NONE_SHOWN, UNKNOWN = "asn-"
"""Letters for the share of the evidence among the chunks that the reader was shown."""

BLOCK_ANSWERS = 300
"""A block with at least this many answers gets no further conversation."""
MAX_CHARACTERS = 12_000_000
"""Once the blocks have this many characters, later ones leave out contexts and chunks: a larger
page opens slowly.
"""


def question_data(runs: Sequence[PageRun]) -> QuestionData:
    """All questions of the runs, in the order of the data set."""
    questions = questions_of(runs)
    blocks, places = _blocks(runs, questions)
    index: dict[str, list[Any]] = {name: [] for name in INDEX}
    cases: dict[str, int] = {}
    categories: dict[str, int] = {}
    for name, record in questions.items():
        index["ids"].append(name)
        index["case"].append(cases.setdefault(record.case_id, len(cases)))
        index["category"].append(categories.setdefault(record.category_name, len(categories)))
        index["text"].append(record.question)
        index["gold"].append("\n".join(_gold(record)))
        index["disagree"].append(int(_is_disputed(runs, name)))

    for run in runs:
        records = [run.records.get(name, ()) for name in questions]
        # A letter per question, as one string: a list would be four times as long.
        index["marks"].append("".join(map(outcome_letter, records)))
        index["shown"].append("".join(map(evidence_letter, records)))

    index |= {"cases": list(cases), "categories": list(categories), "block": places}
    return QuestionData(index=index, blocks=tuple(blocks))


def outcome_letter(records: Sequence[Record]) -> str:
    """Outcome of a cell's answers to one question, over its repeats."""
    ends = set(map(answer_letter, records))
    if len(ends) > 1:
        return MIXED

    return ends.pop() if ends else NOT_ASKED


def answer_letter(record: Record) -> str:
    # Nothing failed: an answer can't be read, or none was requested.
    if record.status in (Status.UNPARSED, Status.RETRIEVED):
        return UNSCORED
    if record.status is not Status.OK:
        return FAILED

    return LABELS[record.verdict.label] if record.verdict else UNSCORED


def evidence_letter(records: Sequence[Record]) -> str:
    """The share of the evidence that the reader was shown, in the first repeat."""
    if not records or not records[0].evidence or records[0].retrieved is None:
        return UNKNOWN

    missing = set(records[0].evidence)
    evidence = len(missing)
    for chunk in records[0].retrieved:
        missing.difference_update(chunk.turn_ids)

    if not missing:
        return ALL_SHOWN

    return NONE_SHOWN if len(missing) == evidence else SOME_SHOWN


def _is_disputed(runs: Sequence[PageRun], question_id: str) -> bool:
    """Whether judges disagree: one judge with itself, or two verdicts on the same answer."""
    labels: dict[str, Label] = {}
    for run in runs:
        for record in run.records.get(question_id, ()):
            if record.verdict is None or record.hypothesis is None:
                continue
            if len(set(record.verdict.votes)) > 1:
                return True

            # Answers that differ only in spaces are the same to a reader.
            answer = " ".join(record.hypothesis.split())
            if labels.setdefault(answer, record.verdict.label) is not record.verdict.label:
                return True

    return False


def _gold(record: Record) -> list[str]:
    """The accepted answers; for a question with choices, the right ones with their labels."""
    if record.gold:
        return list(record.gold)

    choices = labelled(record.choices, record.choice_labels)
    return [choices[position] for position in record.right_choices if position < len(choices)]


def _blocks(
    runs: Sequence[PageRun], questions: Mapping[str, Record]
) -> tuple[list[str], list[int]]:
    """The compressed blocks, and the block of each question."""
    blocks: list[str] = []
    places: list[int] = []
    size = 0

    for names in _group(runs, questions):
        block = compressed(_block(runs, names, questions, with_texts=size < MAX_CHARACTERS))
        # Size of the compressed data, which the browser has to read.
        size += len(block)
        places += [len(blocks)] * len(names)
        blocks.append(block)

    return blocks, places


def _group(runs: Sequence[PageRun], questions: Mapping[str, Record]) -> Iterator[list[str]]:
    """Groups of questions of whole conversations, each with enough answers for a block."""
    names: list[str] = []
    answers = 0
    for _, case in groupby(questions, key=lambda name: questions[name].case_id):
        for name in case:
            names.append(name)
            answers += sum(len(run.records.get(name, ())) for run in runs)

        if answers >= BLOCK_ANSWERS:
            yield names
            names, answers = [], 0

    if names:
        yield names


def compressed(block: Mapping[str, Any]) -> str:
    """A block as gzip in base64: nothing in it can end the element that contains it."""
    content = as_json(block).encode()
    # Without a time, the same run gives the same page, byte for byte.
    return base64.b64encode(gzip.compress(content, compresslevel=6, mtime=0)).decode("ascii")


def _block(
    runs: Sequence[PageRun],
    names: Sequence[str],
    questions: Mapping[str, Record],
    *,
    with_texts: bool,
) -> dict[str, Any]:
    """The details of some questions, with the texts and chunks that they refer to."""
    pool = TextPool()
    writers: dict[tuple[str, int, str], list[Any]] = {}

    def answers_of(run: PageRun, name: str) -> list[dict[str, Any]]:
        answers = []
        for record in run.records.get(name, ()):
            texts = run.source.texts_of(record) if with_texts else None
            key = (run.source.key, record.seed, record.case_id)
            if key not in writers:
                writers[key] = _writer(run.source, record, texts, pool)

            answer = _answer(record, texts, pool)
            if is_imported(run.summary):
                # The judge's calls are not part of the answer's cost.
                answer |= dict.fromkeys(("cost", "sent", "received"))
            if writers[key]:
                answer["writer"] = list(writers).index(key)

            answers.append(answer)

        return answers

    details = {}
    for name in names:
        answers = [answers_of(run, name) for run in runs]
        details[name] = {**_question(questions[name]), "answers": answers}

    return {
        "questions": details,
        "texts": pool.texts,
        "chunks": pool.chunks,
        "writers": list(writers.values()),
        "whole": with_texts,
    }


def _writer(run: Run, record: Record, texts: Texts | None, pool: TextPool) -> list[Any]:
    """A model's work on the sessions of a question's conversation: session ids and steps."""
    try:
        written = run.read_written(record)
    except (UserError, ValueError):
        return []  # the page shows what is there

    sessions = []
    for part in written:
        for session in part.sessions:
            steps = [_step(step, texts, pool) for step in session.made]
            if steps:
                sessions.append([session.session_id, steps])

    return sessions


def _question(record: Record) -> dict[str, Any]:
    """Details of a question that are not in the index."""
    detail: dict[str, Any] = {"evidence": list(record.evidence), "answerable": record.answerable}
    if record.asked_at is not None:
        detail["asked"] = format_time(record.asked_at)
    if record.timeline:
        detail["timeline"] = [[event.kind, event.text] for event in record.timeline]
    if record.facets:
        detail["facets"] = dict(record.facets)
    if record.choices:
        detail["choices"] = labelled(record.choices, record.choice_labels)

    return detail


def _answer(record: Record, texts: Texts | None, pool: TextPool) -> dict[str, Any]:
    """One answer with its verdict, its cost, and the texts behind it."""
    answer: dict[str, Any] = {
        "end": answer_letter(record),
        "answer": record.hypothesis,
        "tokens": record.context_tokens,
        "cost": _round(total_cost_usd(record.usage, billed=False)),
        "sent": _sum(usage.prompt_tokens for usage in record.usage),
        "received": _sum(usage.completion_tokens for usage in record.usage),
        "times": {name: _round(value) for name, value in record.times.numbers().items()},
    }
    if record.repeat:
        answer["repeat"] = record.repeat
    if not record.status.is_complete:
        answer["status"] = record.status.value
    if record.verdict is not None:
        answer["judge"] = record.verdict.judge
        answer["reason"] = record.verdict.reason
        answer["votes"] = [vote.value for vote in record.verdict.votes]
    if record.error is not None:
        answer["error"] = redacted(record.error)

    done = [event.done for event in record.timeline]
    if any(done):
        answer["done"] = done
    if record.notes:
        answer["notes"] = redacted_in(dict(record.notes))
    if record.raw is not None:
        answer["raw"] = record.raw

    return answer | _sources(record, texts, pool)


def _sources(record: Record, texts: Texts | None, pool: TextPool) -> dict[str, Any]:
    """The chunks, the context, the steps and the prompt behind an answer."""
    sources: dict[str, Any] = {}
    if record.evidence_ranks is not None:
        sources["ranks"] = list(record.evidence_ranks)
    if record.retrieved is not None:
        sources["chunks"] = [pool.put_chunk(texts, chunk) for chunk in record.retrieved]
        sources["scores"] = [_round(chunk.score) for chunk in record.retrieved]
    if record.context is not None:
        sources["context"] = pool.put(texts, record.context)
    if record.steps:
        sources["steps"] = [_step(step, texts, pool) for step in record.steps]
    if record.prompt:
        sent = record.prompt
        sources["prompt"] = [[message.role, pool.put(texts, message.text)] for message in sent]

    return sources


def _step(step: AgentStep, texts: Texts | None, pool: TextPool) -> dict[str, Any]:
    """A reply of the model, and for each call its tool, arguments, result, turns and fault."""
    text_ref = pool.put(texts, step.text)
    calls = []
    for call in step.calls:
        arguments, result = pool.put(texts, call.arguments), pool.put(texts, call.result)
        calls.append([call.name, arguments, result, list(call.turn_ids or ()), call.fault])

    return {"text": text_ref, "calls": calls, "faults": list(step.faults)}


def _round(value: float | None) -> float | None:
    """The value rounded to four significant digits, as the page shows it."""
    return None if value is None else float(f"{value:.4g}")


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of token counts; None if one is unknown."""
    total = sum_or_none(counts)
    return None if total is None else int(total)


_DEEPEST = 8
"""Maximum depth of joined texts within joined texts."""


class TextPool:
    """Texts and chunks of one block, by their positions in it.

    A joined text, such as a context, is stored as the positions of its parts: a context of ten
    chunks takes ten numbers.
    """

    def __init__(self) -> None:
        self.texts: list[str | Mapping[str, Any]] = []
        self.chunks: list[list[Any]] = []
        self._text_at: dict[str, int] = {}
        self._chunk_at: dict[tuple[str | None, tuple[str, ...]], int] = {}

    def put(self, texts: Texts | None, ref: str | None, depth: int = 0) -> int | None:
        """Position of a text; None if it is missing or damaged."""
        if texts is None or ref is None or depth > _DEEPEST:
            return None
        if ref in self._text_at:
            return self._text_at[ref]

        stored = texts.read_stored(ref)
        if stored is None:
            return None
        if not isinstance(stored, Joined):
            return self._add(ref, stored)

        positions = [self.put(texts, part, depth + 1) for part in stored.parts]
        # A context with a gap would look like the one that the reader saw.
        if None in positions:
            return None

        return self._add(ref, {"join": stored.separator, "of": positions})

    def put_chunk(self, texts: Texts | None, chunk: RetrievedChunk) -> int:
        """Position of a chunk: its text, and the ids of its turns."""
        key = (chunk.text, chunk.turn_ids)
        if key not in self._chunk_at:
            self._chunk_at[key] = len(self.chunks)
            self.chunks.append([self.put(texts, chunk.text), list(chunk.turn_ids)])

        return self._chunk_at[key]

    def _add(self, ref: str, text: str | Mapping[str, Any]) -> int:
        self._text_at[ref] = len(self.texts)
        self.texts.append(text)
        return self._text_at[ref]
