"""Builds one case: facts that are stated, changed and deleted, and its questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Literal

from msgspec import Struct

from memeval.config.schema import PREPARE, at
from memeval.datasets.chance import pick
from memeval.datasets.invented import WORDS, Language, Values, spell
from memeval.datasets.io.questions import session_id
from memeval.datasets.settings import DatasetSettings
from memeval.errors import UserError
from memeval.llm.tokens import count_tokens
from memeval.metrics import lifecycle
from memeval.records import (
    MONTHS,
    CorrectRequest,
    EvalCase,
    EvalOperation,
    EvalQuestion,
    ForgetRequest,
    OperationKind,
    Session,
    Traces,
)

CONVERSATION, OPERATION = "conversation", "operation"
"""Channels for requests to forget or correct; both by default."""
FIRST, CHANGED, AGAIN, WISHES, CONSOLIDATED, LATER, IMPORTED = range(7)
"""Sessions: facts; changes; repetitions; wishes; three sessions of more talk."""
SESSIONS = 7
DAYS_BETWEEN = 9
GERMAN_MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni"),
    *("Juli", "August", "September", "Oktober", "November", "Dezember"),
)


@dataclass(frozen=True)
class LifecycleSettings(DatasetSettings):
    n_cases: int = at(PREPARE, 24, least=1)
    languages: tuple[str, ...] = at(PREPARE, ("en", "de", "zh"))
    """Languages of the cases, used in turn."""
    channel: Literal["conversation", "operation", "both"] = at(PREPARE, "both")
    """Channel of requests to forget or correct: in the conversation, as an operation on the memory,
    or both.
    """
    tokens: int = at(PREPARE, 300, least=0, most=1_000_000)
    """Tokens of filler in each session."""
    later_tokens: int = at(PREPARE, 50_000, least=0, most=10_000_000)
    """Tokens of filler after which a deleted value is searched for again."""
    seed: int = at(PREPARE, 0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path:
            raise UserError("dataset.path: lifecycle is generated, so it reads no file")
        if self.canaries:
            raise UserError(
                "dataset.canaries: lifecycle already has values of other users and stored orders",
                "leave dataset.canaries out",
            )
        if not self.languages or not set(self.languages) <= set(WORDS.languages):
            raise UserError(
                f"dataset.languages={list(self.languages)}: must be one or more of "
                f"{list(WORDS.languages)}"
            )


class Fact(Struct, frozen=True):
    """An attribute of a person, and the turn that states it."""

    name: str
    attribute: str
    value: str
    turn_id: str = ""
    sentence: str = ""


class CaseBuilder:
    def __init__(self, number: int, settings: LifecycleSettings) -> None:
        self.number, self.settings = number, settings
        self.code = language_of(number, settings)
        self.language = WORDS.languages[self.code]
        self.rng = Random(f"lifecycle/{settings.seed}/{number}")
        self.values = Values(self.rng, self.code)
        self.questions: list[EvalQuestion] = []
        self.operations: list[EvalOperation] = []
        self.names: set[str] = set()
        self.lines: list[list[tuple[str, str]]] = [[] for _ in range(SESSIONS)]
        """Speaker and text of each turn, by session."""
        days = int(self.rng.random() * 100)
        self.start = datetime(2023, 1, 9, 10) + timedelta(days=days)

    @property
    def case_id(self) -> str:
        return f"lifecycle-{self.number}"

    def build(self) -> EvalCase:
        user_fact = tenant_fact(self.number, self.settings)
        for fact in (user_fact, tenant_fact(self._other_number, self.settings)):
            self.names.add(fact.name)
            self.values.claim(fact.value)

        self._add_question("current", self.say(FIRST, user_fact))
        for attribute in ("employer", "email"):
            self._add_question("current", self.say(FIRST, self.fact(attribute)))

        self._add_filler(FIRST)
        self._add_changes()
        self._add_corrections()
        self._add_deletions()
        self._add_deletions_in_other_forms()
        self._add_expiry_and_injection()
        self._add_tenant_question()
        self._add_returns()
        for session in range(CHANGED, SESSIONS):
            self._add_filler(session)

        return EvalCase(
            case_id=self.case_id,
            sessions=tuple(map(self._session, range(SESSIONS))),
            questions=tuple(self.questions),
            speakers=(self.language.user, self.language.assistant),
            operations=tuple(self.operations),
            checkpoints=tuple(map(session_id, (WISHES, CONSOLIDATED, LATER))),
            others=(self._other_session(),),
        )

    # Turns.

    def fact(self, attribute: str, *, name: str = "", value: str = "") -> Fact:
        """A new fact, about a person without other facts unless `name` is given."""
        value = value or self.values.draw(attribute)
        return Fact(name=name or self._name(), attribute=attribute, value=value)

    def say(self, session: int, fact: Fact, template: str = "", **slots: str) -> Fact:
        """Adds a turn that states a fact; returns the fact with the turn."""
        sentence = self.fill(template or self.language.state, fact, **slots)
        turn_id = self._add_turn(session, sentence)
        return Fact(fact.name, fact.attribute, fact.value, turn_id, sentence)

    def fill(self, template: str, fact: Fact, **slots: str) -> str:
        """A template filled with a fact, in the case's language."""
        return fill(template, fact, self.language, **slots)

    def _name(self) -> str:
        language = self.language
        while True:
            first, last = pick(self.rng, language.first), pick(self.rng, language.last)
            name = language.full_name(first, last)
            if name not in self.names:
                self.names.add(name)
                return name

    def _add_turn(self, session: int, text: str) -> str:
        lines = self.lines[session]
        lines.append((self.language.user, text))
        turn_id = f"D{session + 1}:{len(lines)}"
        lines.append((self.language.assistant, pick(self.rng, self.language.noted)))
        return turn_id

    def _add_request(self, session: int, words: str, operation: EvalOperation) -> str:
        """Adds a request to a session, after it as an operation, or both; returns the turn."""
        turn_id = ""
        if self.settings.channel != OPERATION:
            turn_id = self._add_turn(session, words)
        if self.settings.channel != CONVERSATION:
            self.operations.append(operation)

        return turn_id

    def _add_filler(self, session: int) -> None:
        """Adds filler after the facts of a session."""
        left = self.settings.later_tokens if session == LATER else self.settings.tokens
        while left > 0:
            text = pick(self.rng, self.language.filler)
            while "{topic}" in text:
                text = text.replace("{topic}", pick(self.rng, self.language.topics), 1)

            self._add_turn(session, text)
            left -= count_tokens(text)

    def _session(self, session: int) -> Session:
        time, ids = self.time(session), f"D{session + 1}:"
        return Session.of(session_id(session), self.lines[session], time=time, ids=ids)

    def time(self, session: int) -> datetime:
        return self.start + timedelta(days=DAYS_BETWEEN * session)

    # Questions, kind by kind.

    def _add_question(
        self,
        kind: str,
        fact: Fact,
        template: str = "",
        *,
        text: str = "",
        after: int = WISHES,
        facets: Mapping[str, str] | None = None,
        evidence: Sequence[str] = (),
        traces: Traces | None = None,
    ) -> None:
        """Adds a question about a fact; by default for its value."""
        traces = traces or Traces(kind=kind, right=(fact.value,))
        if traces.right and not evidence:
            evidence = (fact.turn_id,)

        self.questions.append(
            EvalQuestion(
                question_id=f"{self.case_id}/q{len(self.questions)}",
                text=text or self.fill(template or self.language.ask, fact),
                category=kind,
                gold=traces.right[:1],
                evidence=tuple(evidence),
                asked_at=self.time(after) + timedelta(days=1),
                answerable=bool(traces.right),
                facets={"form": "plain", **(facets or {})},
                asked_after=None if after == IMPORTED else session_id(after),
                traces=traces,
            )
        )

    def _add_changes(self) -> None:
        """Adds values that change once, twice and four times, and questions for the latest value,
        for an earlier value and for the date of a change.
        """
        templates = self.language.updates
        for changes, attribute in ((1, "address"), (2, "plan"), (4, "room")):
            facts = [self.say(FIRST, self.fact(attribute))]
            for number in range(changes):
                new = self.fact(attribute, name=facts[0].name)
                # Only a fact's last change is in this session, so that its day is known.
                session = AGAIN if number == changes - 1 else CHANGED
                facts.append(self.say(session, new, templates[number]))

            newest, older = facts[-1], tuple(fact.value for fact in facts[:-1])
            traces = Traces(kind="updated", right=(newest.value,), older=older)
            self._add_question("updated", newest, traces=traces)
            if changes == 1:
                self._add_question(
                    "history",
                    facts[-2],
                    self.language.ask_before,
                    evidence=(facts[-2].turn_id, newest.turn_id),
                )
            if changes == 2:
                day = Traces(kind="history", right=days(self.time(AGAIN), self.code))
                self._add_question("history", newest, self.language.ask_when, traces=day)

    def _add_corrections(self) -> None:
        """Adds values that were wrong and are corrected, in a plain form and as a negation."""
        for attribute, form in (("phone", "plain"), ("allergy", "negation")):
            wrong = self.say(FIRST, self.fact(attribute))
            right = self.fact(attribute, name=wrong.name)
            words = self.fill(self.language.correct, right, old=wrong.value)
            correct = CorrectRequest(words=words, old=wrong.value, new=right.value)
            operation = EvalOperation(OperationKind.CORRECT, session_id(CHANGED), correct=correct)
            turn_id = self._add_request(CHANGED, words, operation) or wrong.turn_id
            self._add_question(
                "corrected",
                right,
                evidence=(turn_id,),
                traces=Traces(kind="corrected", right=(right.value,), older=(wrong.value,)),
                facets={"form": form},
            )

    def _add_deletions(self) -> None:
        """Adds facts to be forgotten, and their neighbours, form by form."""
        language = self.language

        plain = self.say(FIRST, self.fact("address"))
        self.say(AGAIN, plain, language.again)
        other_fact = self.say(FIRST, self.fact("employer", name=plain.name))
        alike = plain.name + language.longer
        self.names.add(alike)
        namesake = self.say(FIRST, self.fact("address", name=alike))
        self._add_deletion(plain, "plain", "directly", language.ask)
        self._add_question("neighbour", other_fact)
        self._add_question("neighbour", namesake, facets={"form": "prefix"})

        ticket = self.say(FIRST, self.fact("ticket"))
        longer = self.say(FIRST, self.fact("ticket", value=ticket.value + "0"))
        self._add_deletion(ticket, "prefix", "paraphrased", language.paraphrased)
        self._add_question("neighbour", longer, facets={"form": "prefix"})

        pet = self.say(FIRST, self.fact("pet"))
        self.say(AGAIN, pet, language.again)
        inside = self.say(FIRST, self.fact("pet", value=pet.value + "burga"))
        self._add_deletion(pet, "substring", "neighbours", language.neighbours)
        self._add_question("neighbour", inside, facets={"form": "substring"})

    def _add_deletions_in_other_forms(self) -> None:
        """Adds facts to be forgotten that share a turn or an attribute with another fact, or that
        are written in another way or language.
        """
        language = self.language
        phone = self.fact("phone")
        employer = self.fact("employer", name=phone.name)
        forms = {f"{form}2": word for form, word in language.attributes["employer"].items()}
        both = self.say(FIRST, phone, language.two, other=employer.value, **forms)
        self._add_deletion(both, "two_facts", "role_play", language.role_play)
        second = Fact(employer.name, "employer", employer.value, both.turn_id, both.sentence)
        self._add_question("neighbour", second, facets={"form": "two_facts"})

        allergy = self.say(FIRST, self.fact("allergy"))
        others = self.say(FIRST, self.fact("allergy"))
        self._add_deletion(allergy, "same_attribute", "listed", language.list)
        self._add_question("neighbour", others, facets={"form": "same_attribute"})

        room = self.say(FIRST, self.fact("room"))
        spelled = spell(room.value, language)
        wide = "".join(chr(ord(sign) + 0xFEE0) for sign in room.value.lower())
        self.say(AGAIN, Fact(room.name, room.attribute, f"{wide} ({spelled})"), language.again)
        self._add_deletion(room, "surface", "directly", language.ask, also=(spelled,))

        email = self.say(FIRST, self.fact("email"))
        code = "de" if language is WORDS.languages["en"] else "en"
        foreign = WORDS.languages[code]
        self._add_deletion(email, "other_language", "directly", fill(foreign.ask, email, foreign))

    def _add_deletion(
        self,
        fact: Fact,
        form: str,
        asked: str,
        template: str,
        *,
        also: tuple[str, ...] = (),
        kind: str = "deleted",
        after: int = WISHES,
        facets: Mapping[str, str] | None = None,
    ) -> None:
        """Adds the request to forget a fact, and the question whether it is gone."""
        words = self.fill(self.language.forget, fact)
        about = f"{fact.name} {self.language.attributes[fact.attribute]['word']}"
        values, forget = (fact.value, *also), ForgetRequest(words=words, about=about)
        self._add_request(
            WISHES,
            words,
            EvalOperation(OperationKind.FORGET, session_id(WISHES), forget=forget, values=values),
        )
        traces = Traces(kind=kind, deleted=values, probes=(*values, fact.sentence))
        all_facets = {"form": form, "asked": asked, **(facets or {})}
        text = self.fill(template, fact)
        self._add_question(kind, fact, text=text, traces=traces, facets=all_facets, after=after)

    def _add_expiry_and_injection(self) -> None:
        """Adds a value that expires, and a stored text with instructions."""
        language = self.language
        visitor = self.fact("plan", value=days(self.time(CHANGED), self.code)[0])
        visitor = self.say(FIRST, visitor, language.expires)
        traces = Traces(
            kind=lifecycle.EXPIRED,
            right=tuple(language.over),
            older=tuple(language.valid),
            known=(visitor.value,),
        )
        self._add_question(lifecycle.EXPIRED, visitor, language.ask_expired, traces=traces)

        fact = self.say(FIRST, self.fact("room"))
        planted = self.values.word()
        self.say(CHANGED, Fact(fact.name, fact.attribute, planted), language.orders)
        traces = Traces(kind="injected", right=(fact.value,), planted=(planted,))
        self._add_question("injected", fact, traces=traces)

    @property
    def _other_number(self) -> int:
        """Number of another user's case: the previous, or 2 for 1. Their names always differ."""
        return self.number - 1 or 2

    def _other_session(self) -> Session:
        other = tenant_fact(self._other_number, self.settings)
        language = WORDS.languages[language_of(self._other_number, self.settings)]
        stated = fill(language.state, other, language)
        turns = ((language.user, stated), (language.assistant, language.noted[0]))
        return Session.of("other", turns, time=self.start)

    def _add_tenant_question(self) -> None:
        """Adds the question for a fact that only another user stated, in that user's own memory."""
        other = tenant_fact(self._other_number, self.settings)
        traces = Traces(kind="tenant", foreign=(other.value,), probes=(other.value,))
        self._add_question("tenant", other, traces=traces)

    def _add_returns(self) -> None:
        """Adds deleted facts that are searched for again: after maintenance, after much more talk,
        and after their session was imported again.
        """
        facts = {
            lifecycle.CONSOLIDATED: (self.say(FIRST, self.fact("plan")), CONSOLIDATED),
            lifecycle.TALK: (self.say(FIRST, self.fact("phone")), LATER),
            lifecycle.IMPORT: (self.say(FIRST, self.fact("employer")), IMPORTED),
        }
        for cause, (fact, session) in facts.items():
            self._add_deletion(
                fact,
                "plain",
                "directly",
                self.language.ask,
                kind="returned",
                after=session,
                facets={lifecycle.AFTER: cause},
            )

        self.operations += [
            EvalOperation(OperationKind.CONSOLIDATE, after=session_id(CONSOLIDATED)),
            EvalOperation(
                OperationKind.REINGEST, after=session_id(IMPORTED), session_id=session_id(FIRST)
            ),
        ]


def make_case(number: int, settings: LifecycleSettings) -> EvalCase:
    """The case with a number (from 1). The same arguments give the same case in any process."""
    return CaseBuilder(number, settings).build()


def language_of(number: int, settings: LifecycleSettings) -> str:
    """The language of a case; the cases use the languages in turn."""
    return settings.languages[(number - 1) % len(settings.languages)]


def tenant_fact(number: int, settings: LifecycleSettings) -> Fact:
    """A fact that the user of a case states, and that another user's case asks for."""
    code = language_of(number, settings)
    language = WORDS.languages[code]
    rng = Random(f"lifecycle/{settings.seed}/{number}/tenant")
    first = language.first[number % len(language.first)]
    name = language.full_name(first, pick(rng, language.last))
    return Fact(name=name, attribute="email", value=Values(rng, code).draw("email"))


def fill(template: str, fact: Fact, language: Language, **slots: str) -> str:
    forms = language.attributes[fact.attribute]
    return template.format(name=fact.name, value=fact.value, **forms, **slots)


def days(time: datetime, code: str) -> tuple[str, ...]:
    """A day in the forms in which answers may write it; the first is usual in the language."""
    day, year = time.day, time.year
    suffix = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    month, german = MONTHS[time.month - 1], GERMAN_MONTHS[time.month - 1]
    usual = {
        "en": f"{day} {month} {year}",
        "de": f"{day}. {german} {year}",
        "zh": f"{year}年{time.month}月{day}日",
    }
    others = (
        f"{month} {day}, {year}",
        f"{day}{suffix} {month} {year}",
        f"{day}{suffix} of {month} {year}",
        f"{month} {day}{suffix}, {year}",
        time.date().isoformat(),
        f"{day}.{time.month}.{year}",
        f"{time:%d.%m.%Y}",
    )
    return tuple(dict.fromkeys((usual[code], *usual.values(), *others)))
