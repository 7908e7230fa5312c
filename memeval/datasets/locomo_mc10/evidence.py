"""Evidence for LoCoMo-MC10, which has none: from LoCoMo's own file, by the position of each
question in its conversation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memeval.records import EvalCase, EvalQuestion, Session


@dataclass(frozen=True)
class Evidence:
    """Joins evidence to cases, and counts where that is not possible."""

    source: Mapping[str, EvalCase]
    """LoCoMo's conversations by id."""
    file: str
    """Name of the file that they come from."""
    counts: Counter[str] = field(default_factory=Counter)
    """Questions by what became of them: `joined`, `none` (LoCoMo names none that is in the
    haystack), `unlike` (LoCoMo asks something else there), `moved` (the conversation's turns are
    not LoCoMo's).
    """

    def join(self, case: EvalCase) -> EvalCase:
        """The case with evidence for each question that LoCoMo asks at the same place, where the
        turns are LoCoMo's.
        """
        origin = self.source.get(case.case_id)
        same_turns = origin is not None and _same_turns(case, origin)
        return replace(
            case,
            questions=tuple(
                self._join_question(question, case, origin if same_turns else None)
                for question in case.questions
            ),
        )

    def _join_question(
        self, question: EvalQuestion, case: EvalCase, origin: EvalCase | None
    ) -> EvalQuestion:
        if origin is None:
            self.counts["moved"] += 1
            return question

        # The rows are in LoCoMo's order. By text they could not be joined: 12 texts occur twice.
        index = int(question.question_id.rpartition("_q")[2])
        if index >= len(origin.questions) or _plain(origin.questions[index].text) != _plain(
            question.text
        ):
            self.counts["unlike"] += 1
            return question

        there = {turn.turn_id for session in case.sessions for turn in session.turns}
        evidence = tuple(
            turn_id for turn_id in origin.questions[index].evidence if turn_id in there
        )
        self.counts["joined" if evidence else "none"] += 1
        return replace(question, evidence=evidence)

    def note(self) -> str:
        """How far the join went, in one line."""
        joined, total = self.counts["joined"], self.counts.total()
        reasons = {
            "none": "name no turn of the haystack",
            "unlike": "are other questions there",
            "moved": "are in conversations whose turns differ",
        }
        rest = "; ".join(
            f"{self.counts[key]} {what}" for key, what in reasons.items() if self.counts[key]
        )
        return (
            f"evidence: {joined} of {total} questions have theirs from {self.file}, by "
            f"place{f'; {rest}' if rest else ''}"
        )


def _same_turns(case: EvalCase, origin: EvalCase) -> bool:
    """Whether every session of the case holds the same texts as LoCoMo's session of that number."""
    said = {session.session_id: _texts(session) for session in origin.sessions}
    return all(said.get(session.session_id) == _texts(session) for session in case.sessions)


def _texts(session: Session) -> list[str]:
    return [turn.text.strip() for turn in session.turns]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
