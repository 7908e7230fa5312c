"""Drafts questions about the cases of a file, wave by wave, until there are enough.

All requests depend only on the file, the kinds, the number and earlier replies, and every reply is
in the cache of the home: after a kill or a spent budget, the same command continues without paying
twice.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice, starmap
from typing import Any

from msgspec import Struct, field

from memeval.drafting.checks import Checker
from memeval.drafting.proposal import (
    UNANSWERABLE,
    KnownQuestions,
    Proposal,
    Reason,
    check_kind,
    check_question,
    check_quotes,
    read_proposal,
)
from memeval.drafting.slots import IS_DRAFTED, QuestionSlot, choose_parts, parts_of, slots
from memeval.errors import ModelError
from memeval.llm.contract import DraftPrompt
from memeval.llm.metering import Ledger, metered
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import load_builtin
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.records import EvalCase, EvalQuestion, Role, Session, Usage
from memeval.text.value_search import values_in

WAVE = 50
"""Proposals processed at the same time; after each wave, the questions that passed are saved."""
MAX_TRIES = 3
"""Maximum proposals per wanted question."""
OFFLINE_KINDS = ("single_hop", "temporal")
"""Kinds of questions that the offline drafter can propose."""
_Proposals = list[tuple[QuestionSlot, Proposal]]


class DraftRequest(Struct, frozen=True):
    count: int
    """Total number of drafted questions of these cases, including those already in the file."""
    shares: Mapping[str, float]
    """Share of each kind."""


class DraftedQuestion(Struct, frozen=True):
    """A question that passed all checks."""

    case_id: str
    question: EvalQuestion
    proposal: Proposal
    name: str
    """Its id in the file."""
    meta: Mapping[str, Any]
    """Drafter, its prompt, and the result of each check."""


class _Work:
    """State of a case while questions are drafted for it."""

    def __init__(self, case: EvalCase, checker: Checker) -> None:
        self.checker = checker
        self.asked = KnownQuestions.of(case.questions)
        self.turns = {turn.turn_id: turn for turn in case.turns}
        self.parts: list[Session] = parts_of(case)
        self.gone: list[str] = []
        """Values that a memory must no longer return at the end."""
        for operation in case.operations:
            self.gone += operation.values
            if operation.correct is not None:
                self.gone.append(operation.correct.old)


class Drafting(Struct, dict=True):
    """Questions for some cases, and the outcome of each proposal."""

    cell: Cell
    models: Models
    cases: Sequence[EvalCase]
    wanted: DraftRequest
    save: Callable[[Sequence[DraftedQuestion]], None]
    """Called with the questions that each wave keeps."""
    estimate_only: bool = False
    """Treats each check as passed after its requests were made, for an estimate."""
    dropped: Counter[Reason] = field(default_factory=Counter)
    failure: str = ""
    """Message of the call that failed last."""
    kept: int = 0
    usages: list[Usage] = field(default_factory=list)
    _slot_counts: Counter[str] = field(default_factory=Counter)
    """Slots of each kind, except for those to be requested again."""
    _dropped_by_kind: Counter[str] = field(default_factory=Counter)
    _work: dict[int, _Work] = field(default_factory=dict)
    """By position of the case."""

    @cached_property
    def count_before(self) -> int:
        """Number of drafted questions already in the file."""
        return sum(IS_DRAFTED.search(name) is not None for name in self._ids)

    @property
    def proposals(self) -> int:
        return self.kept + self.dropped.total()

    async def run(self) -> None:
        """Drafts until enough questions are kept, or too many proposals are dropped."""
        try:
            coming = islice(
                slots(len(self.cases), self.wanted.shares, self._slot_counts),
                MAX_TRIES * self.wanted.count,
            )
            existing = 0
            while self._missing and (wave := list(islice(coming, self._wave_size(existing)))):
                new = [slot for slot in wave if self._id_of(slot) not in self._ids]
                existing += len(wave) - len(new)
                # All of them: which were dropped decides the kinds of the next wave.
                while todo := new[: self._missing]:
                    del new[: len(todo)]
                    failed = self.dropped[Reason.FAILED]
                    await self._draft_wave(todo)
                    # An endpoint that fails every call would be called forever.
                    if self.dropped[Reason.FAILED] - failed == len(todo):
                        return
        finally:
            for work in self._work.values():
                self.usages += work.checker.usages
                await work.checker.close()

    @property
    def _missing(self) -> int:
        return max(self.wanted.count - self.count_before - self.kept, 0)

    def _wave_size(self, existing: int) -> int:
        """Slots in the next wave; questions of `existing` earlier slots were in the file already.

        The number is the same as if this command had drafted those, too: later kinds depend on what
        was kept before, and a command that continues another one must make the same requests.
        """
        return min(self.wanted.count - existing - self.kept, WAVE)

    def _drop(self, slot: QuestionSlot, reason: Reason) -> None:
        """Counts a dropped proposal. Its kind is requested again, up to `MAX_TRIES` times its
        share, because a conversation may contain nothing of a kind.
        """
        self.dropped[reason] += 1
        self._dropped_by_kind[slot.kind] += 1
        share = self.wanted.shares[slot.kind] * self.wanted.count
        if self._dropped_by_kind[slot.kind] <= (MAX_TRIES - 1) * share:
            self._slot_counts[slot.kind] -= 1

    @cached_property
    def _ids(self) -> set[str]:
        ids: set[str] = set()
        for case in self.cases:
            ids.update(question.question_id for question in case.questions)

        return ids

    def _id_of(self, slot: QuestionSlot) -> str:
        return f"{self.cases[slot.case].case_id}/{slot.name}"

    async def _draft_wave(self, wave: Sequence[QuestionSlot]) -> None:
        proposed = await asyncio.gather(*map(self._propose, wave))
        survivors: _Proposals = []
        for slot, proposal in zip(wave, proposed, strict=True):
            if isinstance(proposal, Reason):
                self._drop(slot, proposal)
            elif (reason := self._check(slot, proposal)) is not None:
                self._drop(slot, reason)
            else:
                survivors.append((slot, proposal))

        while survivors:
            asked, survivors = self._first_of_equals(survivors)
            checked = await asyncio.gather(*starmap(self._ask, asked))
            self._keep(asked, checked)

    def _first_of_equals(self, proposals: _Proposals) -> tuple[_Proposals, _Proposals]:
        """The proposals to check now, in the order of the slots, and those that equal one of them.
        These wait, because that one may be dropped.

        Proposals that equal a question already kept are dropped.
        """
        now: _Proposals = []
        later: _Proposals = []
        asking: dict[int, KnownQuestions] = {}
        for slot, proposal in proposals:
            others = asking.setdefault(slot.case, KnownQuestions.of(()))
            if self._work_of(slot).asked.has(proposal):
                self._drop(slot, Reason.DUPLICATE)
            elif others.has(proposal):
                later.append((slot, proposal))
            else:
                others.add(proposal)
                now.append((slot, proposal))

        return now, later

    def _keep(self, asked: _Proposals, checked: Sequence[DraftedQuestion | Reason]) -> None:
        stay = []
        for (slot, proposal), outcome in zip(asked, checked, strict=True):
            if isinstance(outcome, Reason):
                self._drop(slot, outcome)
            else:
                self._work_of(slot).asked.add(proposal)
                stay.append(outcome)

        self.kept += len(stay)
        if stay:
            self.save(stay)

    async def _propose(self, slot: QuestionSlot) -> Proposal | Reason:
        case, work = self.cases[slot.case], self._work_of(slot)
        shown, about = choose_parts(slot, case.case_id, work.parts)
        prompt = DraftPrompt(
            kind=slot.kind,
            sessions=tuple(shown),
            about=about,
            system_text=self._template.system,
            user_template=self._template.user,
        )
        try:
            with metered(Ledger(scope=f"draft {self._id_of(slot)}")) as ledger:
                reply = await self._drafter.complete(prompt, role=Role.DRAFT, seed=slot.round)
        except ModelError as error:
            self.failure = str(error)
            return Reason.FAILED

        self.usages += ledger.usages
        return read_proposal(reply.text, slot.kind)

    def _check(self, slot: QuestionSlot, proposal: Proposal) -> Reason | None:
        """The checks that need neither a model nor the other questions."""
        work = self._work_of(slot)
        turns = work.turns
        if values_in(work.gone, *proposal.golds):
            return Reason.GONE

        return (
            check_quotes(proposal, turns) or check_question(proposal) or check_kind(proposal, turns)
        )

    async def _ask(self, slot: QuestionSlot, proposal: Proposal) -> DraftedQuestion | Reason:
        """The checks that need a model."""
        is_answerable = proposal.kind != UNANSWERABLE
        evidence = proposal.evidence_ids if is_answerable else ()
        question = EvalQuestion(
            question_id=self._id_of(slot),
            text=proposal.question,
            category=proposal.kind,
            gold=proposal.golds,
            evidence=evidence,
            answerable=is_answerable,
        )
        try:
            reason, results = await self._work_of(slot).checker.check(proposal, question)
        except ModelError as error:
            self.failure = str(error)
            return Reason.FAILED

        if reason is not None:
            return reason

        by_code = {"form, quotations, wording": "passed", "asked already": "no"}
        meta = {
            "drafted_by": self._drafter.name,
            "checked_by": self.models.reader.name,
            "prompt": self._template.sha256[:16],
            "checks": by_code | results,
        }
        return DraftedQuestion(
            case_id=self.cases[slot.case].case_id,
            question=question,
            proposal=proposal,
            name=slot.name,
            meta=meta,
        )

    @cached_property
    def _template(self) -> Any:
        return load_builtin("draft")

    @cached_property
    def _drafter(self) -> LanguageModel:
        return self.models.drafter()

    def _work_of(self, slot: QuestionSlot) -> _Work:
        if slot.case not in self._work:
            case = self.cases[slot.case]
            checker = Checker(self.cell, self.models, case, estimate_only=self.estimate_only)
            self._work[slot.case] = _Work(case, checker)

        return self._work[slot.case]


def as_written(drafted: DraftedQuestion, names: Mapping[str, str | int]) -> dict[str, Any]:
    """A question as written to the file; `names` are the file's own turn names, by turn id."""
    question, proposal = drafted.question, drafted.proposal
    written = {
        "id": drafted.name,
        "question": question.text,
        "answer": list(question.gold),
        "category": proposal.kind,
        "evidence": [names[turn_id] for turn_id in question.evidence],
    }
    if proposal.stale:
        written["stale"] = [value for value, _ in proposal.stale]

    quotes = [{"turn": names[quote.turn_id], "quote": quote.text} for quote in proposal.evidence]
    role = "near" if proposal.kind == UNANSWERABLE else "quotes"
    return written | {"status": "drafted", "meta": {**drafted.meta, role: quotes}}
