"""The vocabulary of memeval as frozen records.

The content of a data set, a system's view of it, and the rows of a run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import chain
from math import isclose
from sys import float_info
from typing import Annotated, Any, Self

from msgspec import UNSET, Meta, Struct, UnsetType

MOST = 10**13
"""Upper bound of a count: a million calls of ten million tokens each."""
Count = Annotated[int, Meta(ge=0, le=MOST)]
Finite = Annotated[float, Meta(ge=-float_info.max, le=float_info.max)]
"""A number that JSON can represent: neither NaN nor infinite."""

MONTHS = (
    "January February March April May June July August September October November December".split()
)

CategoryId = int | str
"""A question's category as the data set stores it. Its name is looked up when a report is made."""


class AnswerKind(StrEnum):
    """Kinds of answers to a question: judges declare which kinds they judge."""

    WORDS = "words"
    """Free text of any form."""
    SENTENCES = "sentences"
    """Free text whose meaning counts: a model judges it better than word overlap."""
    VALUES = "values"
    """Names, dates and figures that either equal the gold or are wrong."""
    PASSAGES = "passages"
    """Explanations of many words; an answer shares only some of them."""
    CHOICES = "choices"
    """Multiple choice."""


IN_WORDS = frozenset(AnswerKind) - {AnswerKind.CHOICES}


class ChoiceLabels(StrEnum):
    """How choices are labelled: 0, 1, 2 … or A, B, C …"""

    DIGITS = "digits"
    LETTERS = "letters"

    def label(self, position: int) -> str:
        """The label of the choice at a position from 0."""
        if self is ChoiceLabels.DIGITS:
            return str(position)

        return chr(ord("A") + position)


def labelled(choices: Sequence[str], labels: ChoiceLabels) -> list[str]:
    """Choices as prompts show them, `0. text` or `A. text`, one per line."""
    return [f"{labels.label(position)}. {choice}" for position, choice in enumerate(choices)]


class AnswerForm(StrEnum):
    """Form of an answer in words that a question asks for."""

    SHORT = "short"
    """As few words as possible: a name, a date, a number."""
    WHOLE = "whole"
    """A complete recommendation or summary."""
    FORM = "form"
    """The form that the task names in the question's instruction."""


TOOL_SPEAKER = "tool"
"""Speaker of a turn that is a call or a result of an agent's tools."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance."""

    turn_id: str
    """Unique within its case. Nothing in it reveals whether the turn is evidence."""
    speaker: str
    text: str
    time: datetime | None
    """When it was said; the session's start if the data set dates only sessions."""
    caption: str | None = None
    """Caption of the turn's image, if the data set has one and the run shows it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A data set's note about a speaker, from some turns of a session."""

    speaker: str
    text: str
    turn_ids: tuple[str, ...]
    """The turns with the evidence; empty if the data set names no existing turn."""


@dataclass(frozen=True, slots=True)
class Session:
    """An ordered list of turns with a start time."""

    session_id: str
    started_at: datetime | None
    turns: tuple[Turn, ...]
    summary: str = ""
    """The data set's own summary; empty without one. Only `granularity=summary` shows it."""
    observations: tuple[Observation, ...] = ()
    """The data set's own notes, in the order of their turns. Only `granularity=observation` shows
    them.
    """

    @classmethod
    def of(
        cls,
        name: str,
        said: Iterable[tuple[str, str]],
        *,
        time: datetime | None = None,
        ids: str | None = None,
    ) -> Self:
        """A session of what speakers said at one time. A turn's id is `ids` and a number from 1;
        `ids` is by default the name and a colon: `s1:1`.
        """
        start = f"{name}:" if ids is None else ids
        turns = tuple(
            Turn(turn_id=f"{start}{number}", speaker=speaker, text=text, time=time)
            for number, (speaker, text) in enumerate(said, start=1)
        )
        return cls(session_id=name, started_at=time, turns=turns)


@dataclass(frozen=True, slots=True)
class Traces:
    """Values to search answers and memories for, grouped by what a hit means.

    `memeval.text.value_search` defines when a text contains a value.
    """

    kind: str
    """`deleted`, `neighbour` …: see docs/datasets/lifecycle.md."""
    right: tuple[str, ...] = ()
    """Forms of the right answer; one of them is enough. Empty if any answer without the other
    values is right.
    """
    known: tuple[str, ...] = ()
    """Values that show that the reader had the information (one is enough); empty means `right`.
    """
    older: tuple[str, ...] = ()
    """Values that were replaced."""
    deleted: tuple[str, ...] = ()
    """Forms of a value that had to be forgotten."""
    foreign: tuple[str, ...] = ()
    """Values of another user."""
    planted: tuple[str, ...] = ()
    """Words that an injected instruction tells the reader to say."""
    probes: tuple[str, ...] = ()
    """Queries that ask for the unwanted value as directly as possible: the value, its sentence."""

    @property
    def unwanted(self) -> tuple[str, ...]:
        """The values to search a memory for: those to be forgotten, and another user's if a probe
        asks for them. Canaries are not included: the memory was given them, so only showing one is
        a breach.
        """
        return (*self.deleted, *(value for value in self.foreign if value in self.probes))

    @property
    def values(self) -> tuple[str, ...]:
        """All values."""
        known = (*self.right, *self.known, *self.older)
        return (*known, *self.deleted, *self.foreign, *self.planted)


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question with its gold answer and evidence. Systems never get this; they get a `Query`."""

    question_id: str
    text: str
    category: CategoryId
    gold: tuple[str, ...]
    """Accepted answers; empty if the right answer is a refusal."""
    rubric: tuple[str, ...] = ()
    """Requirements of a right answer, one statement each, if the data set's protocol judges answers
    by them and not by `gold`.
    """
    evidence: tuple[str, ...] = ()
    """Ids of the turns that contain the answer, repaired and unique.

    Empty if the data set names none.
    """
    asked_at: datetime | None = None
    choices: tuple[str, ...] = ()
    """Choices in the order in which they are shown.

    Empty if the question is answered in words.
    """
    right_choices: tuple[int, ...] = ()
    """Positions of the right choices, from 0, ascending."""
    choice_labels: ChoiceLabels = ChoiceLabels.DIGITS
    multi_select: bool = False
    """Whether more than one choice may be selected."""
    answerable: bool = True
    """False if the right answer is that the conversation does not say."""
    instruction: str = ""
    """Instruction of the data set's task, separate from the question.

    The reader sees it below the question. The search does not use it.
    """
    facets: Mapping[str, str] = field(default_factory=dict)
    """Further groups of the question, by facet: `{"ability": "TR"}`.

    Each is reported like a category.
    """
    whole_answer: bool = False
    """Whether it asks for a recommendation or a summary instead of a fact in a few words."""
    weight: float = 1.0
    """Number of questions of its category that it represents in a sample."""
    asked_after: str | None = None
    """Id of the session after which it is asked; None: after all of them."""
    traces: Traces | None = None
    """Values for judging by code, in data sets that do so."""

    @property
    def answer_form(self) -> AnswerForm:
        """Form of answer that it asks for: determines the reader's prompt; systems don't see it."""
        if self.whole_answer:
            return AnswerForm.WHOLE

        return AnswerForm.FORM if self.instruction else AnswerForm.SHORT


class Scope(StrEnum):
    """How much a request to forget covers."""

    FACT = "fact"
    SUBJECT = "subject"
    """Everything known about a person or thing."""
    USER = "user"
    """Everything that the user ever said."""


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A user's request to forget something."""

    words: str
    """The request as the user says it."""
    about: str
    """The words that name the fact or subject, with spaces between them: `Mara Velten address`.
    Empty for everything that the user ever said.
    """
    scope: Scope = Scope.FACT
    user: str = ""
    """The user who asks, if users share a store; otherwise empty."""


@dataclass(frozen=True, slots=True)
class OracleForgetRequest(ForgetRequest):
    """A request to forget with its values, for the `oracle` control only."""

    values: tuple[str, ...] = ()
    """The values to be forgotten."""


@dataclass(frozen=True, slots=True)
class CorrectRequest:
    """A user's correction of a fact."""

    words: str
    """The correction as the user says it."""
    old: str
    new: str
    user: str = ""
    """The user who asks, if users share a store; otherwise empty."""


class OperationKind(StrEnum):
    """Kinds of operations on a memory other than the ingest of a session."""

    FORGET = "forget"
    CORRECT = "correct"
    CONSOLIDATE = "consolidate"
    REINGEST = "reingest"


@dataclass(frozen=True, slots=True)
class EvalOperation:
    """An operation on the memory between two sessions."""

    kind: OperationKind
    after: str
    """Id of the session after which it is done, before the questions asked at that point."""
    forget: ForgetRequest | None = None
    correct: CorrectRequest | None = None
    session_id: str | None = None
    """The session that is ingested again."""
    values: tuple[str, ...] = ()
    """The values to be forgotten, for the oracle."""


@dataclass(frozen=True, slots=True)
class EvalCase:
    """One conversation history (haystack) and the questions about it."""

    case_id: str
    sessions: tuple[Session, ...]
    questions: tuple[EvalQuestion, ...]
    speakers: tuple[str, ...] = ()
    """The data set's own order of speakers (LoCoMo: speaker_a, speaker_b); empty without one."""
    operations: tuple[EvalOperation, ...] = ()
    """Operations between sessions; those after the same session are done in this order."""
    checkpoints: tuple[str, ...] = ()
    """Ids of the sessions after which questions may be asked, in order. The memory is consolidated
    at each, even if no question is asked there. Empty if all questions are asked at the end.
    """
    others: tuple[Session, ...] = ()
    """Sessions of another user, who shares the memory's store under `system.tenants=shared`."""
    has_timeline: bool = field(init=False, repr=False, compare=False)
    """Whether it has operations, checkpoints, or questions that are asked before its end."""

    def __post_init__(self) -> None:
        # Found once: it is needed for each question, and a case may have many of them.
        early = any(question.asked_after is not None for question in self.questions)
        timeline = early or bool(self.operations or self.checkpoints)
        object.__setattr__(self, "has_timeline", timeline)

    @property
    def stops(self) -> frozenset[str]:
        """Ids of the sessions after which the memory is queried or changed."""
        return frozenset([*self.checkpoints, *(operation.after for operation in self.operations)])

    @property
    def turns(self) -> Iterator[Turn]:
        """The turns of all sessions, in order."""
        return chain.from_iterable(session.turns for session in self.sessions)

    @property
    def turn_ids(self) -> frozenset[str]:
        return frozenset(turn.turn_id for turn in self.turns)


@dataclass(frozen=True, slots=True)
class MemoryChunk:
    """A piece of the conversation, as a system ingests it."""

    chunk_id: str
    content: str
    """Text of the turns, one line `speaker: text` per turn, without a date."""
    time: datetime | None
    session_id: str
    turn_ids: tuple[str, ...]
    speakers: tuple[str, ...]
    user: str = ""
    """The user it belongs to, if users share a store; otherwise empty."""

    @property
    def text(self) -> str:
        """Text that every system shows its reader: the date, if known, and the content."""
        if not self.time:
            return self.content

        return f"[{format_time(self.time)}] {self.content}"

    def indexed(self, *, date: bool = False) -> str:
        """The text to index the chunk by."""
        # Without the date, a repeated sentence always has the same vector.
        return self.text if date else self.content


@dataclass(frozen=True, slots=True)
class Query:
    """Fields of a question that a system may see."""

    text: str
    asked_at: datetime | None = None
    choices: tuple[str, ...] = ()
    choice_labels: ChoiceLabels = ChoiceLabels.DIGITS
    multi_select: bool = False
    """Whether more than one choice may be selected."""
    instruction: str = ""
    """Instruction of the task, separate from the question; for the reader, not for the search."""
    user: str = ""
    """The user who asks, if users share a store; otherwise empty."""

    @property
    def shown(self) -> str:
        """The question with its instruction and its choices, for a system's own prompts."""
        lines = [self.text]
        if self.instruction:
            lines.append(self.instruction)

        return "\n".join([*lines, *labelled(self.choices, self.choice_labels)])


@dataclass(frozen=True, slots=True)
class OracleQuery(Query):
    """Query that only the `oracle` control sees: the question with its evidence."""

    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One chunk that a system found for a query."""

    text: str
    """As shown to the reader, date included."""
    turn_ids: tuple[str, ...]
    """Turns that the chunk covers; empty if the system can't say."""
    score: Finite | None = None
    """Higher is better; comparable only within one query."""
    time: datetime | None = None
    """When it was said; None if the system can't say."""


class Role(StrEnum):
    """Purpose of a model call."""

    INGEST = "ingest"
    ANSWER = "answer"
    JUDGE = "judge"
    EMBED = "embed"
    DRAFT = "draft"

    @property
    def models_note(self) -> str:
        """Name of the note on the models that replies named, if one is not the requested model."""
        return f"{self}_models_named"


RequestTokens = tuple[str, Count, Count, Count]
"""Digest of a request, or of a text in it, and its tokens: sent, received, and sent tokens that the
provider read from its prompt cache.
"""


class Usage(Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens used by one or more calls with the same role and model.

    `None` means that the provider did not say, which is not zero.
    """

    role: Role
    model: str
    provider: str
    """Name of the provider as the price table knows it, or `offline`."""
    prompt_tokens: Count | None = None
    """Tokens sent, including those read from the provider's own prompt cache."""
    completion_tokens: Count | None = None
    cached_tokens: Count = 0
    """The part of `prompt_tokens` that the provider read from its prompt cache."""
    calls: Count = 1
    estimated: bool = False
    """True if the endpoint reported no usage and the tokens were counted here."""
    cached: bool = False
    """True if the reply came from memeval's response cache: nothing was billed."""
    requests: tuple[RequestTokens, ...] | UnsetType = UNSET
    """Requests that other rows of the run may share; each is billed once."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a system to a query."""

    text: str
    """The final answer, which the judge sees."""
    retrieved: tuple[Retrieved, ...] | None = None
    """The chunks that the reader was shown, best first.

    At most `top_k` chunks, plus those of a compression window. None if the system can't show it.
    """
    ranking: tuple[tuple[str, ...], ...] | None = None
    """Turn ids of each chunk, best first, as deep as the system ranks them.

    Retrieval metrics are computed from it. None if the system exposes no ranking.
    """
    raw: str | None = None
    """The reader's whole reply if it contains more than the final answer (chain of thought)."""
    context_tokens: int | None = None
    """Tokens of the context that the reader saw, counted offline."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Remarks for reports, such as a context that was cut, or a part that was switched off."""


@dataclass(frozen=True, slots=True)
class IngestHealth:
    """How many of a memory's chunks were stored and lost."""

    asked: Count
    """Chunks that were ingested."""
    stored: Count
    """Chunks that were stored completely, including those with nothing worth keeping."""
    lost: Count
    """Chunks that were lost at least in part.

    A call failed, a reply could not be read, or a vector was never computed.
    """

    @property
    def lost_share(self) -> float:
        """`lost` as a share of `asked`; 0 if nothing was ingested."""
        return self.lost / self.asked if self.asked else 0.0

    @property
    def summary(self) -> str:
        """As text: `ingest lost 3 of 419 chunks (0.7 %)`."""
        share = f"{100 * self.lost_share:.1f} %"
        return f"ingest lost {self.lost:,} of {self.asked:,} chunks ({share})"


class Label(StrEnum):
    """Outcome of one judgement."""

    CORRECT = "correct"
    WRONG = "wrong"
    ABSTAINED = "abstained"
    """Refused an answerable question: neither right nor a wrong answer."""
    UNSCORED = "unscored"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge's result for one answer."""

    judge: str
    label: Label
    score: Finite | None = None
    """In [0, 1]; None if unscored."""
    reason: str = ""
    chosen: tuple[Count, ...] | None = None
    """Positions of the choices that the reply selects. None if the reply could not be read, and for
    free-text answers.
    """
    votes: tuple[Label, ...] = ()
    """The label of each judgement, if the answer was judged several times."""
    tries: Count = 0
    """Number of unreadable replies of the model. If the verdict is unscored, the next pass requests
    further replies.
    """
    graded: bool = False
    """True if `accuracy` is the mean of `score`, not the share of labels that are correct."""
    parts: Mapping[str, tuple[Finite, ...]] = field(default_factory=dict)
    """The judge's findings by part, from which the data set's own metrics are computed."""

    def __post_init__(self) -> None:
        # A judge of one's own may give plain texts or a number of numpy, which can't be stored.
        object.__setattr__(self, "label", Label(self.label))
        object.__setattr__(self, "votes", tuple(map(Label, self.votes)))
        if self.score is not None:
            # Weights of a rubric may sum to 1.0000000000000002.
            given = float(self.score)
            score = min(max(given, 0.0), 1.0)
            if not isclose(score, given, abs_tol=1e-9):
                raise ValueError(f"a score must be in [0, 1], but is {given}")

            object.__setattr__(self, "score", score)
        elif self.graded and self.label is not Label.UNSCORED:
            raise ValueError("a graded verdict needs a score")

    @property
    def credit(self) -> float | None:
        """The answer's contribution to the accuracy: 1.0 if right, 0.0 if wrong or abstained, the
        score of a graded verdict; None if unscored.
        """
        if self.label is Label.UNSCORED:
            return None
        if self.graded:
            return self.score

        # By the label, not by the score: a score of 0.7 is not seven tenths of a right answer
        # unless the protocol says so, which `graded` does.
        return float(self.label is Label.CORRECT)


class Status(StrEnum):
    """Outcome of a question. Only `ok` has a score."""

    OK = "ok"
    INGEST_FAILED = "ingest_failed"
    ANSWER_FAILED = "answer_failed"
    ANSWER_CUT = "answer_cut"
    """The model's reply was cut at its token limit.

    It does not contain the whole answer, and is not judged.
    """
    ANSWER_FILTERED = "answer_filtered"
    """The provider's filter withheld the reply, or a part of it."""
    JUDGE_FAILED = "judge_failed"
    UNPARSED = "unparsed"
    RETRIEVED = "retrieved"
    """Under `stages=retrieve`: no answer was requested, and nothing failed."""

    @property
    def is_complete(self) -> bool:
        """Whether no requested stage failed."""
        return self in (Status.OK, Status.RETRIEVED)


def format_time(time: datetime) -> str:
    """A time as systems, prompts and reports show it: `1:56 pm on 8 May 2023`.

    It is in English, regardless of the locale.
    """
    # Not strftime: it writes months in the language of the locale, and pads hours.
    hour = time.hour % 12 or 12
    half = "am" if time.hour < 12 else "pm"
    month = MONTHS[time.month - 1]
    return f"{hour}:{time.minute:02d} {half} on {time.day} {month} {time.year}"
