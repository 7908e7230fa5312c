"""Your own data set: a JSON list of tickets, each with dated messages and questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from memeval.config.schema import PREPARE, at
from memeval.datasets.contract import Dataset, DatasetInfo, DatasetSettings, LoadedDataset
from memeval.datasets.io.fields import Fields, kind_of, parse_json
from memeval.datasets.locate import digest_of, read_file
from memeval.errors import UserError
from memeval.records import CategoryId, EvalCase, EvalQuestion, Session, Turn


@dataclass(frozen=True)
class TicketSettings(DatasetSettings):
    """The settings that all data sets have, and one more."""

    agents: bool = at(PREPARE, True)
    """Whether the agents' messages are remembered; another value ingests again."""


class Tickets(Dataset):
    """Reads tickets: each is a case of one session."""

    info = DatasetInfo(
        name="tickets",
        title="Tickets of a help desk",
        file="tickets/tickets.json",
        url=None,
        sha256=None,
        size_bytes=None,
        licence="CC0 1.0",
        citation="our own",
    )
    settings_type = TicketSettings

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        return {"fact": "fact", "none": "unanswerable"}

    def open(self) -> LoadedDataset:
        return LoadedDataset(
            self.info, self.path, digest_of(read_file(self.info, self.path)), pinned=True
        )

    def read(self) -> Iterator[EvalCase]:
        tickets = parse_json(read_file(self.info, self.path), self.path)
        if not isinstance(tickets, list) or not tickets:
            raise UserError(f"{self.path} contains {kind_of(tickets)}, not a list of tickets.")
        known = set[str]()
        for index, ticket in enumerate(tickets):
            case = self._case(Fields.of(self.path, f"record {index}", ticket))
            if case.case_id in known:
                raise UserError(
                    f"{self.path}: record {index}: field 'id' is '{case.case_id}', as an earlier "
                    "record's."
                )
            known.add(case.case_id)
            yield case

    def _case(self, ticket: Fields) -> EvalCase:
        case_id, opened = ticket.text("id"), _time(ticket, "opened")
        messages = enumerate(ticket.objects("messages", f"{case_id} messages[{{}}]"), start=1)
        turns = [
            Turn(f"m{number}", message.text("from"), message.text("text"), opened)
            for number, message in messages
        ]
        kept = tuple(turn for turn in turns if self.settings.agents or turn.speaker != "agent")
        asked = enumerate(ticket.objects("questions", f"{case_id} questions[{{}}]"))
        questions = tuple(
            _question(question, f"{case_id}/q{index}", {turn.turn_id for turn in kept})
            for index, question in asked
        )
        return EvalCase(case_id, (Session("s1", opened, kept),), questions)


def _question(question: Fields, question_id: str, turns: set[str]) -> EvalQuestion:
    kind = question.text("kind")
    if kind not in ("fact", "none"):
        raise question.wrong("kind", f"is '{kind}', not fact or none")
    answerable = kind == "fact"
    evidence = tuple(f"m{question.integer('message')}" for _ in range(answerable))
    return EvalQuestion(
        question_id=question_id,
        text=question.answer("question"),
        category=kind,
        gold=(question.answer("answer"),) if answerable else (),
        evidence=tuple(turn_id for turn_id in evidence if turn_id in turns),
        answerable=answerable,
    )


def _time(ticket: Fields, name: str) -> datetime:
    try:
        return datetime.fromisoformat(ticket.text(name))
    except ValueError:
        raise ticket.wrong(name, "is not a time like 2024-05-08T13:56") from None
