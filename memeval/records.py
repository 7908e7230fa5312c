"""The vocabulary of memeval as frozen records: what a data set holds, what a system sees, what a run stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

CategoryId = int | str
"""A question's category as the data set stores it; names are derived when a report is made."""


class ChoiceLabels(StrEnum):
    """How choices are labelled: 0, 1, 2 … or A, B, C …"""

    DIGITS = "digits"
    LETTERS = "letters"

    def label(self, position: int) -> str:
        """The label of the choice at a position from 0."""
        return str(position) if self is ChoiceLabels.DIGITS else chr(ord("A") + position)


def labelled(choices: Sequence[str], labels: ChoiceLabels) -> list[str]:
    """Choices as prompts show them, `0. text` or `A. text`, a line each."""
    return [f"{labels.label(position)}. {choice}" for position, choice in enumerate(choices)]


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance."""

    turn_id: str
    """Unique within its case, and free of anything that tells whether it is evidence."""
    speaker: str
    text: str
    time: datetime | None
    """When it was said; the session's start where the data set dates sessions only."""
    caption: str | None = None
    """Caption of an image that came with the turn, where the data set has one and the run shows it."""


@dataclass(frozen=True, slots=True)
class Session:
    """An ordered list of turns with a start time."""

    session_id: str
    started_at: datetime | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """A question and its gold side. Systems never get this; they get a `Query`."""

    question_id: str
    text: str
    category: CategoryId
    gold: tuple[str, ...]
    """Accepted answers; empty where the right answer is a refusal."""
    evidence: tuple[str, ...] = ()
    """Ids of the turns that hold the answer, repaired and unique; empty where the data set names none."""
    asked_at: datetime | None = None
    choices: tuple[str, ...] = ()
    """What there is to choose from, in the order in which it is shown; empty where the answer is given in words."""
    right_choices: tuple[int, ...] = ()
    """Positions of the right ones, from 0, ascending."""
    choice_labels: ChoiceLabels = ChoiceLabels.DIGITS
    multi_select: bool = False
    """Whether more than one may be chosen."""
    answerable: bool = True
    """False where the right behaviour is to say that the conversation does not tell."""
    instruction: str = ""
    """What the data set's task asks for beside the question, shown to the reader below it; nothing is searched for by it."""
    facets: Mapping[str, str] = field(default_factory=dict)
    """Further groups that the question counts in, by facet: `{"ability": "TR"}`; each is reported like a category."""


@dataclass(frozen=True, slots=True)
class EvalCase:
    """One haystack and the questions asked about it."""

    case_id: str
    sessions: tuple[Session, ...]
    questions: tuple[EvalQuestion, ...]
    speakers: tuple[str, ...] = ()
    """The data set's own order of speakers (LoCoMo: speaker_a, speaker_b); empty where it has none."""


@dataclass(frozen=True, slots=True)
class MemoryChunk:
    """The unit that is ingested."""

    chunk_id: str
    content: str
    """What was said, one `speaker: text` line a turn, without a date."""
    time: datetime | None
    session_id: str
    turn_ids: tuple[str, ...]
    speakers: tuple[str, ...]

    @property
    def text(self) -> str:
        """What every system shows its reader: the date, where there is one, before the content."""
        return f"[{format_time(self.time)}] {self.content}" if self.time else self.content

    def indexed(self, *, date: bool = False) -> str:
        """What it is searched by. Without the date, what is said twice is embedded once, whenever and in whichever case it was said."""
        return self.text if date else self.content


@dataclass(frozen=True, slots=True)
class Query:
    """What a system may see of a question."""

    text: str
    asked_at: datetime | None = None
    choices: tuple[str, ...] = ()
    choice_labels: ChoiceLabels = ChoiceLabels.DIGITS
    multi_select: bool = False
    """Whether more than one may be chosen."""
    instruction: str = ""
    """What the task asks for beside the question; for the reader, not for the search."""

    @property
    def shown(self) -> str:
        """The question with its instruction and its choices, for a system that puts it into words of its own."""
        return "\n".join(
            [
                self.text,
                *filter(None, [self.instruction]),
                *labelled(self.choices, self.choice_labels),
            ]
        )


@dataclass(frozen=True, slots=True)
class OracleQuery(Query):
    """What the `oracle` control sees, and no other system: the question with its evidence."""

    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One unit that a system found for a query."""

    text: str
    """As shown to the reader, date included."""
    turn_ids: tuple[str, ...]
    """Turns that the unit covers; empty where the system can't tell."""
    score: float | None = None
    """Higher is better; comparable within one query only."""
    time: datetime | None = None
    """When it was said; None where the system can't tell."""


class Role(StrEnum):
    """What a model call was for."""

    INGEST = "ingest"
    ANSWER = "answer"
    JUDGE = "judge"
    EMBED = "embed"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one or more calls of one role and model moved. `None` means that nobody said, which is not zero."""

    role: Role
    model: str
    provider: str
    """Name of the provider as the price table knows it, or `offline`."""
    prompt_tokens: int | None
    """Tokens sent, those read from the provider's own prompt cache included."""
    completion_tokens: int | None
    cached_tokens: int = 0
    """The part of `prompt_tokens` that the provider read from its prompt cache."""
    calls: int = 1
    estimated: bool = False
    """True where the endpoint reported no usage and the tokens were counted here."""
    cached: bool = False
    """True where the reply came from our response cache: nothing was billed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system returned for a query."""

    text: str
    """The final answer: what the judge sees."""
    retrieved: tuple[Retrieved, ...] | None = None
    """What was put before the reader, best first, at most top_k units (a compression window aside); None where the system can't show it."""
    ranking: tuple[tuple[str, ...], ...] | None = None
    """Turn ids of each unit, in the order in which the system ranks them and as deep as it can tell, for retrieval metrics; None where it
    exposes no ranking."""
    raw: str | None = None
    """The reader's whole reply where it is more than the final answer (chain of thought)."""
    context_tokens: int | None = None
    """Tokens of the context that the reader saw, counted offline."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Anything a report should show: a context that was cut, a part that was off."""


@dataclass(frozen=True, slots=True)
class IngestHealth:
    """What became of the units that a memory was given."""

    asked: int
    """Units that went in."""
    stored: int
    """Units of which all went well, whether or not there was anything in them to keep."""
    lost: int
    """Units of which something was lost: a call that failed, a reply that could not be read, a vector that was never made."""

    @property
    def lost_share(self) -> float:
        """`lost` as a share of `asked`; 0 where nothing went in."""
        return self.lost / self.asked if self.asked else 0.0

    @property
    def told(self) -> str:
        """In words: `ingest lost 3 of 419 units (0.7 %)`."""
        return f"ingest lost {self.lost:,} of {self.asked:,} units ({self.lost_share:.1%})".replace(
            "%", " %"
        )


class Label(StrEnum):
    """Outcome of one judgement."""

    CORRECT = "correct"
    WRONG = "wrong"
    ABSTAINED = "abstained"
    """Answered with a refusal where an answer was due: not right, and not a wrong answer either."""
    UNSCORED = "unscored"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judge's result for one answer."""

    judge: str
    label: Label
    score: float | None
    """In [0, 1]; None where unscored."""
    reason: str = ""
    chosen: tuple[int, ...] | None = None
    """Positions that a reply to a question with choices was read as; None where it could not be read, and for answers in words."""
    votes: tuple[Label, ...] = ()
    """What each judging came to where the answer was judged several times."""
    tries: int = 0
    """Replies of a model that could not be read; where the verdict is unscored, the next pass asks
    beyond them.
    """


class Status(StrEnum):
    """How far a question got. Only `ok` carries a score."""

    OK = "ok"
    INGEST_FAILED = "ingest_failed"
    ANSWER_FAILED = "answer_failed"
    ANSWER_CUT = "answer_cut"
    """The model's reply was cut at its limit of tokens: what it holds is not the whole answer, and is not judged."""
    ANSWER_FILTERED = "answer_filtered"
    """The provider's filter withheld the reply, or a part of it."""
    JUDGE_FAILED = "judge_failed"
    UNPARSED = "unparsed"


def format_time(time: datetime) -> str:
    """A time as systems, prompts and reports show it: `1:56 pm on 8 May 2023`, in English whatever the locale."""
    months = "January February March April May June July August September October November December".split()
    half = "am" if time.hour < 12 else "pm"
    return f"{time.hour % 12 or 12}:{time.minute:02d} {half} on {time.day} {months[time.month - 1]} {time.year}"
