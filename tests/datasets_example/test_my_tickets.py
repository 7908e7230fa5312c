from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from my_tickets import Tickets, TicketSettings

from memeval.datasets.contract import Dataset
from memeval.testing import DatasetContract

FILE = Path(__file__).with_name("tickets.json")


class TestTickets(DatasetContract):
    counts: ClassVar = {"cases": 2, "sessions": 2, "turns": 3, "questions": 4}
    first = ("ticket-1/q0", "Which router does the customer have?")
    last = ("ticket-2/q1", "What is the customer's phone number?")

    def build(self, **given: Any) -> Dataset:
        settings = TicketSettings(**given)
        return Tickets(Path(settings.path or FILE), Tickets.info, settings)

    def raw(self) -> Sequence[Any]:
        records: list[Any] = json.loads(FILE.read_text(encoding="utf-8"))
        return records
