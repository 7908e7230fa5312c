"""Verdicts recorded in the rows of a file of answers."""

from collections.abc import Iterator
from typing import Any

from memeval.errors import UserError, unknown
from memeval.judges.recorded import RecordedJudge
from memeval.pipeline.execute.imported import Hypotheses, HypothesisRow
from memeval.records import Label
from memeval.text.shown import one_line

_LABELS = {
    **dict.fromkeys(("correct", "yes", "true", "1"), Label.CORRECT),
    **dict.fromkeys(("wrong", "incorrect", "no", "false", "0"), Label.WRONG),
    "abstained": Label.ABSTAINED,
}
FORMS = (
    'one judge:   {"question_id": "conv-26/q0", "hypothesis": "7 May 2023", "label": true, '
    '"judge": "gpt-4o-mini"}',
    'several:     {…, "labels": {"gpt-4o-mini": true, "person": false}}',
)

Votes = dict[str, tuple[Label, ...]]
"""One judge's labels, by question id."""


def recorded_judge(hypotheses: Hypotheses, judged_by: str | None) -> RecordedJudge:
    """The judge whose verdicts the file records; `judged_by` chooses among several, or names it.

    Raises `UserError` if verdicts are missing or unreadable, or none of several judges is chosen.
    """
    by_judge: dict[str, Votes] = {}
    for question_id, row in hypotheses.rows.items():
        where = f"{one_line(hypotheses.path)}, line {hypotheses.lines[question_id]}"
        for judge, votes in _read(row, where):
            by_judge.setdefault(judge, {})[question_id] = votes

    if not by_judge:
        raise UserError(f"{one_line(hypotheses.path)} records no verdicts", *FORMS)
    if judged_by is None and len(by_judge) > 1:
        names = ", ".join(one_line(name) or "an unnamed judge" for name in sorted(by_judge))
        raise UserError(
            f"{one_line(hypotheses.path)} records verdicts of {len(by_judge)} judges: {names}",
            "choose one:  --judged-by=NAME",
        )

    if judged_by is None:
        judged_by = next(iter(by_judge))
    elif list(by_judge) == [""]:
        return RecordedJudge(judged_by, by_judge[""])
    elif judged_by not in by_judge:
        raise unknown("judge", one_line(judged_by), map(one_line, by_judge))

    return RecordedJudge(judged_by, by_judge[judged_by])


def _read(row: HypothesisRow, where: str) -> Iterator[tuple[str, tuple[Label, ...]]]:
    """Judges and votes that a row records."""
    # LongMemEval's own tools write {"autoeval_label": {"model": …, "label": …}}.
    official = row.autoeval_label
    if isinstance(official, dict) and "label" in official:
        yield _name(official.get("model"), where), _votes(official["label"], where)

    # Published files of judged answers store labels of several passes under the longer name.
    label = row.recorded_judge_labels if row.label is None else row.label
    if label is not None:
        yield _name(row.judge, where), _votes(label, where)

    if row.labels is None:
        return
    if not isinstance(row.labels, dict):
        raise UserError(f"{where}: labels must be an object of judges and their labels", *FORMS)

    for judge, value in row.labels.items():
        # null: this judge did not judge this answer. Another judge may have.
        if value is not None:
            yield _name(judge, where), _votes(value, where)


def _name(value: Any, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{where}: the judge's name must be a string", *FORMS)

    return one_line(value, 80)


def _votes(value: Any, where: str) -> tuple[Label, ...]:
    if not isinstance(value, list):
        value = [value]

    votes = []
    for vote in value:
        label = None
        if isinstance(vote, str | bool):
            label = _LABELS.get(str(vote).strip().lower())
        if label is None:
            raise UserError(
                f"{where}: label must be true, false, correct, wrong or abstained, not "
                f"{one_line(vote, 40)}",
                *FORMS,
            )

        votes.append(label)

    return tuple(votes)
