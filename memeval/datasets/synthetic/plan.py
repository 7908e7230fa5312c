"""What is planted into a synthetic haystack: facts, updates, contradictions, and the questions
whose golds they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from memeval.datasets.synthetic import words

IE, MR, TR, KU, CR, ABS = ABILITIES = ("IE", "MR", "TR", "KU", "CR", "ABS")
ANSWERED = ABILITIES[:5]
ASKING = {words.PERSON: "Who", words.PLACE: "Where"}
Key = tuple[str, str, str]
"""Of what a fact tells: its kind, whom it is about, and what of them."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One turn that tells something."""

    depth: float
    """Where in the haystack it is due, as a share of the tokens, in [0, 1)."""
    speaker: int
    """0 or 1."""
    text: str
    days_ago: int = 0
    """How long before the session the thing happened."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A question with the statements that it rests on, in the order in which they are made."""

    ability: str
    question: str
    gold: tuple[str, ...] = ()
    """Empty for a refusal, and where dates decide."""
    statements: tuple[Statement, ...] = ()
    evidence: tuple[int, ...] = ()
    """Which statements hold the answer."""
    rivals: tuple[tuple[str, ...], ...] = ()
    """The golds of either answer to a question which of two statements tells of the earlier day."""
    else_asked: str = ""
    """The question when the last thing happened, taken where both happened on one day."""


@dataclass
class Planner:
    """Makes the plants of one case. Nothing is said twice, and only plants say what is asked."""

    rng: Random
    speakers: tuple[str, str]
    people: tuple[str, ...]
    number: int
    """The case's: what kind of an ability a depth has is another one in the next case."""
    taken: set[Key] = field(default_factory=set)
    """What may be told by plants alone."""
    values: set[str] = field(default_factory=set)
    """Values that no other fact may take."""

    def plants(self, count: int, budget: int, cost: Callable[[Statement], int]) -> list[Plant]:
        """At most `count` plants whose statements cost at most half of `budget` tokens, the first
        one aside, in random order.

        A sixth of them has no answer. The evidence of the others is due at evenly spread depths,
        the abilities in turn.
        """
        due = count - count // 6
        slots = [(ANSWERED[slot % 5], (slot + 0.5) / due, slot // 5) for slot in range(due)]
        first, *rest = slots
        self.rng.shuffle(rest)
        chosen: list[Plant] = []
        spent = 0
        for ability, depth, turn in (first, *rest):
            plant = self.plant(ability, depth, turn) if chosen else self.plain_fact(depth)
            price = sum(map(cost, plant.statements))
            if spent + price <= (budget // 2 if chosen else budget):
                chosen.append(plant)
                spent += price

        unanswerable = count // 6 if len(chosen) == due else min(count // 6, len(chosen) // 5)
        chosen += [self.plant(ABS, 0.0, turn) for turn in range(unanswerable)]
        self.rng.shuffle(chosen)
        return chosen

    def plant(self, ability: str, depth: float, turn: int) -> Plant:
        """A plant whose last statement is due at a depth.

        The kinds of an ability take turns over depths and cases.
        """
        kinds: dict[str, Sequence[Callable[[float], Plant]]] = {
            IE: (self.fact,),
            MR: (self.counting, self.summing, self.comparison),
            TR: (self.date, self.order),
            KU: (self.update,),
            CR: (self.contradiction, self.correction),
            ABS: (self.unanswerable, self.unanswerable, self.undated),
        }
        return kinds[ability][(self.number + turn) % len(kinds[ability])](depth)

    def plain_fact(self, depth: float) -> Plant:
        """The shortest fact there is, at most 10 tokens with its speaker: something of the
        speaker's own.
        """
        speaker = self.rng.randrange(2)
        owner, (attribute, kind) = (
            self.speakers[speaker],
            self.rng.choice([one for one in words.ATTRIBUTES if one[1] != words.PLACE]),
        )
        self.taken.add(("has", owner, attribute))
        value = self.value(kind)
        told = Statement(depth=depth, speaker=speaker, text=f"My {attribute} is {value}.")
        return Plant(
            ability=IE,
            question=asked(owner, attribute, kind),
            gold=(value,),
            statements=(told,),
            evidence=(0,),
        )

    def fact(self, depth: float) -> Plant:
        owner, attribute, kind = self.attribute((*self.people, *self.speakers))
        value = self.value(kind)
        return Plant(
            ability=IE,
            question=asked(owner, attribute, kind),
            gold=(value,),
            statements=(self.told(depth, owner, attribute, kind, value),),
            evidence=(0,),
        )

    def update(self, depth: float) -> Plant:
        """One value, then one or two later ones: the newest counts."""
        owner, attribute, kind = self.attribute((*self.people, *self.speakers))
        values = [self.value(kind) for _ in range(self.rng.choice((2, 2, 3)))]
        speaker = self.speaker_of(owner)
        first, *later = self.depths(depth, len(values))
        statements = [self.told(first, owner, attribute, kind, values[0], speaker=speaker)]
        for when, value in zip(later, values[1:], strict=True):
            news = words.NEWS.format(self.whose(owner, speaker), attribute, copula(kind), value)
            statements.append(Statement(depth=when, speaker=speaker, text=news))

        question = asked(owner, attribute, kind).replace("?", " now?")
        return Plant(
            ability=KU,
            question=question,
            gold=(values[-1],),
            statements=tuple(statements),
            evidence=(len(values) - 1,),
        )

    def contradiction(self, depth: float) -> Plant:
        """The speakers disagree about somebody; the question says whose word counts."""
        owner, attribute, kind = self.attribute(self.people)
        values, source = (self.value(kind), self.value(kind)), self.rng.randrange(2)
        early, late = self.depths(depth, 2)
        told = (f"{owner}'s", attribute, copula(kind))
        said = (
            Statement(depth=early, speaker=1 - source, text=words.HEARD.format(*told, values[1])),
            Statement(depth=late, speaker=source, text=words.SURE.format(*told, values[0])),
        )
        question = asked(owner, attribute, kind)
        return Plant(
            ability=CR,
            question=f"According to {self.speakers[source]}, {question[0].lower()}{question[1:]}",
            gold=values[:1],
            statements=said,
            evidence=(1,),
        )

    def correction(self, depth: float) -> Plant:
        """A speaker takes back what was said; the question says that the correction counts."""
        owner, attribute, kind = self.attribute(self.people)
        wrong, right, speaker = self.value(kind), self.value(kind), self.rng.randrange(2)
        early, late = self.depths(depth, 2)
        statements = (
            self.told(early, owner, attribute, kind, wrong, speaker=speaker),
            Statement(
                depth=late,
                speaker=speaker,
                text=words.CORRECTED.format(f"{owner}'s", attribute, copula(kind), right),
            ),
        )
        return Plant(
            ability=CR,
            question=f"{asked(owner, attribute, kind)} The last correction counts.",
            gold=(right,),
            statements=statements,
            evidence=(1,),
        )

    def counting(self, depth: float) -> Plant:
        who, what = self.subject("collects", words.COLLECTIONS)
        pieces = self.rng.sample(words.PIECES, self.rng.randint(2, 4))
        speaker = self.speaker_of(who)
        told = [
            f"{self.me(who, speaker)} bought a {piece} piece for the {what} collection."
            for piece in pieces
        ]
        statements = tuple(
            Statement(depth=when, speaker=speaker, text=text)
            for when, text in zip(self.depths(depth, len(told)), told, strict=True)
        )
        gold = (str(len(told)), words.COUNTED[len(told)])
        return Plant(
            ability=MR,
            question=f"How many pieces has {who} bought for the {what} collection?",
            gold=gold,
            statements=statements,
            evidence=tuple(range(len(told))),
        )

    def summing(self, depth: float) -> Plant:
        who, what = self.subject("spends", words.PROJECTS)
        sums = [self.rng.randint(11, 95) for _ in range(self.rng.randint(2, 3))]
        speaker = self.speaker_of(who)
        told = [f"{self.me(who, speaker)} spent {amount} crowns on the {what}." for amount in sums]
        statements = tuple(
            Statement(depth=when, speaker=speaker, text=text)
            for when, text in zip(self.depths(depth, len(told)), told, strict=True)
        )
        gold = (str(sum(sums)), f"{sum(sums)} crowns")
        return Plant(
            ability=MR,
            question=f"How many crowns has {who} spent on the {what} in all?",
            gold=gold,
            statements=statements,
            evidence=tuple(range(len(told))),
        )

    def comparison(self, depth: float) -> Plant:
        what = self.rng.choice(words.RACES)
        runners = [self.subject("runs", (what,))[0] for _ in range(2)]
        miles = self.rng.sample(range(3, 30), 2)
        speakers = [self.speaker_of(runner) for runner in runners]
        told = [
            f"{self.me(w, s)} ran {m} miles at the {what}."
            for w, s, m in zip(runners, speakers, miles, strict=True)
        ]
        statements = tuple(
            Statement(*parts) for parts in zip(self.depths(depth, 2), speakers, told, strict=True)
        )
        gold = (runners[miles.index(max(miles))],)
        return Plant(
            ability=MR,
            question=f"Who ran more miles at the {what}, {runners[0]} or {runners[1]}?",
            gold=gold,
            statements=statements,
            evidence=(0, 1),
        )

    def date(self, depth: float) -> Plant:
        statement, question, _ = self.event(depth)
        return Plant(ability=TR, question=question, gold=(), statements=(statement,), evidence=(0,))

    def order(self, depth: float) -> Plant:
        """Which of two things came first, by the days on which they happened."""
        (one, _, first), (two, question, second) = (
            self.event(when) for when in self.depths(depth, 2)
        )
        choice = f"Which happened first: {first[1]} or {second[1]}?"
        return Plant(
            ability=TR,
            question=choice,
            gold=(),
            statements=(one, two),
            evidence=(0, 1),
            rivals=(first, second),
            else_asked=question,
        )

    def unanswerable(self, depth: float) -> Plant:
        """Something of a person that nobody tells, though they tell it of others."""
        return Plant(ABS, asked(*self.attribute(self.people)))

    def undated(self, depth: float) -> Plant:
        _, question, _ = self.event(depth)
        return Plant(ABS, question)

    # What plants are made of

    def attribute(self, owners: Sequence[str]) -> tuple[str, str, str]:
        """Whose attribute, which, and its kind; taken from now on."""
        while True:
            owner, (attribute, kind) = self.rng.choice(owners), self.rng.choice(words.ATTRIBUTES)
            if self.take(("has", owner, attribute)):
                return owner, attribute, kind

    def subject(self, verb: str, things: Sequence[str]) -> tuple[str, str]:
        """Who does it, and to what; taken from now on."""
        while True:
            who, what = self.rng.choice((*self.people, *self.speakers)), self.rng.choice(things)
            if self.take((verb, who, what)):
                return who, what

    def event(self, depth: float) -> tuple[Statement, str, tuple[str, str]]:
        """A thing that happened: the turn that tells it, the question when it did, and who did
        what.
        """
        events = {told: base for base, told in words.EVENTS}
        who, what = self.subject("did", tuple(events))
        days, ago = self.rng.choice(words.AGO)
        speaker = self.speaker_of(who)
        base = f"{events[what]} {what.split(' ', 1)[1]}"
        return (
            Statement(
                depth=depth,
                speaker=speaker,
                text=f"{self.me(who, speaker)} {what} {ago}.",
                days_ago=days,
            ),
            f"When did {who} {base}?",
            (who, f"{who} {what}"),
        )

    def told(
        self,
        depth: float,
        owner: str,
        attribute: str,
        kind: str,
        value: str,
        *,
        speaker: int | None = None,
    ) -> Statement:
        """The turn that tells an attribute."""
        speaker = self.speaker_of(owner) if speaker is None else speaker
        return Statement(
            depth=depth,
            speaker=speaker,
            text=opened(
                self.rng, f"{self.whose(owner, speaker)} {attribute} {copula(kind)} {value}."
            ),
        )

    def take(self, key: Key) -> bool:
        """Whether a key was free; it is taken now."""
        free = key not in self.taken
        self.taken.add(key)
        return free

    def value(self, kind: str) -> str:
        """A value that no planted fact has had."""
        while (value := drawn(self.rng, kind)) in self.values:
            pass

        self.values.add(value)
        return value

    def depths(self, last: float, count: int) -> list[float]:
        """Positions of `count` statements, ascending, the last one at `last`."""
        return [*sorted(self.rng.random() * last for _ in range(count - 1)), last]

    def speaker_of(self, who: str) -> int:
        """Who tells of a person: the speakers tell of themselves."""
        return self.speakers.index(who) if who in self.speakers else self.rng.randrange(2)

    def whose(self, owner: str, speaker: int) -> str:
        return "my" if owner == self.speakers[speaker] else f"{owner}'s"

    def me(self, who: str, speaker: int) -> str:
        return "I" if who == self.speakers[speaker] else who


def asked(owner: str, attribute: str, kind: str) -> str:
    """The question for an attribute."""
    return f"{ASKING.get(kind, 'What')} is {owner}'s {attribute}?"


def copula(kind: str) -> str:
    return "is in" if kind == words.PLACE else "is"


def opened(rng: Random, sentence: str) -> str:
    """A sentence behind one of the openings."""
    opening = words.OPENINGS[int(rng.random() * len(words.OPENINGS))]
    return opening + sentence if opening else sentence[0].upper() + sentence[1:]


def drawn(rng: Random, kind: str) -> str:
    """A value of a kind."""
    if kind == words.NUMBER:
        return str(1000 + int(rng.random() * 9000))
    if kind == words.PLACE:
        return _picked(rng, words.PLACE_STARTS) + _picked(rng, words.PLACE_ENDS)

    first, second = (
        (words.FIRST_NAMES, words.LAST_NAMES)
        if kind == words.PERSON
        else (words.ADJECTIVES, words.NOUNS)
    )
    return f"{_picked(rng, first)} {_picked(rng, second)}"


def _picked(rng: Random, values: Sequence[str]) -> str:
    return values[int(rng.random() * len(values))]
