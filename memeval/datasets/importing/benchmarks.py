"""Reads files in formats of published benchmarks, with questions, through their adapters."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memeval.datasets.contract import Dataset
from memeval.datasets.granularity import with_caption
from memeval.datasets.importing.message import ImportLog, Message
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion

DATA_SETS = {
    "locomo": "locomo",
    "longmemeval": "longmemeval_s",
    "memory_agent_bench": "memory_agent_bench",
}
"""The data set whose adapter reads each format."""
NOT_IN_CATEGORY = re.compile(r"[^\w .-]+")


def read_benchmark(
    name: str, path: Path, log: ImportLog
) -> tuple[list[Message], list[tuple[str, dict[str, Any]]]]:
    """The messages of a file in a benchmark's format, and the questions, each with its case id.

    Raises `UserError` as the benchmark's adapter does.
    """
    if not path.is_file():
        raise UserError(
            f"{path}: a file of {name} must be the only input.", "unpack it, and use only that file"
        )

    # MemoryAgentBench otherwise reads one of the splits in the file.
    dataset = build(DATA_SETS[name], path.parent, path=str(path), allow_unpinned=True, split="all")
    dataset.open()
    messages: list[Message] = []
    questions: list[tuple[str, dict[str, Any]]] = []
    # A case without questions is also imported: questions may be written later.
    for case in dataset.read():
        messages += _messages(case, log)
        for question in case.questions:
            fields = _question(question, case, dataset)
            questions.append((case.case_id, fields))

    for note in dataset.notes():
        log.note_conversion(f"files of {name}: {note}")

    return messages, questions


def _messages(case: EvalCase, log: ImportLog) -> Iterator[Message]:
    for session in case.sessions:
        for turn in session.turns:
            if turn.caption:
                log.note_conversion("captions of images, added to their turn's text")

            yield Message(
                speaker=turn.speaker,
                text=with_caption(turn),
                session=f"{case.case_id}/{session.session_id}",
                keys={"conversation": case.case_id},
                time=turn.time or session.started_at,
                message_id=turn.turn_id,
            )


def _question(question: EvalQuestion, case: EvalCase, dataset: Dataset) -> dict[str, Any]:
    name = dataset.category_names.get(question.category, str(question.category))
    fields: dict[str, Any] = {
        "id": question.question_id.removeprefix(f"{case.case_id}/"),
        "question": question.text,
        "answer": [],
        "category": NOT_IN_CATEGORY.sub("_", name)[:60],
    }
    # Without answers a refusal is right: LongMemEval's gold is then only an explanation.
    if question.answerable:
        fields["answer"] = list(question.gold)

    if question.evidence:
        fields["evidence"] = list(question.evidence)
    if question.choices:
        fields["choices"] = list(question.choices)
        fields["answer"] = [question.choices[position] for position in question.right_choices]
        fields["multi_select"] = question.multi_select
    if question.asked_at is not None:
        fields["time"] = question.asked_at.strftime("%Y-%m-%dT%H:%M:%S")

    return fields
