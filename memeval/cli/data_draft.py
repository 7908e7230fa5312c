"""`python -m memeval data draft FILE --n N` and `data grow FILE`: a model proposes questions."""

from argparse import Namespace
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from msgspec import Struct, field

from memeval.cli.parser import settings_of
from memeval.cli.plan_text import call_lines
from memeval.comparison.tables import align
from memeval.config.paths import cache_dir
from memeval.config.roles import DRAFT, DRAFT_CHECK, settings_of_role, with_roles_filled
from memeval.config.schema import RunConfig
from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.datasets.json.document import OwnDocument, dropped_counts, lock_file
from memeval.datasets.json.frozen import case_id_of, is_frozen
from memeval.datasets.json.reader import OwnReader
from memeval.datasets.json.review import turn_names
from memeval.drafting.draft import (
    MAX_TRIES,
    OFFLINE_KINDS,
    DraftedQuestion,
    Drafting,
    DraftRequest,
    as_written,
)
from memeval.drafting.proposal import Reason
from memeval.drafting.slots import IS_DRAFTED, parse_kinds
from memeval.errors import BudgetError, UserError, check_number
from memeval.metrics.formats import count, paid_calls
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.open.called import budget_of, check_budget, limits_of, run_with_breaker
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.connections import Connections
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.opening import OpenedData, open_cell
from memeval.process.environment import private_umask
from memeval.records import EvalCase, Role
from memeval.results.files import temporary_folder
from memeval.results.prices import total_cost_usd
from memeval.runs.compose.config import compose_config
from memeval.runs.display.progress import RunDisplay
from memeval.runs.forecast.imagined import ImaginedConnections, ImaginedModels, Tally
from memeval.runs.forecast.past import ASSUMED_S
from memeval.runs.forecast.totals import CallSums, Estimate, line_of, shortfall
from memeval.runs.job import check_writable
from memeval.runs.loop import run_loop
from memeval.runs.spending import check_keys, refuse_confirmation
from memeval.store.opening import open_store
from memeval.text.shown import counted, in_shell, one_line

REFUSED_SETTINGS = ("dataset.", "system.")
"""Prefixes of settings that a draft does not accept: it reads the whole file with `oracle`."""
MAX_QUESTIONS = 1_000_000


def draft(chosen: Namespace) -> int:
    """Drafts questions and adds those that are kept to the file; `--plan` counts the calls.

    Exit status 1 if fewer are kept than requested.
    """
    private_umask()
    path = Path(chosen.file)
    job = _open(path, chosen)
    if chosen.plan:
        return _show_plan(job)

    check_writable()
    check_keys(job.cell.config)
    check_budget(job.cell, (DRAFT,))
    refuse_confirmation(job.cell.config, f"data {chosen.action}")
    with RunDisplay(f"draft {path.name}") as progress:
        drafting = run_loop(_run(job, progress))

    # If nothing was left to propose, the counts of the earlier command stay.
    if drafting.proposals:
        _note_dropped(path, drafting, adds=job.grows)

    for line in _report(drafting, path):
        print(line)

    return int(drafting.count_before + drafting.kept < job.wanted.count)


class _Job(Struct, frozen=True):
    """A file, its questions to be drafted, and the cell that checks them."""

    path: Path
    cases: Sequence[EvalCase]
    wanted: DraftRequest
    cell: Cell
    grows: bool


class _WithoutQuestions(OpenedData):
    """Opens a user's own file that may not contain any questions yet."""

    def open(self, dataset: Dataset, config: RunConfig) -> tuple[Dataset, LoadedDataset]:
        return dataset, LoadedDataset(
            info=dataset.info, path=dataset.path, sha256="", pinned=False, name=dataset.path.stem
        )


def _open(path: Path, chosen: Namespace) -> _Job:
    """The job of a command. Raises `UserError` for words, settings or files that can't be used."""
    command = f"data {chosen.action}"
    example = f"for example:  python -m memeval {command} FILE llm=openai llm.model=gpt-4o"
    settings = settings_of(command, chosen.words, chosen.config_dir, example)
    check_number("--n", chosen.n, {"least": 1, "most": MAX_QUESTIONS})
    if is_frozen(path):
        raise UserError(
            f"{path} is frozen, and a version can't change.",
            "draft for the file that it was frozen from",
        )

    shares = parse_kinds(chosen.kinds)
    config = compose_config(["dataset=json", "system=oracle", *settings])
    fields = [word for word in chosen.words if word.lstrip("+~").startswith(REFUSED_SETTINGS)]
    if fields or config.dataset["name"] != "json" or config.system["name"] != "oracle":
        raise UserError(
            f"{command} sets the data set and the system itself: leave dataset and system out"
        )

    config.dataset["path"] = str(path)
    # The checks use the model of `llm.draft_check` as the reader's model.
    filled = with_roles_filled(config.llm)
    config = replace(config, llm=settings_of_role(filled, DRAFT_CHECK))
    if settings_of_role(config.llm, DRAFT).name == "extractive":
        shares = {name: shares[name] for name in OFFLINE_KINDS if name in shares}
        if not shares:
            raise UserError(
                f"the offline drafter (llm=extractive) proposes only {', '.join(OFFLINE_KINDS)}",
                "with a model:  llm=openai llm.model=gpt-4o-mini",
            )

    cases, number = _read(path), chosen.n
    if chosen.action == "grow":
        cases, number = _new_cases(cases, number)

    wanted = DraftRequest(count=number, shares=shares)
    cell = open_cell(config, "", _WithoutQuestions())
    return _Job(path, cases, wanted, cell, grows=chosen.action == "grow")


def _read(path: Path) -> list[EvalCase]:
    reader = OwnReader(path)
    cases = list(reader.cases())
    reader.mistakes.refuse()
    return cases


def _new_cases(cases: Sequence[EvalCase], number: int | None) -> tuple[list[EvalCase], int]:
    """The cases without a drafted question, and the number of questions to draft for them.

    Raises `UserError` if no case is left, or if no number is given and there is no case to infer it
    from.
    """
    new, drafted = [], 0
    for case in cases:
        before = drafted
        for question in case.questions:
            drafted += IS_DRAFTED.search(question.question_id) is not None

        if drafted == before:
            new.append(case)

    if not new:
        raise UserError(
            "every case already has drafted questions.",
            "for more questions:  python -m memeval data draft FILE --n N",
        )

    old = len(cases) - len(new)
    if number is None and not old:
        raise UserError(
            "no case has drafted questions yet.", "use:  python -m memeval data draft FILE --n N"
        )

    return new, number or max(1, round(drafted / old * len(new)))


async def _run(job: _Job, progress: Progress) -> Drafting:
    config = job.cell.config
    store = open_store(config.store, cache_dir(), progress.say)
    connections = Connections(progress.say, store, budget_of(config))
    progress.watch(connections)
    # A unique name: replies that an earlier command paid for then count as cached.
    models = Models(config, f"draft {uuid4().hex}", progress.say, connections)
    writer = _QuestionWriter(job, progress)
    drafting = Drafting(job.cell, models, job.cases, job.wanted, writer.keep)
    progress.expect("answer", max(job.wanted.count - drafting.count_before, 0))
    work = run_with_breaker(job.cell, connections.breaker, drafting.run(), (DRAFT,))
    if connections.budget is not None:
        work = connections.budget.run(work)

    try:
        await work
    except BudgetError as error:
        if job.grows:
            raise

        progress.say(f"  {one_line(error)}; the same command with a larger budget continues it")
    finally:
        await connections.aclose()

    if writer.last:
        writer.save(writer.last)

    return drafting


class _QuestionWriter(Struct, frozen=True):
    """Writes kept questions to the file, and reports progress."""

    job: _Job
    progress: Progress
    last: list[DraftedQuestion] = field(default_factory=list)
    """Questions to be written at the end."""

    def keep(self, drafted: Sequence[DraftedQuestion]) -> None:
        # A case with a drafted question is no longer new: a stopped `grow` could not continue.
        if self.job.grows:
            self.last.extend(drafted)
        else:
            self.save(drafted)

        for _ in drafted:
            self.progress.done("answer")

    def save(self, drafted: Sequence[DraftedQuestion]) -> None:
        by_case: dict[str, list[DraftedQuestion]] = {}
        for question in drafted:
            by_case.setdefault(question.case_id, []).append(question)

        with lock_file(self.job.path):
            document = OwnDocument.read(self.job.path)
            self._check_unchanged(document, by_case)
            for number, case in enumerate(document.cases):
                # Another command may draft for the same file, with the same proposals.
                existing = {str(question.get("id")) for question in case["questions"]}
                proposed = by_case.get(case_id_of(case), ())
                new = [question for question in proposed if question.name not in existing]
                if new:
                    written = [as_written(question, _names_of(case)) for question in new]
                    questions = [*case["questions"], *written]
                    document.replace(number, {**case, "questions": questions})

            document.write()

    def _check_unchanged(self, document: OwnDocument, case_ids: Container[str]) -> None:
        """Raises `UserError` if one of these conversations has changed since it was shown."""
        now = {case.case_id: case.sessions for case in document.checked}
        for case in self.job.cases:
            if case.case_id in case_ids and now.get(case.case_id) != case.sessions:
                raise UserError(
                    f"{self.job.path}: case {case.case_id!r} was edited while questions were "
                    "drafted for it; the last ones were not written, because their evidence may be "
                    "wrong.",
                    "repeat the command, which uses the edited file; replies are in the cache",
                )


def _note_dropped(path: Path, drafting: Drafting, *, adds: bool) -> None:
    """Stores counts of the dropped proposals in the file, for its datasheet.

    A draft starts at the first proposal again: its counts replace the old ones unless `adds`.
    """
    with lock_file(path):
        document = OwnDocument.read(path)
        dropped = dropped_counts(document.header) if adds else Counter()
        dropped.update({why.value: count for why, count in drafting.dropped.items()})
        document.note_dropped(dropped)
        document.write()


def _names_of(case: dict[str, Any]) -> dict[str, str | int]:
    """Names of the turns in a file's `evidence`, by memeval's ids: own id, else the position."""
    names: dict[str, str | int] = {}
    for position, name in enumerate(turn_names(case)):
        names[f"t{position}"] = position if name is None else name

    return names


def _report(drafting: Drafting, path: Path) -> Iterator[str]:
    first = f"{path}: {counted(drafting.kept, 'question')} drafted"
    if drafting.count_before:
        first += f", {count(drafting.count_before)} already existed"

    yield first
    if drafting.proposals:
        rows = [["    kept", count(drafting.kept)]]
        for reason in Reason:
            dropped = drafting.dropped[reason]
            if dropped:
                rows.append([f"    {reason.value}", count(dropped)])

        yield f"  of {counted(drafting.proposals, 'proposal')}:"
        # `align` leaves out columns with only a header: a single row would lose its number.
        yield from align(rows) if len(rows) > 1 else ["  ".join(rows[0])]

    if drafting.failure:
        yield f"  last failed call: {one_line(drafting.failure, 500)}"
    if drafting.kept and drafting.models.drafter().name == "extractive":
        yield (
            "  drafted offline (drafted_by: extractive): simple questions, only to try it out; "
            "for better ones:  llm=openai"
        )

    # The offline models make no calls, as in a plan.
    usages = [usage for usage in drafting.usages if usage.provider != "offline"]
    calls = sum(usage.calls for usage in usages)
    cached = sum(usage.calls for usage in usages if usage.cached)
    if calls:
        yield f"  {paid_calls(calls, cached, total_cost_usd(usages, billed=True))}"

    if drafting.count_before + drafting.kept < drafting.wanted.count:
        yield f"  fewer than the {drafting.wanted.count:,} wanted, for the reasons above"

    if drafting.count_before + drafting.kept:
        yield f"review them:  python -m memeval data review {in_shell(path)}"


def _show_plan(job: _Job) -> int:
    tally = Tally()
    with temporary_folder("plan") as folder:
        connections = ImaginedConnections(Path(folder), tally)
        models = ImaginedModels(job.cell.config, "plan", connections=connections)
        unsaved: list[DraftedQuestion] = []
        drafting = Drafting(
            job.cell, models, job.cases, job.wanted, unsaved.extend, estimate_only=True
        )
        run_loop(_imagine(drafting, connections))

    sums: dict[tuple[Role, str, str, str], CallSums] = {}
    for call in tally.calls:
        key = (call.role, call.model, call.provider, call.address)
        total = sums.setdefault(key, CallSums(call.slots))
        total.add(call, 1.0, completion=call.completion_tokens, seconds=ASSUMED_S)

    more = MAX_TRIES - 1
    lines = [line_of(key, total, repeated=more * total.most_calls) for key, total in sums.items()]
    wanted = f"{counted(job.wanted.count, 'question is', 'questions are')} wanted"
    if drafting.count_before:
        wanted += f", {count(drafting.count_before)} already exist"

    print(wanted)
    estimate = Estimate(lines, ())
    for line in (*call_lines(estimate), *shortfall(estimate, limits_of(job.cell.config))):
        print(line)

    if lines:
        print(
            "note: This assumes that every proposal is kept. Each dropped proposal can cost as "
            f"many calls again, up to {MAX_TRIES} proposals per question."
        )
    elif models.drafter().name == "extractive":
        print("llm=extractive drafts and checks offline")

    print("No calls were made. To draft, run the same command without --plan.")
    return 0


async def _imagine(drafting: Drafting, connections: Connections) -> None:
    async with aclosing(connections):
        await drafting.run()
