"""The cell's reader: one wording and one model for every system."""

from __future__ import annotations

import re
from collections.abc import Sequence

from memeval.llm.contract import AnswerPrompt, ChoosePrompt, LanguageModel
from memeval.llm.tokens import count_tokens
from memeval.prompts import Wording, shipped
from memeval.records import Query, Role
from memeval.systems.contract import ReaderReply

_MARK = re.compile(r"(?im)^\W*(?:final )?answer\W*:\W*")


class CellReader:
    """Answers queries from units of context under the cell's wordings."""

    def __init__(
        self, model: LanguageModel, wording: Wording, style: str, seed: int, *, choosing: Wording | None = None, choose_tokens: int = 10
    ) -> None:
        """`choosing` are the words of questions with choices, by default ours."""
        self._model, self._wording, self._style, self._seed = model, wording, style, seed
        self._choosing, self._choose_tokens = choosing or shipped("choose"), choose_tokens

    async def answer(self, query: Query, context: Sequence[str]) -> ReaderReply:
        if query.choices:
            return await self._choose(query, context)
        prompt = AnswerPrompt(
            query.text, tuple(context), query.asked_at, self._style, self._wording.system, self._wording.user, query.instruction
        )
        completion = await self._model.complete(prompt, role=Role.ANSWER, seed=self._seed)
        text = final_answer(completion.text)
        whole = completion.raw or completion.text
        return ReaderReply(text, None if text == whole else whole, sum(map(count_tokens, context)))

    async def _choose(self, query: Query, context: Sequence[str]) -> ReaderReply:
        """The reply as it is: which choice it names is for the judge to read."""
        prompt = ChoosePrompt(
            query.text,
            tuple(context),
            query.choices,
            query.choice_labels,
            query.several,
            query.asked_at,
            self._choose_tokens,
            self._choosing.system,
            self._choosing.user,
        )
        completion = await self._model.complete(prompt, role=Role.ANSWER, seed=self._seed)
        return ReaderReply(completion.text.strip(), completion.raw, sum(map(count_tokens, context)))


def final_answer(reply: str) -> str:
    """What follows the last line that begins with `Answer:`; the whole reply where no line does."""
    marks = list(_MARK.finditer(reply))
    text = reply[marks[-1].end() :] if marks else reply
    return text.strip().strip("*").strip() or reply.strip()
