"""A model that drafts questions about invented turns, good and bad ones at known rates, and that
always answers and judges correctly.

It knows the answer to each of its own questions, and which turns must be shown for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from memeval.drafting.proposal import Reason

BAD: dict[str, Reason] = {
    "no JSON": Reason.MALFORMED,
    "another turn": Reason.NO_TURN,
    "a wrong quotation": Reason.NOT_QUOTED,
    "gives its answer away": Reason.GIVEN,
    "names the session": Reason.NAMES_TEXT,
    "a pronoun": Reason.PRONOUN,
    "a second time": Reason.DUPLICATE,
    "other evidence": Reason.NOT_SUPPORTED,
    "general knowledge": Reason.KNOWN,
    "one turn is enough": Reason.NOT_NEEDED,
    "nothing older": Reason.NO_OLDER,
    "an answer exists": Reason.ANSWERED,
}
ONLY_FOR = {
    "one turn is enough": "multi_hop",
    "nothing older": "update",
    "an answer exists": "unanswerable",
}
NOT_FOR = {"unanswerable": ("gives its answer away", "other evidence", "general knowledge")}
REFUSAL = "No information available"
_SHOWN = re.compile(r"(?m)^\[(t\d+)\] (?:[^:\n]+): (.+)$")
_KIND = re.compile(r"\nKind: (\w+)\nBegin from turn (t\d+)")


def invented_cases(cases: int, turns: int) -> list[dict[str, Any]]:
    """Cases of four sessions; their turns have words that occur nowhere else."""
    draw = Random(cases)
    made = []
    for case in range(cases):
        sessions = []
        for session in range(4):
            said = [
                {
                    "id": f"{session}-{number}",
                    "speaker": ("user", "assistant", "tool")[number % 3],
                    "text": f"Thing {_word(draw)} carries the mark {_word(draw)} "
                    f"beside {_word(draw)}.",
                }
                for number in range(turns // 4)
            ]
            sessions.append({"time": f"2024-0{session + 1}-01", "turns": said})

        made.append({"case_id": f"c{case}", "sessions": sessions, "questions": []})

    return made


def _word(draw: Random) -> str:
    return "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(4))


class Drafter:
    """Answers the requests of `data draft`."""

    def __init__(self, bad_share: float = 0.0) -> None:
        self.bad_share = bad_share
        self.intended: dict[str, str] = {}
        """Kind of each question: `good`, or what is wrong with it."""
        self.proposed: Counter[str] = Counter()
        self._good: dict[str, str] = {}
        """The text of the turn behind each good question."""
        self._answers: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        """By question: the texts that must be shown for an answer, and that answer. The first match
        counts.
        """
        self._draw = Random(7)

    def __call__(self, body: Mapping[str, Any]) -> str:
        _, user = (message["content"] for message in body["messages"])
        if (wanted := _KIND.search(user)) is not None:
            return self._propose(wanted[1], wanted[2], _SHOWN.findall(user))
        if "Reference answer: " in user:
            return _judged(user)

        notes, _, asked = user.rpartition("\n\n")
        question = asked.removeprefix("Question: ").partition("\nAnswer:")[0]
        for needed, answer in self._answers[question]:
            if all(text in notes for text in needed):
                return answer

        return REFUSAL

    def _propose(  # noqa: PLR0912 - one branch per mistake
        self, kind: str, about: str, shown: Sequence[tuple[str, str]]
    ) -> str:
        texts = dict(shown)
        earlier = [one for one, text in self._good.items() if text in texts.values()]
        what = self._what(kind, can_repeat=bool(earlier))
        self.proposed[what] += 1
        first, last = shown[0], shown[-1]
        chosen = (about, texts[about]) if kind not in ("multi_hop", "update") else last
        name, answer = _word(self._draw), _word(self._draw)
        question = f"What does {name} at {chosen[1].split()[1]} carry?"
        evidence, needed = [chosen], (chosen[1],)
        if kind == "multi_hop":
            evidence, needed = [first, last], (first[1], last[1])

        answers = [(needed, answer)]
        stale: list[dict[str, str]] = []
        if kind == "update":
            older = first[1].split()[1]
            stale = [{"value": older, "turn": first[0], "quote": first[1]}]
            answers.append(((first[1],), older))
        if kind == "unanswerable":
            answers = []

        quotes = [{"turn": turn, "quote": text.upper()} for turn, text in evidence]
        if what == "another turn":
            quotes[0]["turn"] = "t999"
        elif what == "a wrong quotation":
            quotes[0]["quote"] += " never said"
        elif what == "gives its answer away":
            question = question.replace("carry", f"carry, {answer} or else")
        elif what == "names the session":
            question = question.replace("?", " in this conversation?")
        elif what == "a pronoun":
            question = f"What did she carry to {name}?"
        elif what == "a second time":
            question = earlier[0]
        elif what == "other evidence":
            answers = [(("words that are never shown",), answer)]
        elif what == "general knowledge":
            answers = [((), answer)]
        elif what == "one turn is enough":
            answers = [((last[1],), answer)]
        elif what == "nothing older":
            stale = []
        elif what == "an answer exists":
            answers = [((), answer)]

        if what == "no JSON":
            return f"Here is a question: {question}"
        if what != "a second time":
            self.intended[question] = what
            if what == "good":
                self._good[question] = chosen[1]

            self._answers[question] = answers

        golds = None if kind == "unanswerable" else answer
        proposal = {"kind": kind, "question": question, "answer": golds, "evidence": quotes}
        return json.dumps({**proposal, "stale": stale})

    def _what(self, kind: str, *, can_repeat: bool) -> str:
        if self._draw.random() >= self.bad_share:
            return "good"

        fitting = [
            what
            for what in BAD
            if ONLY_FOR.get(what, kind) == kind
            and what not in NOT_FOR.get(kind, ())
            and (can_repeat or what != "a second time")
        ]
        return min(fitting, key=lambda what: self.proposed[what])


def _judged(user: str) -> str:
    reference, answer = (
        re.sub(r"</?\w+-[^>]*>", "", part).strip()
        for part in user.partition("Reference answer: ")[2].split("Answer to check:")
    )
    label = "CORRECT" if answer in reference.split(" / ") else "WRONG"
    return json.dumps({"reason": "compared", "label": label})
