"""What a sweep would send and cost: its open questions are asked at endpoints that are imagined."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from memeval.config.paths import outputs_dir
from memeval.config.roles import ROLES, settings_of_role
from memeval.config.schema import ANSWER, JUDGE
from memeval.errors import MemevalError
from memeval.llm.prices import cost_usd
from memeval.pipeline.case_work import CaseWork
from memeval.pipeline.cell import Cell
from memeval.pipeline.declared import Declared
from memeval.pipeline.memories import MemorySource
from memeval.pipeline.models import Models
from memeval.pipeline.progress import Silent
from memeval.pipeline.repeat import Repeat, first_error
from memeval.pipeline.run import text_size
from memeval.pipeline.source import CaseAnswers
from memeval.pipeline.unit import SentTexts
from memeval.records import EvalCase, Role, Status, Usage
from memeval.results import AnswerRow, IngestRow, VerdictRow
from memeval.results.rows import answer_or_ingest
from memeval.results.store import Json, Parse, R, Rows, RowStore
from memeval.shown import one_line
from memeval.sweep.imagined import Call, ImaginedConnections, ImaginedModels, Tally
from memeval.sweep.past import ASSUMED_S, Kind, Past, kind_of, read_past
from memeval.sweep.plan import Plan, PlannedCell
from memeval.sweep.units import CasesRead, StoredRows, Units

T = TypeVar("T")

MOST_QUESTIONS, MOST_REPEATS = 3_000, 60
"""Open questions and repeats of a sweep that a plan looks at as a whole."""
SAMPLED_QUESTIONS, SAMPLED_REPEATS = 1_000, 16
"""About how many a plan looks at of a larger one."""
LEAST_QUESTIONS = 5
"""Questions of a repeat that is looked at."""
QUESTIONS_PER_CASE = 100
"""Questions of a sample that are taken from one case: preparing a case takes longer than asking."""
OWN_SERVERS = ("memeval.systems.external.letta", "memeval.systems.external.mem0_cloud")
"""Systems that keep their memory at a server of their own, and can't be imagined."""


@dataclass(frozen=True)
class Line:
    """The calls of one role at one model."""

    role: Role
    model: str
    address: str
    calls: float
    known_calls: float
    """Those whose requests are exactly what a run would send."""
    prompt_tokens: float
    completion_tokens: float
    usd: float | None
    """None where the model's price is unknown."""
    most_usd: float | None
    """If every reply were as long as its limit of tokens."""
    seconds: float
    """Wall time at the places of the address."""


@dataclass(frozen=True)
class Estimate:
    """What a sweep would send and cost."""

    lines: Sequence[Line]
    basis: Sequence[str]
    """What the figures rest on, a sentence each."""

    @property
    def calls(self) -> int:
        return round(sum(line.calls for line in self.lines))

    @property
    def tokens(self) -> int:
        return round(sum(line.prompt_tokens + line.completion_tokens for line in self.lines))

    @property
    def usd(self) -> float | None:
        """None as soon as one part is unknown."""
        return _sum([line.usd for line in self.lines])

    @property
    def most_usd(self) -> float | None:
        """If every reply were as long as its limit of tokens."""
        return _sum([line.most_usd for line in self.lines])

    @property
    def seconds(self) -> float:
        """Addresses work side by side: the one that takes longest counts."""
        by_address: dict[str, float] = {}
        for line in self.lines:
            by_address[line.address] = by_address.get(line.address, 0.0) + line.seconds

        return max(by_address.values(), default=0.0)


def _sum(parts: Sequence[float | None]) -> float | None:
    total = 0.0
    for part in parts:
        if part is None:
            return None

        total += part

    return total


@dataclass
class _Sums:
    """Sums over the calls of one role at one model."""

    places: int
    calls: float = 0.0
    known: float = 0.0
    prompt: float = 0.0
    completion: float = 0.0
    most_completion: float = 0.0
    seconds: float = 0.0

    def add(self, call: Call, weight: float, completion: float, seconds: float) -> None:
        self.places = min(self.places, call.places)
        self.calls += weight
        self.known += weight * call.known
        self.prompt += weight * call.prompt_tokens
        self.completion += weight * completion
        self.most_completion += weight * call.most_completion_tokens
        self.seconds += weight * seconds


@dataclass(frozen=True)
class _Repeat:
    """A repeat of a cell with open questions."""

    planned: PlannedCell
    seed: int
    cases: Sequence[EvalCase]
    """With the open questions."""

    @property
    def group(self) -> Hashable:
        """Repeats of a group send similar requests: of many, some are looked at."""
        config = self.planned.cell.config
        return (
            self.planned.reach,
            repr(sorted(config.dataset.items())),
            repr(sorted(config.system.items(), key=str)),
            (config.prompt.name, config.judge.name, config.judge.repeats),
            tuple(settings_of_role(config.llm, role).model for role in ROLES),
        )


@dataclass
class _Extent:
    """How much there is to do, each unit counted once."""

    text: dict[str, int] = field(default_factory=dict)
    """Characters of the cases by the key of their memories."""
    answers: dict[str, int] = field(default_factory=dict)
    """Questions by the key of their answers."""
    verdicts: dict[str, int] = field(default_factory=dict)

    def add(self, repeat: _Repeat, cases: Sequence[EvalCase]) -> None:
        """Adds cases of a repeat."""
        keys = repeat.planned.cell.keys(repeat.seed)
        questions = _questions(cases)
        if keys.prepare not in self.text:
            self.text[keys.prepare] = sum(map(text_size, cases))

        self.answers.setdefault(keys.answer, questions)
        self.verdicts.setdefault(keys.judge, questions)

    def of(self, role: Role) -> int:
        """The extent that counts for the calls of a role."""
        by_role = {Role.INGEST: self.text, Role.JUDGE: self.verdicts}
        return sum(by_role.get(role, self.answers).values())


class Estimator:
    """Asks the open questions of a plan, one cell after the other."""

    def __init__(
        self, plan: Plan, units: Units, cases: CasesRead, stored: StoredRows, folder: Path
    ) -> None:
        """`folder` is for what may be thrown away."""
        self._plan, self._units, self._cases, self._stored = plan, units, cases, stored
        self._tally = Tally()
        self._connections = ImaginedConnections(folder, self._tally)
        self._answers: dict[Path, _Rows[AnswerRow | IngestRow]] = {}
        self._verdicts: dict[Path, _Rows[VerdictRow]] = {}
        self._sums: dict[tuple[Role, str, str, str], _Sums] = {}
        self._past: Past = read_past(outputs_dir() / "runs")
        self._unknown_length: set[Kind] = set()
        self._notes: list[str] = []
        self._failed = 0

    async def estimate(self, *, exact: bool = False) -> Estimate:
        """The estimate; `exact` asks every open question, however many there are."""
        groups: dict[Hashable, list[_Repeat]] = {}
        for repeat in self._open_repeats():
            groups.setdefault(repeat.group, []).append(repeat)

        repeats = [repeat for group in groups.values() for repeat in group]
        total = sum(_questions(repeat.cases) for repeat in repeats)
        if exact or (total <= MOST_QUESTIONS and len(repeats) <= MOST_REPEATS):
            most_repeats = most_questions = total
        else:
            most_repeats = max(1, SAMPLED_REPEATS // len(groups))
            looked_at = sum(min(len(group), most_repeats) for group in groups.values())
            most_questions = max(LEAST_QUESTIONS, SAMPLED_QUESTIONS // looked_at)

        asked = 0
        for group in groups.values():
            asked += await self._imagine_group(group, most_repeats, most_questions)

        await self._connections.aclose()
        return Estimate(self._lines(), self._basis(asked, total))

    def _can_imagine(self, cell: Cell) -> bool:
        source = cell.source
        if not isinstance(source, Declared):
            return False

        if source.system_class.__module__ not in OWN_SERVERS:
            return True

        name = cell.config.system["name"]
        self._note(f"the calls of system={name} are not counted: its own server makes them")
        return False

    def _open_repeats(self) -> Iterator[_Repeat]:
        """The repeats that send anything, and of which something is left to do."""
        for planned in self._plan.open_cells:
            if not planned.reach or not self._can_imagine(planned.cell):
                continue

            for seed in planned.cell.seeds:
                cases = self._open_cases(planned.cell, seed)
                if cases:
                    yield _Repeat(planned, seed, cases)

    def _open_cases(self, cell: Cell, seed: int) -> Sequence[EvalCase]:
        """The cases of a repeat with the questions that are still to be answered or judged."""
        done = self._units.by_stage[JUDGE].done.get(cell.keys(seed).judge)
        if not done:
            return self._cases.of(cell)

        cases = []
        for case in self._cases.of(cell):
            questions = tuple(one for one in case.questions if one.question_id not in done)
            if questions:
                cases.append(replace(case, questions=questions))

        return cases

    async def _imagine_group(self, group: Sequence[_Repeat], repeats: int, questions: int) -> int:
        """Asks a part of a group for all of it; returns how many questions that were."""
        whole, part = _Extent(), _Extent()
        for repeat in group:
            whole.add(repeat, repeat.cases)

        calls: list[tuple[Cell, Call]] = []
        asked = 0
        for number, repeat in enumerate(_spread(group, repeats)):
            cases = _part_of(repeat.cases, questions, number)
            part.add(repeat, cases)
            asked += _questions(cases)
            await self._imagine(repeat, cases)
            calls += [(repeat.planned.cell, call) for call in self._tally.calls]

        for cell, call in calls:
            self._add(cell, call, whole.of(call.role) / max(1, part.of(call.role)))

        return asked

    async def _imagine(self, repeat: _Repeat, cases: Sequence[EvalCase]) -> None:
        """Asks questions of a repeat; what is sent is in the tally."""
        cell, seed = repeat.planned.cell, repeat.seed
        self._tally.calls.clear()
        work = _ImaginedWork(cell, Silent(), self._connections, self._source)
        try:
            work.begin(ImaginedModels(cell.config, cell.run_key, self._connections))
            under_way = self._begin(work, cell, seed)
            for case in cases:
                await work.work(under_way, case)
                self._count_failures(under_way, case)
        except MemevalError as error:
            self._note(f"{cell.name} can't be estimated: {one_line(error, 200)}")
        except BaseExceptionGroup as errors:
            self._note(f"{cell.name} can't be estimated: {one_line(first_error(errors), 200)}")

    def _source(self, cell: Cell, models: Models) -> MemorySource:
        return _ImaginedSource(cell, models, self._tally)

    def _begin(self, work: CaseWork, cell: Cell, seed: int) -> Repeat:
        stored = self._stored.answers(cell, seed)
        kept: frozenset[str] = self._units.by_stage[ANSWER].done.get(
            cell.keys(seed).answer, frozenset()
        )
        self._tally.stored_answers = frozenset(kept & stored.rows.keys())

        answers_path, verdicts_path = cell.answers_file(seed), cell.verdicts_file(seed)
        if answers_path not in self._answers:
            self._answers[answers_path] = _Rows(answers_path, stored, answer_or_ingest)
        if verdicts_path not in self._verdicts:
            verdicts = self._stored.verdicts(cell, seed)
            self._verdicts[verdicts_path] = _Rows(verdicts_path, verdicts, VerdictRow.from_json)

        return Repeat(
            seed=seed,
            answers=self._answers[answers_path],
            verdicts=self._verdicts[verdicts_path],
            texts=SentTexts(lambda _: None),
            judge=work.judge(seed),
        )

    def _count_failures(self, repeat: Repeat, case: EvalCase) -> None:
        for question in case.questions:
            answer = repeat.answer(question.question_id)
            self._failed += answer is None or answer.status is not Status.OK

    def _add(self, cell: Cell, call: Call, weight: float) -> None:
        """Adds a call that is looked at for `weight` that are sent."""
        kind = kind_of(call.role, call.model, cell)
        tokens, seconds = self._past.completion_tokens(kind), self._past.seconds(kind)
        if kind is not None and (tokens is None or seconds is None):
            self._unknown_length.add(kind)

        key = (call.role, call.model, call.provider, call.address)
        sums = self._sums.setdefault(key, _Sums(call.places))
        sums.add(
            call,
            weight,
            completion=call.completion_tokens if tokens is None else tokens,
            seconds=ASSUMED_S if seconds is None else seconds,
        )

    def _lines(self) -> list[Line]:
        order = list(Role)
        return [
            _line(key, sums)
            for key, sums in sorted(
                self._sums.items(), key=lambda item: (order.index(item[0][0]), *item[0][1:])
            )
        ]

    def _basis(self, asked: int, total: int) -> list[str]:
        basis = list(dict.fromkeys(self._notes))
        if asked < total:
            basis.insert(
                0,
                f"{asked:,} of {total:,} open questions were looked at, and calls that cells share "
                "may be counted for each of them; --exact looks at all",
            )

        made_up = [line for line in self._lines() if line.known_calls < line.calls]
        roles = ", ".join(dict.fromkeys(line.role.value for line in made_up))
        if made_up:
            basis.append(
                f"requests for {roles} rest in part on replies that are not known yet: these are "
                "made up, and equal ones are rarer among them than among a model's"
            )

        if self._unknown_length:
            models = ", ".join(sorted({kind[1] for kind in self._unknown_length}))
            basis.append(
                f"no earlier run says how long all replies of {models} are and take: made-up ones "
                f"are counted, and {ASSUMED_S:g} s a call"
            )

        if self._failed:
            basis.append(
                f"{self._failed} answers could not be made up: what follows them is not counted"
            )

        return basis

    def _note(self, note: str) -> None:
        self._notes.append(note)


def _questions(cases: Sequence[EvalCase]) -> int:
    return sum(len(case.questions) for case in cases)


def _part_of(cases: Sequence[EvalCase], most: int, number: int) -> Sequence[EvalCase]:
    """The open questions that are asked: all, or about `most`.

    `number` counts the samples: each takes other cases.
    """
    if _questions(cases) <= most:
        return cases

    start = number % len(cases)
    rotated = [*cases[start:], *cases[:start]]
    some = _spread(rotated, max(1, most // QUESTIONS_PER_CASE))
    share = max(1, most // len(some))
    return [replace(case, questions=tuple(_spread(case.questions, share))) for case in some]


def _spread(items: Sequence[T], count: int) -> list[T]:
    """At most `count` items, evenly spread."""
    if len(items) <= count:
        return list(items)

    return [items[number * len(items) // count] for number in range(count)]


def _line(key: tuple[Role, str, str, str], sums: _Sums) -> Line:
    role, model, provider, address = key
    prompt, completion = sums.prompt / sums.calls, sums.completion / sums.calls
    most_completion = max(sums.most_completion / sums.calls, completion)
    price = _PriceOfCalls(role, model, provider, prompt)
    return Line(
        role=role,
        model=model,
        address=address,
        calls=sums.calls,
        known_calls=sums.known,
        prompt_tokens=sums.prompt,
        completion_tokens=sums.completion,
        usd=price.of(sums.calls, completion),
        most_usd=price.of(sums.calls, most_completion),
        seconds=sums.seconds / sums.places,
    )


class _PriceOfCalls:
    """The price of calls with a mean prompt: it may depend on the length of each one's prompt."""

    def __init__(self, role: Role, model: str, provider: str, prompt_tokens: float) -> None:
        whole = max(1, round(prompt_tokens))
        asking = cost_usd(Usage(role, model, provider, whole, 0))
        replied = cost_usd(Usage(role, model, provider, whole, 1000))
        self._asking: float | None = None
        self._per_token: float | None = None
        if asking is not None and replied is not None:
            # Means are no whole numbers, and whole tokens alone have a price.
            self._asking = asking * prompt_tokens / whole
            self._per_token = (replied - asking) / 1000

    def of(self, calls: float, completion_tokens: float) -> float | None:
        """The price of calls with replies of this mean length; None where it is unknown."""
        if self._asking is None or self._per_token is None:
            return None

        return calls * (self._asking + self._per_token * completion_tokens)


class _Rows(RowStore[R]):
    """Rows of a file, and those that are made up, which are not written."""

    def __init__(self, path: Path, stored: Rows[R], parse: Parse[R]) -> None:
        super().__init__(path, {}, parse)
        self._found = Rows(dict(stored.rows), dict(stored.seals))

    def _write(self, row: Json) -> str:
        return ""


class _ImaginedWork(CaseWork):
    """Work that goes on whatever its made-up replies are like."""

    def _watch(self, row: VerdictRow) -> None: ...


class _ImaginedSource(MemorySource):
    """Memories that are built and not saved."""

    def __init__(self, cell: Cell, models: Models, tally: Tally) -> None:
        super().__init__(cell, models, saves=False)
        self._tally = tally

    async def open(self, case: EvalCase, seed: int) -> CaseAnswers:
        self._tally.begin_case()
        before = self._tally.made_up
        answers = await super().open(case, seed)
        self._tally.made_up_case = self._tally.made_up > before

        return answers
