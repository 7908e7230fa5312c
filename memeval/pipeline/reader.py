"""The cell's reader: one wording and one model for every system."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memeval.llm.contract import AnswerPrompt, LanguageModel
from memeval.llm.tokens import count_tokens
from memeval.prompts import Wording
from memeval.records import Query, Role
from memeval.systems.contract import ReaderReply

_MARK = re.compile(r"(?im)^\W*(?:final )?answer\W*:\W*")


class CellReader:
    """Answers queries from units of context under the cell's wording."""

    def __init__(self, model: LanguageModel, wording: Wording, style: str, seed: int) -> None:
        self._model, self._wording, self._style, self._seed = model, wording, style, seed

    async def answer(self, query: Query, context: Sequence[str]) -> ReaderReply:
        prompt = AnswerPrompt(query.text, tuple(context), query.asked_at, self._style, self._wording.system, self._wording.user)
        reply = (await self._model.complete(prompt, role=Role.ANSWER, seed=self._seed)).text
        text = final_answer(reply)
        return ReaderReply(text, None if text == reply else reply, sum(map(count_tokens, context)))


def final_answer(reply: str) -> str:
    """What follows the last line that begins with `Answer:`; the whole reply where no line does."""
    marks = list(_MARK.finditer(reply))
    text = reply[marks[-1].end() :] if marks else reply
    return text.strip().strip("*").strip() or reply.strip()
