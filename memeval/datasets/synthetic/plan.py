"""What is planted into a synthetic haystack: facts, updates, contradictions, and the questions
whose golds they decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memeval.datasets.synthetic import words
from memeval.datasets.synthetic.material import Material
from memeval.datasets.synthetic.plant import (
    ABS,
    ANSWERED,
    CR,
    IE,
    KU,
    MR,
    TR,
    Plant,
    Statement,
)
from memeval.datasets.synthetic.sentences import copula, question_about


@dataclass(kw_only=True)
class Planner(Material):
    """Makes the plants of one case. Nothing is said twice, and only plants say what is asked."""

    number: int
    """Of the case: it shifts which kind of an ability is planted at which depth."""

    def plants(self, count: int, budget: int, cost: Callable[[Statement], int]) -> list[Plant]:
        """At most `count` plants in random order. Except for the first one, their statements cost
        at most half of `budget` tokens.

        A sixth of them has no answer. The evidence of the others is due at evenly spread depths,
        the abilities in turn.
        """
        # So a system that always refuses has a sixth of the score.
        due = count - count // 6
        slots = [(ANSWERED[slot % 5], (slot + 0.5) / due, slot // 5) for slot in range(due)]
        # The first plant is the shortest, so that the smallest haystack has a question.
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

        # A fifth of the answerable ones is a sixth of all, also in a haystack that is too small.
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
        """The shortest fact, at most 10 tokens with its speaker: something that the speaker has."""
        speaker = self.rng.randrange(2)
        owner, (attribute, kind) = (
            self.speakers[speaker],
            self.rng.choice([pair for pair in words.ATTRIBUTES if pair[1] != words.PLACE]),
        )
        self.taken.add(("has", owner, attribute))
        value = self.value(kind)
        statement = Statement(depth=depth, speaker=speaker, text=f"My {attribute} is {value}.")
        return Plant(
            ability=IE,
            question=question_about(owner, attribute, kind),
            gold=(value,),
            statements=(statement,),
            evidence=(0,),
        )

    def fact(self, depth: float) -> Plant:
        owner, attribute, kind = self.attribute((*self.people, *self.speakers))
        value = self.value(kind)
        return Plant(
            ability=IE,
            question=question_about(owner, attribute, kind),
            gold=(value,),
            statements=(self.tell_attribute(depth, owner, attribute, kind, value),),
            evidence=(0,),
        )

    def update(self, depth: float) -> Plant:
        """One value, then one or two later ones: the newest counts."""
        owner, attribute, kind = self.attribute((*self.people, *self.speakers))
        values = [self.value(kind) for _ in range(self.rng.choice((2, 2, 3)))]
        speaker = self.speaker_of(owner)
        first, *later = self.depths(depth, len(values))
        statements = [
            self.tell_attribute(first, owner, attribute, kind, values[0], speaker=speaker)
        ]
        for when, value in zip(later, values[1:], strict=True):
            news = words.NEWS.format(self.whose(owner, speaker), attribute, copula(kind), value)
            statements.append(Statement(depth=when, speaker=speaker, text=news))

        question = question_about(owner, attribute, kind).replace("?", " now?")
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
        subject = (f"{owner}'s", attribute, copula(kind))
        statements = (
            Statement(
                depth=early, speaker=1 - source, text=words.HEARD.format(*subject, values[1])
            ),
            Statement(depth=late, speaker=source, text=words.SURE.format(*subject, values[0])),
        )
        question = question_about(owner, attribute, kind)
        return Plant(
            ability=CR,
            question=f"According to {self.speakers[source]}, {question[0].lower()}{question[1:]}",
            gold=values[:1],
            statements=statements,
            evidence=(1,),
        )

    def correction(self, depth: float) -> Plant:
        """A speaker takes back what was said; the question says that the correction counts."""
        owner, attribute, kind = self.attribute(self.people)
        wrong, right, speaker = self.value(kind), self.value(kind), self.rng.randrange(2)
        early, late = self.depths(depth, 2)
        statements = (
            self.tell_attribute(early, owner, attribute, kind, wrong, speaker=speaker),
            Statement(
                depth=late,
                speaker=speaker,
                text=words.CORRECTED.format(f"{owner}'s", attribute, copula(kind), right),
            ),
        )
        return Plant(
            ability=CR,
            question=f"{question_about(owner, attribute, kind)} The last correction counts.",
            gold=(right,),
            statements=statements,
            evidence=(1,),
        )

    def counting(self, depth: float) -> Plant:
        who, what = self.subject("collects", words.COLLECTIONS)
        pieces = self.rng.sample(words.PIECES, self.rng.randint(2, 4))
        speaker = self.speaker_of(who)
        sentences = [
            f"{self.me(who, speaker)} bought a {piece} piece for the {what} collection."
            for piece in pieces
        ]
        statements = tuple(
            Statement(depth=when, speaker=speaker, text=text)
            for when, text in zip(self.depths(depth, len(sentences)), sentences, strict=True)
        )
        gold = (str(len(sentences)), words.COUNTED[len(sentences)])
        return Plant(
            ability=MR,
            question=f"How many pieces has {who} bought for the {what} collection?",
            gold=gold,
            statements=statements,
            evidence=tuple(range(len(sentences))),
        )

    def summing(self, depth: float) -> Plant:
        who, what = self.subject("spends", words.PROJECTS)
        sums = [self.rng.randint(11, 95) for _ in range(self.rng.randint(2, 3))]
        speaker = self.speaker_of(who)
        sentences = [
            f"{self.me(who, speaker)} spent {amount} crowns on the {what}." for amount in sums
        ]
        statements = tuple(
            Statement(depth=when, speaker=speaker, text=text)
            for when, text in zip(self.depths(depth, len(sentences)), sentences, strict=True)
        )
        gold = (str(sum(sums)), f"{sum(sums)} crowns")
        return Plant(
            ability=MR,
            question=f"How many crowns has {who} spent on the {what} in all?",
            gold=gold,
            statements=statements,
            evidence=tuple(range(len(sentences))),
        )

    def comparison(self, depth: float) -> Plant:
        what = self.rng.choice(words.RACES)
        runners = [self.subject("runs", (what,))[0] for _ in range(2)]
        miles = self.rng.sample(range(3, 30), 2)
        speakers = [self.speaker_of(runner) for runner in runners]
        sentences = [
            f"{self.me(w, s)} ran {m} miles at the {what}."
            for w, s, m in zip(runners, speakers, miles, strict=True)
        ]
        statements = tuple(
            Statement(*parts)
            for parts in zip(self.depths(depth, 2), speakers, sentences, strict=True)
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
        (early, _, first), (late, question, second) = (
            self.event(when) for when in self.depths(depth, 2)
        )
        choice = f"Which happened first: {first[1]} or {second[1]}?"
        return Plant(
            ability=TR,
            question=choice,
            gold=(),
            statements=(early, late),
            evidence=(0, 1),
            rivals=(first, second),
            else_asked=question,
        )

    def unanswerable(self, depth: float) -> Plant:
        """Something about a person that nobody says, though the same is said about others."""
        return Plant(ABS, question_about(*self.attribute(self.people)))

    def undated(self, depth: float) -> Plant:
        # The event's statement is dropped: nobody says when it happened.
        _, question, _ = self.event(depth)
        return Plant(ABS, question)
