"""Synthetic cases as a file in LoCoMo's schema, and back.

Besides LoCoMo's own fields each question has `ability` and `answers`, which readers of LoCoMo
ignore: they see the category ids of `LOCOMO_IDS` and the first of the golds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from memeval.datasets.granularity import line
from memeval.datasets.io.fields import SHOWN, Fields, read_records
from memeval.datasets.locomo.names import ADVERSARIAL
from memeval.datasets.locomo.schema import read_case
from memeval.datasets.synthetic.case import bucket
from memeval.datasets.synthetic.plant import ABILITIES, ABS, CR, IE, KU, MR, TR
from memeval.llm.tokens import count_tokens
from memeval.records import EvalCase, EvalQuestion, Session, format_time
from memeval.text.shown import one_line

LOCOMO_IDS: Mapping[str, int] = {IE: 4, MR: 1, TR: 2, KU: 4, CR: 4, ABS: ADVERSARIAL}
"""LoCoMo's category for each ability: single_hop for IE, KU and CR, multi_hop for MR, temporal for
TR, adversarial for ABS.
"""


def write_cases(cases: Iterable[EvalCase], file: IO[str]) -> tuple[int, int]:
    """Writes a JSON list case by case; returns the numbers of cases and questions."""
    written = questions = 0
    start = "[\n"
    for case in cases:
        file.write(start)
        json.dump(sample(case), file, ensure_ascii=False)
        written, questions = written + 1, questions + len(case.questions)
        start = ",\n"

    file.write("\n]\n" if written else "[]\n")
    return written, questions


def sample(case: EvalCase) -> dict[str, Any]:
    """A case as a record of LoCoMo's file."""
    talk: dict[str, Any] = {"speaker_a": case.speakers[0], "speaker_b": case.speakers[1]}
    for number, session in enumerate(case.sessions, start=1):
        assert session.started_at is not None
        # With a comma before the year, as in LoCoMo's dates.
        before, _, year = format_time(session.started_at).rpartition(" ")
        talk[f"session_{number}_date_time"] = f"{before}, {year}"
        talk[f"session_{number}"] = [
            {"speaker": turn.speaker, "dia_id": turn.turn_id, "text": turn.text}
            for turn in session.turns
        ]

    return {"sample_id": case.case_id, "conversation": talk, "qa": list(map(_qa, case.questions))}


def _qa(question: EvalQuestion) -> dict[str, Any]:
    ability = str(question.category)
    record: dict[str, Any] = {"question": question.text}
    if question.answerable:
        record["answer"] = question.gold[0]

    return record | {
        "evidence": list(question.evidence),
        "category": LOCOMO_IDS[ability],
        "ability": ability,
        "answers": list(question.gold),
    }


def read_cases(content: bytes, path: Path) -> Iterator[EvalCase]:
    """The cases of a file that `write_cases` wrote.

    Raises `UserError` naming file, record and field if a case does not parse.
    """
    seen: set[str] = set()
    for fields in read_records(content, path, "conversation"):
        case = _read_case(fields)
        fields.check_new("sample_id", case.case_id, seen)
        yield case


def _read_case(fields: Fields) -> EvalCase:
    case = read_case(fields, captions=True)
    for earlier, later in pairwise(case.sessions):
        if earlier.started_at and later.started_at and later.started_at < earlier.started_at:
            talk = fields.member("conversation", case.case_id)
            raise talk.wrong(
                f"session_{later.session_id[1:]}_date_time",
                "is earlier than that of the session before it",
            )

    if not case.questions:
        raise fields.wrong("qa", "contains no questions")

    starts = positions(case.sessions)
    total = max(1, starts.pop(""))
    records = fields.objects("qa", f"{case.case_id} qa[{{}}]")
    questions = []
    for qa, question in zip(records, case.questions, strict=True):
        questions.append(_question(qa, question, starts, total))

    return replace(case, questions=tuple(questions))


def _question(
    qa: Fields, question: EvalQuestion, starts: Mapping[str, int], total: int
) -> EvalQuestion:
    ability = qa.one_of("ability", ABILITIES)
    if LOCOMO_IDS[ability] != question.category:
        raise qa.wrong(
            "category",
            f"is {question.category}, but ability {ability} has category {LOCOMO_IDS[ability]}",
        )

    cited = qa.texts("evidence")
    if cited != list(question.evidence) or bool(cited) != question.answerable:
        mistake = "is empty"
        if cited:
            mistake = f"contains {one_line(cited, SHOWN)}, which are not all turn ids"

        raise qa.wrong("evidence", mistake)

    gold = tuple(qa.texts("answers"))
    if bool(gold) != question.answerable or gold[:1] != question.gold:
        raise qa.wrong("answers", "does not begin with the field 'answer'")

    facets = {}
    if cited:
        facets["depth"] = bucket(max(starts[turn_id] for turn_id in cited), total)

    return replace(question, category=ability, gold=gold, facets=facets)


def positions(sessions: Iterable[Session]) -> dict[str, int]:
    """Number of tokens before each turn, by turn id; the total is under the empty id."""
    starts: dict[str, int] = {}
    position = 0
    for session in sessions:
        for turn in session.turns:
            starts[turn.turn_id] = position
            position += count_tokens(line(turn))

    starts[""] = position
    return starts
