"""The answers of a run with their texts, in the form for other tools' files."""

import json
from collections.abc import Iterator
from typing import Any

from memeval.results.files import json_line
from memeval.results.record import Record
from memeval.results.run import Run
from memeval.results.texts import Texts
from memeval.text.redaction import redacted_in, without_known_in

Row = dict[str, Any]
TEXTS = ("question", "gold", "choices", "hypothesis", "reason", "context", "error")
"""Members that contain texts of the data, or of a reply about them."""


def export_rows(run: Run, *, with_texts: bool) -> Iterator[Row]:
    """The answers of a run, one per question and repeat, without known secrets.

    Without texts their members are None, or empty lists; ids, verdicts and figures stay. Raises
    `UserError` if the records can't be read.
    """
    for record in run.iter_records():
        row = _row(run, record)
        if not with_texts:
            _leave_texts_out(row)

        yield clean_row(row)


def clean_row(value: Row) -> Row:
    """A JSON object without known secrets, in characters that UTF-8 can encode."""
    kept: Row = json.loads(json_line(without_known_in(value)))
    return kept


def run_identity(run: Run) -> Row:
    """Identity of a run: key, name, command, validity, judge, settings, tags, notes; no secrets."""
    summary = run.summary
    content: Row = redacted_in(
        {
            "run_key": summary.run_key,
            "name": summary.name,
            "dataset": summary.dataset,
            "command": summary.command,
            "valid": summary.valid,
            "status": summary.status,
            "judge": summary.judge and summary.judge.to_json(),
            "params": dict(summary.params),
            "tags": dict(summary.tags),
            "notes": [note.text for note in summary.notes],
        }
    )
    return clean_row(content)


def measured_metrics(run: Run) -> dict[str, float]:
    """The metrics that were measured, by their names in MLflow."""
    return {name: value for name, value in run.summary.metrics.items() if value is not None}


def _row(run: Run, record: Record) -> Row:
    texts = run.texts_of(record)
    label = judge = reason = None
    if record.verdict is not None:
        label, judge = record.verdict.label.value, record.verdict.judge
        reason = record.verdict.reason

    prompt = []
    for message in record.prompt:
        content = texts and texts.get(message.text)
        prompt.append({"role": message.role, "content": content})

    return {
        "question_id": record.question_id,
        "case_id": record.case_id,
        "category": str(record.category),
        "category_name": record.category_name,
        "repeat": record.repeat,
        "question": record.question,
        "gold": list(record.gold),
        "choices": list(record.choices),
        "answerable": record.answerable,
        "evidence": list(record.evidence),
        "status": record.status.value,
        "hypothesis": record.hypothesis,
        "label": label,
        "score": record.score,
        "graded": record.verdict is not None and record.verdict.graded,
        "judge": judge,
        "reason": reason,
        "retrieved": _passages(record, texts),
        "context": texts and texts.get(record.context),
        "context_tokens": record.context_tokens,
        "answer_ms": record.times.answer_ms,
        "error": record.error,
        "prompt": prompt,
        "metrics": dict(record.metrics),
    }


def _passages(record: Record, texts: Texts | None) -> list[Row]:
    evidence = set(record.evidence)
    passages = []
    for chunk in record.retrieved or ():
        passage = {
            "turn_ids": list(chunk.turn_ids),
            "evidence": not evidence.isdisjoint(chunk.turn_ids),
            "score": chunk.score,
            "text": texts and texts.get(chunk.text),
        }
        passages.append(passage)

    return passages


def _leave_texts_out(row: Row) -> None:
    for name in TEXTS:
        row[name] = [] if isinstance(row[name], list) else None

    row["prompt"] = []
    for passage in row["retrieved"]:
        passage["text"] = None
