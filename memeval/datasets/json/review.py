"""Review of a user's own questions: shows them, and saves and undoes a reviewer's changes."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from memeval.datasets.json.document import OwnDocument, lock_file
from memeval.datasets.json.reader import ACCEPTED, DRAFTED, META, REJECTED
from memeval.datasets.json.versions import named_questions
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion
from memeval.results.files import stamp_of

OPEN, CHANGED = "open", "changed"
"""States of a question that its reviewer has not decided, or that changed since the decision."""
STATUS, REVIEWS = "status", "reviews"
NOT_WORDING = frozenset({"id", STATUS, REVIEWS, META})
"""Fields that may change without a new review of the question."""
LONGEST_S = 86_400.0

Question = dict[str, Any]
Review = Mapping[str, Any]


class ReviewChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reviewer's change of a question. None leaves a field as it is."""

    question: str | None = None
    answers: list[str] | None = None
    """The answer and its variants; empty if a refusal is right."""
    evidence: list[Annotated[int, msgspec.Meta(ge=0)]] | None = None
    """Positions among the turns of the case."""
    decision: Literal["accepted", "rejected"] | None = None
    reason: str = ""
    """Why the question is rejected."""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S)] = 0.0
    """Review time in seconds."""


class ShownQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question as its reviewer sees it, without the decisions of others."""

    name: str
    """`case_id/id`."""
    case: int
    """Position of the case in the file."""
    case_id: str
    kind: str
    question: str
    answers: Sequence[str]
    given: Mapping[str, Sequence[str]]
    """Other content of the file about it, by heading: choices, older values, requests …"""
    evidence: list[int]
    state: str
    """`open`, `changed`, or the reviewer's decision."""
    reason: str
    seconds: float | None
    """Review time in seconds; None before a decision."""
    version: str
    """Digest of everything shown. A change names the version that it is based on."""

    @property
    def is_left(self) -> bool:
        """Whether the reviewer still has to decide."""
        return self.state in (OPEN, CHANGED)


class StaleError(UserError):
    """A change based on an outdated version; `shown` is the current question."""

    def __init__(self, shown: ShownQuestion) -> None:
        super().__init__(
            f"{shown.name} was changed elsewhere after it was shown; nothing was saved"
        )
        self.shown = shown


@dataclass
class ReviewFile:
    """A file under review by one reviewer. Each change is on disk when its method returns."""

    path: Path
    reviewer: str
    disputed: bool = False
    """Whether to show only questions that others disputed and the reviewer had not decided when the
    file was opened.
    """
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _undoable: list[tuple[str, Question, str]] = field(default_factory=list)
    """For each change: the question's name, the question before it, and the version after it."""

    def __post_init__(self) -> None:
        self._read()
        self._disputed = set()
        for name, question in named_questions(self._document.cases).items():
            made = decisions(question)
            if self.reviewer not in made and len(set(made.values())) > 1:
                self._disputed.add(name)

    def questions(self) -> list[ShownQuestion]:
        """All questions, in the file's order."""
        self._refresh()
        shown = []
        for case, content in enumerate(self._document.checked):
            for question, read in enumerate(content.questions):
                if not self.disputed or read.question_id in self._disputed:
                    shown.append(self._as_shown(case, question))

        return shown

    def case(self, number: int) -> EvalCase:
        """The case at a position. Raises `UserError` if it does not exist."""
        if not 0 <= number < len(self._document.checked):
            raise UserError(f"{self.path} has no case {number + 1}")

        return self._document.checked[number]

    def save(self, name: str, version: str, change: ReviewChange) -> ShownQuestion:
        """Changes a question; `version` is the one that the reviewer saw.

        Raises `StaleError` if the question has another version by now, and `UserError` for a change
        that the file can't contain.
        """
        if change.decision == REJECTED and not change.reason.strip():
            raise UserError("a rejected question needs a reason")

        with lock_file(self.path):
            case, question, before = self._find(name, version)
            changed = self._apply_change(case, question, change)
            if changed == before:
                return self._as_shown(case, question)

            self._write(case, question, changed)

        self._undoable.append((name, before, self._version(case, changed)))
        return self._as_shown(case, question)

    def undo(self) -> ShownQuestion | None:
        """Undoes the last change that was made here; None if no change is left.

        Later decisions of others stay. Raises `StaleError` if the question was changed since. If
        the file can't be written, the change can still be undone.
        """
        if not self._undoable:
            return None

        last = name, before, after = self._undoable.pop()
        with lock_file(self.path):
            case, question, now = self._find(name, after)
            reviews = [*_other_reviews(now, self.reviewer), *_own_review(before, self.reviewer)]
            restored = _with_reviews(before, reviews)
            if not reviews and STATUS in before:
                restored[STATUS] = before[STATUS]

            try:
                self._write(case, question, restored)
            except UserError:
                self._undoable.append(last)
                raise

        return self._as_shown(case, question)

    def _apply_change(self, case: int, question: int, change: ReviewChange) -> Question:
        read = self._document.checked[case].questions[question]
        changed = deepcopy(self._question(case, question))
        if change.question is not None and change.question.strip() != read.text:
            changed["question"] = change.question.strip()

        if change.answers is not None:
            answers = list(map(str.strip, change.answers))
            if answers != list(read.gold):
                field_name = "answer" if changed.get("golds") is None else "golds"
                changed[field_name] = answers[0] if len(answers) == 1 else answers

        if change.evidence is not None and change.evidence != _positions(read):
            names = dict(enumerate(turn_names(self._document.cases[case])))
            evidence = []
            for position in dict.fromkeys(change.evidence):
                name = names.get(position)
                evidence.append(position if name is None else name)

            changed["evidence"] = evidence

        reviews = _own_review(changed, self.reviewer)
        if change.decision is not None:
            reviews = [self._review(changed, change, reviews)]
        elif changed == self._question(case, question):
            return changed

        return _with_reviews(changed, [*_other_reviews(changed, self.reviewer), *reviews])

    def _review(
        self, question: Question, change: ReviewChange, earlier: Sequence[Review]
    ) -> Review:
        seconds = change.seconds + sum(review.get("seconds") or 0 for review in earlier)
        review = {
            "reviewer": self.reviewer,
            "decision": change.decision,
            "at": self.now().isoformat(timespec="seconds").replace("+00:00", "Z"),
            "seconds": round(seconds, 1),
            "wording": wording_of(question),
        }
        if change.reason.strip():
            review["reason"] = change.reason.strip()

        return review

    def _read(self) -> None:
        self._document = OwnDocument.read(self.path)
        self._conversations: dict[int, str] = {}
        """Digests of the sessions of cases, by position."""

    def _refresh(self) -> None:
        if stamp_of(self.path) != self._document.stamp:
            self._read()

    def _version(self, case: int, question: Question) -> str:
        """A digest of what the reviewer sees: a question, their review, and its conversation.

        Evidence is given by position: in another conversation it would name other turns.
        """
        if case not in self._conversations:
            content = self._document.cases[case]
            self._conversations[case] = _digest([content["sessions"], content.get("operations")])

        reviews = _own_review(question, self.reviewer)
        return _digest([wording_of(question), reviews, case, self._conversations[case]])

    def _find(self, name: str, version: str) -> tuple[int, int, Question]:
        """The position of a question's case, that of the question in it, and the question.

        Raises `StaleError` if it has another version by now.
        """
        self._refresh()
        for case, content in enumerate(self._document.checked):
            for position, read in enumerate(content.questions):
                if read.question_id == name:
                    question = self._question(case, position)
                    if self._version(case, question) != version:
                        raise StaleError(self._as_shown(case, position))

                    return case, position, question

        raise UserError(f"{name} is no longer in {self.path}")

    def _question(self, case: int, question: int) -> Question:
        value: Question = self._document.cases[case]["questions"][question]
        return value

    def _write(self, case: int, question: int, changed: Question) -> None:
        content = self._document.cases[case]
        questions = [*content["questions"]]
        questions[question] = changed
        self._document.replace(case, {**content, "questions": questions})
        self._document.write()

    def _as_shown(self, case: int, question: int) -> ShownQuestion:
        value = self._question(case, question)
        read = self._document.checked[case].questions[question]
        review = next(iter(_own_review(value, self.reviewer)), {})
        state = OPEN
        if review and _is_valid(review, wording_of(value)):
            state = review["decision"]
        elif review:
            state = CHANGED

        return ShownQuestion(
            name=read.question_id,
            case=case,
            case_id=self._document.checked[case].case_id,
            kind=str(read.category),
            question=read.text,
            answers=read.gold,
            given=_given(self._document.checked[case], read, value),
            evidence=_positions(read),
            state=state,
            reason=review.get("reason") or "",
            seconds=review.get("seconds"),
            version=self._version(case, value),
        )


def wording_of(question: Mapping[str, Any]) -> str:
    """A digest of the subject of a decision: the question, its answers, evidence, choices …"""
    return _digest({name: question[name] for name in question if name not in NOT_WORDING})


def decisions(question: Mapping[str, Any]) -> dict[str, str]:
    """The decision of each reviewer on the current wording."""
    wording = wording_of(question)
    return {
        review["reviewer"]: review["decision"]
        for review in question.get(REVIEWS) or ()
        if _is_valid(review, wording)
    }


def turn_names(case: Mapping[str, Any]) -> list[str | None]:
    """The ids of the turns of a case as it is written, by position."""
    names = []
    for session in case["sessions"]:
        for turn in session.get("turns", session.get("messages")):
            name = turn.get("id")
            names.append(None if name is None else str(name))

    return names


def _with_reviews(question: Question, reviews: Sequence[Review]) -> Question:
    """The question with these reviews, and its status: the majority's decision, else `drafted`.

    A user's own question without a review has no status.
    """
    changed = {name: question[name] for name in question if name not in (STATUS, REVIEWS)}
    if not reviews and STATUS not in question:
        return changed

    changed[REVIEWS] = list(reviews)
    made = list(decisions(changed).values())
    lead = made.count(ACCEPTED) - made.count(REJECTED)
    if not reviews:
        del changed[REVIEWS]

    changed[STATUS] = DRAFTED
    if lead:
        changed[STATUS] = ACCEPTED if lead > 0 else REJECTED

    return changed


def _own_review(question: Mapping[str, Any], reviewer: str) -> list[Review]:
    """The reviewer's latest review, if any."""
    reviews = [review for review in question.get(REVIEWS) or () if review["reviewer"] == reviewer]
    return reviews[-1:]


def _other_reviews(question: Mapping[str, Any], reviewer: str) -> list[Review]:
    return [review for review in question.get(REVIEWS) or () if review["reviewer"] != reviewer]


def _is_valid(review: Review, wording: str) -> bool:
    """Whether a review is about this wording; a review that names no wording applies to any."""
    return bool(review.get("wording", wording) == wording)


def _given(case: EvalCase, read: EvalQuestion, written: Question) -> dict[str, Sequence[str]]:
    """Further facts that a reviewer needs to decide; empty ones are left out."""
    requests = []
    for operation in case.operations:
        request = operation.forget or operation.correct
        if request is not None:
            requests.append(f"after {_session_name(operation.after)}: {request.words}")

    given: dict[str, Sequence[str]] = {
        "choices": read.choices,
        "older values": written.get("stale") or (),
        "forgotten values": written.get("forgotten") or (),
        "requests to the memory": requests,
    }
    if written.get("time") is not None:
        given["asked at"] = [written["time"]]
    if requests or read.asked_after is not None:
        given["asked after"] = [_session_name(read.asked_after or case.sessions[-1].session_id)]

    return {name: values for name, values in given.items() if values}


def _session_name(session_id: str) -> str:
    return f"session {session_id.removeprefix('s')}"


def _positions(question: EvalQuestion) -> list[int]:
    return [int(turn_id.removeprefix("t")) for turn_id in question.evidence]


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]
