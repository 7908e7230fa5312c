"""Estimates requests and cost of a sweep by asking its open questions at imagined endpoints."""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from memeval.config.paths import outputs_dir
from memeval.config.schema import ANSWER, JUDGE, TOOLS
from memeval.errors import MemevalError
from memeval.pipeline.execute.case_work import CaseWork
from memeval.pipeline.execute.memories import MemorySource
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.repeat import Repeat, first_error
from memeval.pipeline.execute.unit import ANSWER_ROW, VERDICT_ROW, Message, SentRows, SentTexts
from memeval.pipeline.open.called import calls_package_models
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.system_source import SystemSource
from memeval.records import EvalCase, Role
from memeval.results import AnswerRow, IngestRow, VerdictRow
from memeval.results.rows import answer_or_ingest
from memeval.runs.forecast.imagined import (
    ExpectedCall,
    ImaginedConnections,
    ImaginedModels,
    ImaginedSource,
    ImaginedWork,
    Tally,
)
from memeval.runs.forecast.past import ASSUMED_S, Kind, PastMeans, kind_of, read_past
from memeval.runs.forecast.sampling import (
    Extent,
    OpenRepeat,
    count_questions,
    evenly_spaced,
    sample_cases,
)
from memeval.runs.forecast.totals import CallSums, Estimate, RoleTotal, line_of
from memeval.runs.plan import Plan
from memeval.runs.units import Units
from memeval.text.shown import counted, one_line

MAX_QUESTIONS, MAX_REPEATS = 3_000, 60
"""A sweep with at most this many open questions and repeats is composed completely."""
SAMPLED_QUESTIONS, SAMPLED_REPEATS = 1_000, 16
"""Approximate number of questions and repeats of a larger sweep that are composed."""
MIN_QUESTIONS = 5
"""Minimum questions of a composed repeat."""
MAX_TURNS, MAX_READ_TURNS = 100_000, 10_000
"""Maximum turns in composed cases of a repeat; the second applies if a model reads each turn."""


class _SampledRepeat(Struct, frozen=True):
    """A repeat of which some questions were asked."""

    repeat: OpenRepeat
    cases: Sequence[EvalCase]
    calls: Sequence[ExpectedCall]
    """Those of its requests that no earlier repeat sends."""
    repeated: Counter[Role]


def _weights(
    whole: Extent, part: Extent, first: _SampledRepeat, *, is_first: bool
) -> Mapping[Role, float]:
    """Weight of a call of the first repeat, or of a later one, by role."""
    own_whole, own_part = Extent(), Extent()
    own_whole.add(first.repeat, first.repeat.cases)
    own_part.add(first.repeat, first.cases)

    weights = {}
    for role in Role:
        others = part.of(role) - own_part.of(role)
        if not others:  # only the first repeat was composed
            weights[role] = whole.weight(part, role)
        elif is_first:
            weights[role] = own_whole.weight(own_part, role)
        else:
            weights[role] = (whole.of(role) - own_whole.of(role)) / others

    return weights


def _drop(message: Message) -> None:
    """Drops a message: made-up rows are not stored."""


class Estimator:
    """Asks the open questions of a plan, one cell after the other."""

    def __init__(self, plan: Plan, units: Units, folder: Path) -> None:
        """`folder` is for temporary files."""
        self._plan, self._units = plan, units
        self._tally = Tally()
        self._connections = ImaginedConnections(folder, self._tally)
        self._answers: dict[Path, SentRows[AnswerRow | IngestRow]] = {}
        self._verdicts: dict[Path, SentRows[VerdictRow]] = {}
        self._repeated: dict[Role, float] = dict.fromkeys(Role, 0.0)
        """Requests that equal an earlier one, and so are not sent, by role."""
        self._sums: dict[tuple[Role, str, str, str], CallSums] = {}
        self._past: PastMeans = read_past(outputs_dir() / "runs")
        self._unknown_length: set[Kind] = set()
        self._notes: list[str] = [plan.repetition_note] if plan.repetition_note else []
        self._uncounted: list[str] = []
        self._failed = 0

    async def estimate(self, *, exact: bool = False) -> Estimate:
        """The estimate; `exact` asks every open question, however many there are."""
        groups: dict[Hashable, list[OpenRepeat]] = {}
        repeats = total = 0
        for repeat in self._open_repeats():
            groups.setdefault(repeat.group, []).append(repeat)
            repeats += 1
            total += count_questions(repeat.cases)

        if exact or (total <= MAX_QUESTIONS and repeats <= MAX_REPEATS):
            most_repeats = most_questions = total
        else:
            most_repeats = max(1, SAMPLED_REPEATS // len(groups))
            sampled = sum(min(len(group), most_repeats) for group in groups.values())
            most_questions = max(MIN_QUESTIONS, SAMPLED_QUESTIONS // sampled)

        asked = 0
        for group in groups.values():
            asked += await self._imagine_group(group, most_repeats, most_questions, exact=exact)

        await self._connections.aclose()
        uncounted = tuple(dict.fromkeys(self._uncounted))
        return Estimate(self._lines(), [*uncounted, *self._basis(asked, total)], uncounted)

    def _can_imagine(self, cell: Cell) -> bool:
        source = cell.source
        if not isinstance(source, SystemSource):
            return False

        name = cell.config.system["name"]
        if source.settings.is_served:
            self._notes.append(f"calls that the memory system={name} makes itself are not counted")
        if not source.settings.own_server:
            return True

        why = "its own server makes them"
        if TOOLS in (cell.config.reader.name, cell.config.writer.name):
            why = "they depend on its server's results"

        self._uncounted.append(f"the calls of system={name} are not counted: {why}")
        return False

    def _open_repeats(self) -> Iterator[OpenRepeat]:
        for planned in self._plan.open_cells:
            if not self._can_imagine(planned.cell):
                continue
            if not planned.reach and not calls_package_models(planned.cell):
                continue

            for seed in planned.cell.seeds:
                cases = self._open_cases(planned.cell, seed)
                if cases:
                    self._note_lack_of_evidence(planned.cell)
                    yield OpenRepeat(planned, seed, cases)

    def _note_lack_of_evidence(self, cell: Cell) -> None:
        cases = self._units.cases.of(cell)
        is_named = any(question.evidence for case in cases for question in case.questions)
        if cell.source.wants_evidence and not is_named:
            system, dataset = cell.config.system["name"], cell.config.dataset["name"]
            self._notes.append(
                f"system={system} is only shown the evidence, but no question of dataset={dataset} "
                "names any: the run would be INVALID"
            )

    def _open_cases(self, cell: Cell, seed: int) -> Sequence[EvalCase]:
        """The cases of a repeat with the questions that are still to be answered or judged."""
        done = self._units.by_stage[JUDGE].done.get(cell.keys(seed).judge)
        if not done:
            return self._units.cases.of(cell)

        cases = []
        for case in self._units.cases.of(cell):
            left = [question for question in case.questions if question.question_id not in done]
            if left:
                cases.append(replace(case, questions=tuple(left)))

        return cases

    async def _imagine_group(
        self, group: Sequence[OpenRepeat], repeats: int, questions: int, *, exact: bool
    ) -> int:
        """Asks some questions of a group on behalf of all of them; returns how many were asked."""
        whole, part = Extent(), Extent()
        for repeat in group:
            whole.add(repeat, repeat.cases)

        sampled: list[_SampledRepeat] = []
        asked = 0
        for repeat in evenly_spaced(group, repeats):
            cases = repeat.cases
            if not exact:
                is_read = repeat.planned.cell.identity.uses_llm_at_ingest
                turns = MAX_READ_TURNS if is_read else MAX_TURNS
                cases = sample_cases(cases, questions, turns)

            part.add(repeat, cases)
            asked += count_questions(cases)
            await self._imagine(repeat, cases)
            calls, repeated = tuple(self._tally.calls), Counter(self._tally.repeated)
            sampled.append(_SampledRepeat(repeat, cases, calls, repeated))

        for number, sample in enumerate(sampled):
            # Later repeats send only requests that the first did not: they represent the repeats
            # that were not composed.
            weights = _weights(whole, part, sampled[0], is_first=number == 0)
            for call in sample.calls:
                self._add(sample.repeat.planned.cell, call, weights[call.role])

            for role, count in sample.repeated.items():
                self._repeated[role] += count * weights[role]

        return asked

    async def _imagine(self, repeat: OpenRepeat, cases: Sequence[EvalCase]) -> None:
        """Asks questions of a repeat; the requests are in the tally."""
        cell, seed = repeat.planned.cell, repeat.seed
        config = cell.config
        self._tally.loops = {Role.ANSWER: config.reader, Role.INGEST: config.writer}
        self._tally.calls.clear()
        self._tally.repeated.clear()
        work = ImaginedWork(cell, Progress(), self._connections, self._source)
        try:
            work.begin(ImaginedModels(cell.config, cell.run_key, connections=self._connections))
            imagined = self._begin(work, cell, seed)
            for case in cases:
                await work.work(imagined, case)
                for question in case.questions:
                    answer = imagined.answer(question.question_id)
                    is_known = answer and answer.status.is_complete
                    self._failed += not is_known
        except MemevalError as error:
            self._uncounted.append(f"{cell.name} can't be estimated: {one_line(error, 200)}")
        except BaseExceptionGroup as errors:
            cause = one_line(first_error(errors), 200)
            self._uncounted.append(f"{cell.name} can't be estimated: {cause}")

    def _source(self, cell: Cell, models: Models) -> MemorySource:
        return ImaginedSource(cell, models, self._tally)

    def _begin(self, work: CaseWork, cell: Cell, seed: int) -> Repeat:
        stored = self._units.stored.answers(cell, seed)
        kept: frozenset[str] = self._units.by_stage[ANSWER].done.get(
            cell.keys(seed).answer, frozenset()
        )
        self._tally.stored_answers = frozenset(kept & stored.rows.keys())

        answers_path, verdicts_path = cell.answers_file(seed), cell.verdicts_file(seed)
        # Cells also share made-up rows: a question that one cell asked costs the next nothing.
        if answers_path not in self._answers:
            self._answers[answers_path] = SentRows(ANSWER_ROW, stored.rows, answer_or_ingest, _drop)
        if verdicts_path not in self._verdicts:
            verdicts = self._units.stored.verdicts(cell, seed)
            self._verdicts[verdicts_path] = SentRows(
                VERDICT_ROW, verdicts.rows, VerdictRow.from_json, _drop
            )

        return Repeat(
            seed=seed,
            answers=self._answers[answers_path],
            verdicts=self._verdicts[verdicts_path],
            texts=SentTexts(_drop),
            judge=work.judge(seed),
        )

    def _add(self, cell: Cell, call: ExpectedCall, weight: float) -> None:
        kind = kind_of(call.role, call.model, cell)
        tokens, seconds = self._past.completion_tokens(kind), self._past.seconds(kind)
        if kind is not None and (tokens is None or seconds is None):
            self._unknown_length.add(kind)
        if tokens is None:
            tokens = call.completion_tokens
        if seconds is None:
            seconds = ASSUMED_S

        key = (call.role, call.model, call.provider, call.address)
        sums = self._sums.setdefault(key, CallSums(call.slots))
        sums.add(call, weight, completion=tokens, seconds=seconds)

    def _lines(self) -> list[RoleTotal]:
        calls = dict.fromkeys(Role, 0.0)
        for (role, *_), sums in self._sums.items():
            calls[role] += sums.calls

        order, lines = list(Role), []
        for key in sorted(self._sums, key=lambda key: (order.index(key[0]), *key[1:])):
            role, sums = key[0], self._sums[key]
            repeated = self._repeated[role] * sums.calls / calls[role]
            lines.append(line_of(key, sums, repeated=repeated))

        return lines

    def _basis(self, asked: int, total: int) -> list[str]:
        basis = list(dict.fromkeys(self._notes))
        if asked < total:
            basis.insert(
                0,
                f"the estimate extrapolates from {asked:,} of {total:,} open questions; --exact "
                "examines all",
            )

        roles = {line.role.value: None for line in self._lines() if line.known_calls < line.calls}
        if roles:
            basis.append(
                f"requests for {', '.join(roles)} are an estimate: they depend on answers that "
                "don't exist yet"
            )

        if self._unknown_length:
            models = ", ".join(sorted({kind[1] for kind in self._unknown_length}))
            basis.append(
                f"no earlier run shows the length and time of all replies of {models}: they are "
                f"assumed, at {ASSUMED_S:g} s per call"
            )

        if self._failed:
            basis.append(
                f"{counted(self._failed, 'answer')} could not be simulated: the calls that "
                "depend on them are not counted"
            )

        return basis
