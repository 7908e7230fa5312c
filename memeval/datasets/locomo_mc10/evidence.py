"""Evidence for LoCoMo-MC10, which lacks it: from LoCoMo's own file, by the position of each
question in its conversation.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from msgspec import Struct, field

from memeval.records import EvalCase, EvalQuestion, Session


class Evidence(Struct, frozen=True):
    """Joins evidence to cases, and counts questions by outcome."""

    source: Mapping[str, EvalCase]
    """LoCoMo's conversations by id."""
    file: str
    """Name of the file that they come from."""
    counts: Counter[str] = field(default_factory=Counter)
    """Questions by outcome: `joined`, `none` (LoCoMo names no turn that is in the haystack),
    `unlike` (LoCoMo has another question at that position), `moved` (the conversation's turns are
    not LoCoMo's).
    """

    def join(self, case: EvalCase) -> EvalCase:
        """The case with evidence for each question that LoCoMo asks at the same position, if the
        turns are LoCoMo's.
        """
        origin = self.source.get(case.case_id)
        if origin is None or not _same_turns(case, origin):
            self.counts["moved"] += len(case.questions)
            return case

        turn_ids = case.turn_ids
        joined = [self._join_question(asked, origin, turn_ids) for asked in case.questions]
        return replace(case, questions=tuple(joined))

    def _join_question(
        self, question: EvalQuestion, origin: EvalCase, turn_ids: frozenset[str]
    ) -> EvalQuestion:
        # The rows are in LoCoMo's order. By text they could not be joined: 12 texts occur twice.
        index = int(question.question_id.rpartition("_q")[2])
        original = origin.questions[index] if index < len(origin.questions) else None
        if original is None or _plain(original.text) != _plain(question.text):
            self.counts["unlike"] += 1
            return question

        evidence = tuple(turn_id for turn_id in original.evidence if turn_id in turn_ids)
        self.counts["joined" if evidence else "none"] += 1
        return replace(question, evidence=evidence)

    def note(self) -> str:
        """The result of the join, in one line."""
        joined, total = self.counts["joined"], self.counts.total()
        reasons = {
            "none": "name no turn of the haystack",
            "unlike": "are other questions there",
            "moved": "are in conversations whose turns differ",
        }
        note = f"evidence: {joined} of {total} questions have theirs from {self.file}, by position"
        for key, reason in reasons.items():
            if self.counts[key]:
                note += f"; {self.counts[key]} {reason}"

        return note


def _same_turns(case: EvalCase, origin: EvalCase) -> bool:
    """Whether each session of the case has the same texts as LoCoMo's session of that number."""
    texts = {session.session_id: _texts(session) for session in origin.sessions}
    return all(texts.get(session.session_id) == _texts(session) for session in case.sessions)


def _texts(session: Session) -> list[str]:
    return [turn.text.strip() for turn in session.turns]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
