"""Asks a judge about answers that are known to be right or wrong."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from memeval.calibration.injection import FlipRate, accepted_share, attacked_items, flip_rates
from memeval.calibration.items import RIGHT, AskedItem, ProbeItem, match_questions, ordered_kinds
from memeval.calibration.label_file import right_or_wrong
from memeval.errors import UserError
from memeval.judges.contract import Judge
from memeval.pipeline.execute.judging import judge_answer, judge_of
from memeval.pipeline.execute.progress import Progress
from memeval.pipeline.execute.repeat import first_error
from memeval.pipeline.open.called import run_with_breaker
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.judge_identity import judge_identity
from memeval.pipeline.open.models import Models
from memeval.records import EvalQuestion, Label, Status, Usage
from memeval.results import JudgeIdentity, VerdictRow
from memeval.results.fields import as_plain
from memeval.results.prices import total_cost_usd

AT_ONCE = 64
"""Items in progress at the same time; the endpoint's own limit bounds how many of them call it."""


@dataclass(frozen=True)
class ProbedItem:
    """An item and the judge's verdict on it."""

    item: ProbeItem
    row: VerdictRow

    @property
    def accepted(self) -> bool | None:
        """Whether the judge called it right; None if it gave no readable verdict."""
        verdict = self.row.verdict
        if self.row.status is not Status.OK or verdict is None or verdict.label is Label.UNSCORED:
            return None

        return verdict.label is Label.CORRECT


@dataclass(frozen=True)
class KindResult:
    """Verdicts of a judge on the items of one kind."""

    kind: str
    items: int
    judged: int
    """Items with a verdict."""
    accepted: int
    """Items that the judge called right."""
    share: float | None
    """Share of accepted items among the judged ones; None if no item was judged."""
    low: float | None
    high: float | None
    """Wilson's 95 % interval."""
    unparsed: int
    """Items on which the judge's reply could not be read."""
    failed: int
    """Items on which the judge failed."""


@dataclass(frozen=True)
class ProbeResult:
    """A judge, and its verdicts on all items."""

    judge: JudgeIdentity
    dataset: str
    items: tuple[ProbedItem, ...] = field(repr=False)
    kinds: tuple[KindResult, ...]
    calls: int
    cached: int
    """Calls whose reply came from memeval's cache."""
    cost_usd: float | None
    """Cost billed now; None if a price is not known."""
    flips: tuple[FlipRate, ...] = ()
    """Effect of attacks on the verdicts on wrong answers; the last one is for all attacks. Empty if
    no attacks were tried.
    """

    def to_json(self) -> dict[str, Any]:
        return {
            "judge": self.judge.shown,
            "judge_key": self.judge.digest,
            "dataset": self.dataset,
            "kinds": list(map(as_plain, self.kinds)),
            "calls": self.calls,
            "cached": self.cached,
            "cost_usd": self.cost_usd,
            "items": list(map(_item_json, self.items)),
            "flips": list(map(as_plain, self.flips)),
        }

    def labels(self) -> list[dict[str, str]]:
        """Labels and verdicts with which `judge calibrate` corrects a run of this judge."""
        labels = []
        for probed in self.items:
            if probed.accepted is not None:
                label = {
                    "judge": self.judge.shown,
                    "judge_key": self.judge.digest,
                    "question_id": probed.item.question_id,
                    "kind": probed.item.kind,
                    "label": right_or_wrong(probed.item.kind == RIGHT),
                    "verdict": right_or_wrong(probed.accepted),
                }
                labels.append(label)

        return labels


def _item_json(probed: ProbedItem) -> dict[str, Any]:
    label = reason = None
    if probed.row.verdict:
        label, reason = probed.row.verdict.label.value, probed.row.verdict.reason

    return {
        "question_id": probed.item.question_id,
        "kind": probed.item.kind,
        "answer": probed.item.answer,
        "status": probed.row.status.value,
        "label": label,
        "reason": reason,
        "error": probed.row.error,
    }


async def probe_judge(
    cell: Cell, items: Sequence[ProbeItem], progress: Progress, *, inject: bool = False
) -> ProbeResult:
    """Asks a cell's judge about all items, and with `inject` about attacks on rejected wrong ones.

    Replies are read from and stored in the cache; calls respect the endpoint's limit. If the judge
    fails, its item has no verdict. Raises the same errors as `run_with_breaker`.
    """
    identity = judge_identity(cell)
    if identity is None:
        raise UserError("judge probe asks a judge: leave stages=retrieve out")

    questions: dict[str, EvalQuestion] = {}
    for case in cell.dataset.read():
        questions.update((question.question_id, question) for question in case.questions)

    asked = match_questions(items, questions)
    # A unique name: replies that an earlier probe paid for then count as cached.
    origin = f"probe {uuid4().hex}"
    async with aclosing(Models(cell.config, origin, progress.say)) as models:
        work = _probe_all(cell, models, identity, asked, progress, inject=inject)
        return await run_with_breaker(cell, models.connections.breaker, work)


async def _probe_all(
    cell: Cell,
    models: Models,
    identity: JudgeIdentity,
    asked: Sequence[AskedItem],
    progress: Progress,
    *,
    inject: bool,
) -> ProbeResult:
    judge = judge_of(cell, models, cell.config.seed)
    probed = await _probe(judge, cell, asked, progress)
    rejected = []
    for pair, answer in zip(asked, probed, strict=True):
        is_rejected = answer.item.kind != RIGHT and answer.accepted is False
        if inject and is_rejected:
            rejected.append(pair)

    attacks, attacked = attacked_items(judge, rejected)
    tried = await _probe(judge, cell, attacked, progress)
    usages: list[Usage] = []
    for answer in (*probed, *tried):
        usages += answer.row.usage

    return ProbeResult(
        judge=identity,
        dataset=str(cell.config.dataset["name"]),
        items=(*probed, *tried),
        kinds=tuple(count_kinds(probed)),
        calls=sum(usage.calls for usage in usages),
        cached=sum(usage.calls for usage in usages if usage.cached),
        cost_usd=total_cost_usd(usages, billed=True),
        flips=tuple(flip_rates(attacks, [answer.accepted for answer in tried])),
    )


async def _probe(
    judge: Judge, cell: Cell, asked: Sequence[AskedItem], progress: Progress
) -> list[ProbedItem]:
    """The items with the judge's verdicts, in their order."""
    progress.expect("judge", len(asked))
    room = asyncio.Semaphore(AT_ONCE)

    async def judge_item(item: ProbeItem, question: EvalQuestion) -> ProbedItem:
        async with room:
            metrics = cell.dataset.answer_metrics(item.answer, question)
            row = await judge_answer(judge, question, item.answer, metrics)

        progress.done("judge")
        return ProbedItem(item, row)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(judge_item(*pair)) for pair in asked]
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors

    return [task.result() for task in tasks]


def count_kinds(probed: Sequence[ProbedItem]) -> list[KindResult]:
    verdicts: dict[str, list[bool | None]] = defaultdict(list)
    statuses: dict[str, list[Status]] = defaultdict(list)
    for answer in probed:
        verdicts[answer.item.kind].append(answer.accepted)
        statuses[answer.item.kind].append(answer.row.status)

    results = []
    for kind in ordered_kinds(verdicts):
        of_kind = statuses[kind]
        counts = accepted_share(verdicts[kind])
        unparsed, failed = of_kind.count(Status.UNPARSED), of_kind.count(Status.JUDGE_FAILED)
        result = KindResult(kind, len(of_kind), *counts, unparsed=unparsed, failed=failed)
        results.append(result)

    return results
