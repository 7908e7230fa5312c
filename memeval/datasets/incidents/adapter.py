"""Incidents of real systems: past incidents as dated narratives, and questions about them, asked
when later incidents begin.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO

from msgspec.structs import replace

from memeval.config.schema import ANSWER, PREPARE, at
from memeval.datasets.chance import seeded_random
from memeval.datasets.contract import DatasetSettings, LoadedDataset
from memeval.datasets.incidents.handling import HANDLING_CATEGORIES, HANDLING_TEMPLATES
from memeval.datasets.incidents.history import IncidentHistory
from memeval.datasets.incidents.metrics import DEPTHS, a_at_k, mar, ranking
from memeval.datasets.incidents.questions import TEMPLATES, root_causes
from memeval.datasets.incidents.runbooks import Handling, handle
from memeval.datasets.incidents.schema import read_source
from memeval.datasets.incidents.table import Incident, SourceTable, write_normalized
from memeval.datasets.incidents.text import narrate
from memeval.datasets.locate import check_pin
from memeval.datasets.netops.base import ABILITIES, Draft, NetOps, choose, drafts_of, questions
from memeval.errors import UserError
from memeval.records import CategoryId, EvalCase
from memeval.results import Record
from memeval.text.shown import counted


@dataclass(frozen=True)
class IncidentSettings(DatasetSettings):
    history_share: float = at(PREPARE, 0.7)
    """Share of each system's incidents that the memory contains. They are the earliest; the later
    ones are asked about.
    """
    questions_per_case: int = at(ANSWER, 60, least=1)
    """Maximum number of questions about each system, chosen evenly over abilities and templates,
    not counting those for root causes.
    """
    root_causes_per_case: int = at(ANSWER, 20, least=0)
    """Maximum number of later incidents per system whose root cause is asked for, in addition."""
    runbooks: bool = at(PREPARE, False)
    """Whether the memory also contains the handling of incidents, and runbooks with revisions.
    Their steps are invented.
    """
    handling_per_case: int = at(ANSWER, 20, least=0)
    """Maximum additional questions per system about handling and runbooks; with `runbooks`."""
    seed: int = at(PREPARE, 0)
    """Determines words and questions, never facts."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.history_share < 1:
            raise UserError(
                "dataset.history_share must be more than 0 and less than 1, not "
                f"{self.history_share}"
            )


class Incidents(NetOps):
    """Reads a table of incidents; each system in it is one case, each past incident one session."""

    settings_type = IncidentSettings
    measure_names: Collection[str] = (*(f"a_at_{k}" for k in DEPTHS), "mar")
    settings: IncidentSettings

    @property
    def category_names(self) -> Mapping[CategoryId, str]:
        names = super().category_names
        return {**names, **HANDLING_CATEGORIES} if self.settings.runbooks else names

    @property
    def headline(self) -> frozenset[CategoryId]:
        return super().headline | frozenset(self.category_names) - frozenset(ABILITIES)

    def open(self) -> LoadedDataset:
        table, pinned = self._table
        notes = (*table.notes, *self._split_notes())
        return self._loaded(table.sha256, pinned=pinned, notes=notes)

    def read(self) -> Iterator[EvalCase]:
        return iter(self._cases)

    def write_from(self, file: IO[str], sources: Sequence[Path]) -> tuple[str, ...]:
        """Writes the normalized table of published fault lists, in the order of the sources."""
        notes: list[str] = []
        incidents: list[Incident] = []
        for source in sources:
            table = read_source(self.info, source)
            notes += table.notes
            incidents += table.incidents

        written = write_normalized(file, incidents)
        # DejaVu's incidents may have several root causes.
        if written < len(incidents):
            notes.append(
                f"incidents: {len(incidents) - written} of {len(incidents)} have several root "
                "causes and are left out: the normalized schema names one"
            )

        origin = counted(len(sources), "source")
        return (f"{counted(written, 'incident')} of {origin}", *notes)

    def measures(self, records: Sequence[Record]) -> Mapping[str, float | None]:
        """A@1, A@3, A@5 and MAR of the answered root-cause questions; None without answers."""
        counts: list[int] = []
        truths: list[list[str]] = []
        rankings: list[list[str]] = []
        for record in records:
            if record.facets.get("task") != "root_cause" or record.hypothesis is None:
                continue

            names = self._candidates[record.case_id]
            counts.append(len(names))
            truths.append(ranking(record.gold[0], names))
            rankings.append(ranking(record.hypothesis, names))

        if not truths:
            return dict.fromkeys(self.measure_names)

        scores = {f"a_at_{k}": a_at_k(truths, rankings, k) for k in DEPTHS}
        return {**scores, "mar": mar(truths, rankings, counts)}

    @cached_property
    def _table(self) -> tuple[SourceTable, bool]:
        table = read_source(self.info, self.path)
        return table, check_pin(
            self.info, self.path, table.sha256, allow_unpinned=self.settings.allow_unpinned
        )

    @cached_property
    def _systems(self) -> Mapping[str, tuple[list[Incident], list[Incident]]]:
        """The earlier and the later incidents of each system, in order of time. Rows with equal
        times keep the table's order.
        """
        table = self._table[0].incidents
        systems: dict[str, list[Incident]] = {row.system: [] for row in table}
        for row in sorted(table, key=lambda row: row.time):
            systems[row.system].append(row)

        return {name: self._split(rows) for name, rows in systems.items()}

    def _split(self, rows: list[Incident]) -> tuple[list[Incident], list[Incident]]:
        """The earlier and later rows. Incidents of the same second stay together, in the past."""
        last = rows[max(1, int(len(rows) * self.settings.history_share)) - 1].time
        split = bisect_right(rows, last, key=lambda row: row.time)
        return rows[:split], rows[split:]

    @cached_property
    def _cases(self) -> list[EvalCase]:
        cases = [self._case(name) for name, (_, later) in self._systems.items() if later]
        if not cases:
            raise UserError(
                f"{self.path}: no system has incidents at two different times, an earlier and a "
                "later one."
            )

        return cases

    def _case(self, name: str) -> EvalCase:
        earlier, later = self._systems[name]
        handlings: list[Handling | None] = [None] * len(earlier)
        if self.settings.runbooks:
            handlings = handle(self.settings.seed, name, earlier)

        rng = seeded_random("incidents", self.settings.seed, name)
        past, sessions = narrate(rng, earlier, handlings)
        rng = seeded_random("incidents questions", self.settings.seed, name)
        history = IncidentHistory(
            rng=rng, past=past, later=later, elsewhere=self._names_elsewhere(name)
        )
        chosen = choose(rng, drafts_of(TEMPLATES, history), self.settings.questions_per_case)
        ranked = choose(rng, root_causes(history), self.settings.root_causes_per_case)
        # Drawn last and from another generator, so all other questions are the same without them.
        handled = self._handling(name, history)
        return EvalCase(
            case_id=name, sessions=sessions, questions=questions(name, [*chosen, *ranked, *handled])
        )

    def _handling(self, name: str, history: IncidentHistory) -> list[Draft]:
        if not self.settings.runbooks:
            return []

        rng = seeded_random("incidents handling", self.settings.seed, name)
        offered = drafts_of(HANDLING_TEMPLATES, replace(history, rng=rng))
        return choose(rng, offered, self.settings.handling_per_case)

    def _names_elsewhere(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        # For unanswerable questions: names that exist, but that this system never had.
        components: set[str] = set()
        faults: set[str] = set()
        for row in self._table[0].incidents:
            if row.system != name:
                components.update(row.components)
                faults.add(row.fault)

        return frozenset(components), frozenset(faults - {""})

    @cached_property
    def _candidates(self) -> Mapping[str, frozenset[str]]:
        """Components of each system that fail in the table: those that could be a root cause."""
        return {
            name: _names([*earlier, *later]) for name, (earlier, later) in self._systems.items()
        }

    def _split_notes(self) -> Iterator[str]:
        short = asked = new = 0
        for earlier, later in self._systems.values():
            short += not later
            asked += len(later)
            known = _names(earlier)
            for row in later:
                new += not known.issuperset(row.components)

        if short:
            yield f"systems: {short} without incidents of two different times are left out"
        if self.settings.runbooks:
            yield "runbooks: their steps are invented; the table does not say how it was handled"
        if new:
            yield (
                f"root causes: {new} of {asked} later incidents hit a component without an "
                "earlier incident; no question asks for their root cause"
            )


def _names(rows: Iterable[Incident]) -> frozenset[str]:
    return frozenset(chain.from_iterable(row.components for row in rows))
