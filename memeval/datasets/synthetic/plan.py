"""Plants of a synthetic haystack: facts, updates, contradictions, and the questions whose golds
they decide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from memeval.datasets.synthetic.material import PlantMaterial
from memeval.datasets.synthetic.plant import (
    ABS,
    ANSWERED,
    CR,
    IE,
    KU,
    MR,
    TR,
    Plant,
    Possession,
    Statement,
)
from memeval.datasets.synthetic.words import (
    ATTRIBUTES,
    CORRECTED,
    COUNTED,
    HEARD,
    NEWS,
    PLACE,
    SURE,
    WORDS,
)


@dataclass(kw_only=True)
class Planner(PlantMaterial):
    """Creates the plants of a case. Nothing is said twice, and only plants state what is asked."""

    number: int
    """Number of the case: it shifts which kind of an ability is planted at which depth."""

    def plants(self, count: int, budget: int, cost: Callable[[Statement], int]) -> list[Plant]:
        """At most `count` plants in random order. Except for the first one, their statements cost
        at most half of `budget` tokens.

        A sixth of them are unanswerable. The evidence of the others is due at evenly spread depths,
        with the abilities in turn.
        """
        # A system that always refuses thus gets a sixth of the score.
        due = count - count // 6
        slots = [(ANSWERED[slot % 5], (slot + 0.5) / due, slot // 5) for slot in range(due)]
        # The first plant is the shortest, so that the smallest haystack has a question.
        first, *rest = slots
        self.rng.shuffle(rest)
        chosen: list[Plant] = []
        spent = 0
        for ability, depth, turn in (first, *rest):
            if chosen:
                plant, most = self.plant(ability, depth, turn), budget // 2
            else:
                plant, most = self.plain_fact(depth), budget

            price = sum(map(cost, plant.statements))
            if spent + price <= most:
                chosen.append(plant)
                spent += price

        unanswerable = count // 6
        if len(chosen) < due:
            # A fifth of the answerable plants is a sixth of all plants.
            unanswerable = min(unanswerable, len(chosen) // 5)

        chosen += [self.plant(ABS, 0.0, turn) for turn in range(unanswerable)]
        self.rng.shuffle(chosen)
        return chosen

    def plant(self, ability: str, depth: float, turn: int) -> Plant:
        """A plant whose last statement is due at a depth.

        The kinds of an ability alternate over depths and cases.
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
        """The shortest fact, at most 10 tokens with its speaker: a possession of the speaker."""
        speaker = self.rng.randrange(2)
        attributes = [pair for pair in ATTRIBUTES if pair[1] != PLACE]
        possession = Possession(self.speakers[speaker], *self.rng.choice(attributes))
        self.claimed.add(possession.key)
        value = self.value(possession.kind)
        text = f"My {possession.attribute} is {value}."
        statement = Statement(depth=depth, speaker=speaker, text=text)
        return _plant(IE, possession.question, (value,), [statement])

    def fact(self, depth: float) -> Plant:
        possession = self.possession(self.everybody)
        value = self.value(possession.kind)
        statement = self.tell(depth, possession, value)
        return _plant(IE, possession.question, (value,), [statement])

    def update(self, depth: float) -> Plant:
        """One value, then one or two later ones: the newest counts."""
        possession = self.possession(self.everybody)
        values = [self.value(possession.kind) for _ in range(self.rng.choice((2, 2, 3)))]
        speaker = self.speaker_of(possession.owner)
        whose = self.whose(possession.owner, speaker)

        first, *later = self.depths(depth, len(values))
        statements = [self.tell(first, possession, values[0], speaker=speaker)]
        for when, value in zip(later, values[1:], strict=True):
            news = possession.fill(NEWS, whose, value)
            statements.append(Statement(depth=when, speaker=speaker, text=news))

        question = possession.question.replace("?", " now?")
        return _plant(KU, question, (values[-1],), statements, only_last=True)

    def contradiction(self, depth: float) -> Plant:
        """The speakers disagree about someone; the question says whose word counts."""
        possession = self.possession(self.people)
        right, wrong = self.value(possession.kind), self.value(possession.kind)
        source = self.rng.randrange(2)
        early, late = self.depths(depth, 2)
        whose = f"{possession.owner}'s"
        heard, sure = possession.fill(HEARD, whose, wrong), possession.fill(SURE, whose, right)

        statements = (
            Statement(depth=early, speaker=1 - source, text=heard),
            Statement(depth=late, speaker=source, text=sure),
        )
        plain = possession.question
        question = f"According to {self.speakers[source]}, {plain[0].lower()}{plain[1:]}"
        return _plant(CR, question, (right,), statements, only_last=True)

    def correction(self, depth: float) -> Plant:
        """A speaker corrects an earlier statement; the question says that the correction counts."""
        possession = self.possession(self.people)
        wrong, right = self.value(possession.kind), self.value(possession.kind)
        speaker = self.rng.randrange(2)
        early, late = self.depths(depth, 2)
        corrected = possession.fill(CORRECTED, f"{possession.owner}'s", right)

        statements = (
            self.tell(early, possession, wrong, speaker=speaker),
            Statement(depth=late, speaker=speaker, text=corrected),
        )
        question = f"{possession.question} The last correction counts."
        return _plant(CR, question, (right,), statements, only_last=True)

    def counting(self, depth: float) -> Plant:
        who, what = self.subject("collects", WORDS.collections)
        pieces = self.rng.sample(WORDS.pieces, self.rng.randint(2, 4))
        speaker = self.speaker_of(who)
        buyer = self.me(who, speaker)
        sentences = [f"{buyer} bought a {name} piece for the {what} collection." for name in pieces]
        statements = self.tell_each(depth, speaker, sentences)

        question = f"How many pieces has {who} bought for the {what} collection?"
        return _plant(MR, question, (str(len(pieces)), COUNTED[len(pieces)]), statements)

    def summing(self, depth: float) -> Plant:
        who, what = self.subject("spends", WORDS.projects)
        sums = [self.rng.randint(11, 95) for _ in range(self.rng.randint(2, 3))]
        speaker = self.speaker_of(who)
        spender = self.me(who, speaker)
        sentences = [f"{spender} spent {amount} crowns on the {what}." for amount in sums]
        statements = self.tell_each(depth, speaker, sentences)

        question = f"How many crowns has {who} spent on the {what} in all?"
        return _plant(MR, question, (str(sum(sums)), f"{sum(sums)} crowns"), statements)

    def comparison(self, depth: float) -> Plant:
        race = self.rng.choice(WORDS.races)
        runners = [self.subject("runs", (race,))[0] for _ in range(2)]
        miles = self.rng.sample(range(3, 30), 2)
        speakers = list(map(self.speaker_of, runners))
        statements = []
        for number, when in enumerate(self.depths(depth, 2)):
            runner = self.me(runners[number], speakers[number])
            text = f"{runner} ran {miles[number]} miles at the {race}."
            statements.append(Statement(depth=when, speaker=speakers[number], text=text))

        question = f"Who ran more miles at the {race}, {runners[0]} or {runners[1]}?"
        return _plant(MR, question, (runners[miles.index(max(miles))],), statements)

    def date(self, depth: float) -> Plant:
        statement, question, _ = self.event(depth)
        return _plant(TR, question, (), [statement])

    def order(self, depth: float) -> Plant:
        """Asks which of two events came first, by the days on which they happened."""
        sooner, later = self.depths(depth, 2)
        early, _, first = self.event(sooner)
        late, question, second = self.event(later)
        choice = f"Which happened first: {first[1]} or {second[1]}?"
        plant = _plant(TR, choice, (), (early, late))
        return replace(plant, rivals=(first, second), fallback_question=question)

    def unanswerable(self, depth: float) -> Plant:
        """Asks for something that is stated about others, but not about this person."""
        return Plant(ABS, self.possession(self.people).question)

    def undated(self, depth: float) -> Plant:
        # The event's statement is dropped, so its date is unknown.
        _, question, _ = self.event(depth)
        return Plant(ABS, question)


def _plant(
    ability: str,
    question: str,
    gold: tuple[str, ...],
    statements: Sequence[Statement],
    *,
    only_last: bool = False,
) -> Plant:
    """A plant whose evidence is all of its statements, or only the last."""
    evidence = tuple(range(len(statements)))
    if only_last:
        evidence = evidence[-1:]

    return Plant(
        ability=ability,
        question=question,
        gold=gold,
        statements=tuple(statements),
        evidence=evidence,
    )
