"""The cell's reader: the same templates and model for every system."""

import re
from collections.abc import Sequence
from dataclasses import replace

from memeval.llm.contract import AnswerPrompt, ChoosePrompt, Completion, NotePrompt
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import PromptTemplate
from memeval.llm.tokens import count_tokens
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.cell_prompts import Templates
from memeval.records import Answer, AnswerForm, Query, Role
from memeval.systems.base import NOTHING_FITS, Reader, ReaderReply

NOTHING = ("(nothing)", "(nothing).", "nothing")
"""The model's note on a chunk that is irrelevant to the question."""
_MARK = re.compile(r"(?:final )?answer[^\w\n:]*+:", re.IGNORECASE)
_MARKED_LINE = re.compile(rf"^[^\w\n]*+{_MARK.pattern}", re.IGNORECASE | re.MULTILINE)
"""The beginning of an answer's line. The pattern never backtracks, nor matches beyond its line."""
_AROUND_MARK = re.compile(r"\W*")


class CellReader:
    """Answers queries from chunks of context under the cell's templates."""

    def __init__(
        self,
        model: LanguageModel,
        templates: Templates,
        style: str,
        seed: int,
        *,
        choose_tokens: int = 16,
        own_style: bool = False,
    ) -> None:
        """`own_style`: the system chose the style, not the cell's prompt."""
        self._model, self._templates, self._style, self._seed = model, templates, style, seed
        self._choose_tokens, self._own_style = choose_tokens, own_style

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        # Building the prompt is memeval's work: its time is not the system's.
        with current_ledger().own_work.excluded():
            shown = context
            if self._templates.note is not None and not query.choices:
                shown = await self._notes(self._templates.note, query, context)

            prompt = self.prompt(query, shown)
            completion = await self._model.complete(prompt, role=Role.ANSWER, seed=self._seed)
            tokens = sum(map(count_tokens, context))
            if query.choices:
                # Not shortened: the judge needs the whole reply to read the choice.
                return ReaderReply(completion.text.strip(), completion.raw, tokens)

            text = final_answer(completion.text)
            return ReaderReply(text, whole_reply(completion, text), tokens)

    def prompt(self, query: Query, context: Sequence[str]) -> AnswerPrompt | ChoosePrompt:
        """The request for an answer to a query, from the cell's templates."""
        if query.choices:
            return ChoosePrompt(
                query.text,
                tuple(context),
                query.choices,
                query.choice_labels,
                query.multi_select,
                query.asked_at,
                self._choose_tokens,
                system_text=self._templates.choice.system,
                user_template=self._templates.choice.user,
            )

        style, template = self._style_and_template()
        return AnswerPrompt(
            question=query.text,
            context=tuple(context),
            asked_at=query.asked_at,
            style=style,
            system_text=template.system,
            user_template=template.user,
            instruction=query.instruction,
        )

    def _style_and_template(self) -> tuple[str, PromptTemplate]:
        """Style and template of the current question; notes if the style does not fit it."""
        ledger = current_ledger()
        form = ledger.answer_form
        if form in self._templates.by_form:
            return form.value, self._templates.by_form[form]

        # The offline reader uses no template, and a custom one may ask for anything.
        uses_template = self._model.sends_messages and not self._templates.answer.is_custom
        if form is AnswerForm.WHOLE and uses_template and self._templates.note is None:
            whose, way_out = f"prompt={self._style}", "use prompt=auto"
            if self._own_style:
                whose = f"the system's own style ({self._style})"
                way_out = "prompt=... can't change that style"

            ledger.remarks["prompt_mismatch"] = (
                f"{whose} asks for as few words as possible, but some questions ask for a "
                f"recommendation or a summary; {way_out}"
            )

        return self._style, self._templates.answer

    async def _notes(
        self, template: PromptTemplate, query: Query, context: Sequence[str]
    ) -> tuple[str, ...]:
        """The model's notes on the question, one per chunk; chunks without a note are left out.

        Source: LongMemEval (Wu et al., ICLR 2025), after Chain-of-Note (Yu et al., 2023).
        """
        notes = []
        for text in context:
            prompt = NotePrompt(
                question=query.text,
                text=text,
                asked_at=query.asked_at,
                system_text=template.system,
                user_template=template.user,
            )
            reply = await self._model.complete(prompt, role=Role.ANSWER, seed=self._seed)
            note = reply.text.strip()
            if note and note.casefold() not in NOTHING:
                notes.append(note)

        return tuple(notes)


class SilentReader:
    """The reader of a cell that only retrieves."""

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        """An empty text, and the size of the context."""
        # The context is counted for the table: its time is not the system's.
        with current_ledger().own_work.excluded():
            return ReaderReply(text="", raw=None, context_tokens=sum(map(count_tokens, context)))


def cell_reader(cell: Cell, model: LanguageModel, seed: int) -> CellReader:
    return CellReader(
        model,
        cell.templates,
        cell.style,
        seed,
        choose_tokens=cell.config.prompt.choose_tokens,
        own_style=cell.source.answer_style is not None,
    )


class BudgetedReader:
    """A reader that is shown a system's texts only up to `context_tokens=…`.

    Texts are taken whole, the most important one first: the first text that does not fit, and all
    after it, are left out.
    """

    def __init__(self, reader: Reader, most: int) -> None:
        self._reader, self._most = reader, most

    async def answer(
        self, query: Query, context: Sequence[str], *, order: Sequence[int] = ()
    ) -> ReaderReply:
        ledger = current_ledger()
        # Counting is memeval's work: its time is not the system's.
        with ledger.own_work.excluded():
            order = order or range(len(context))
            shown = fitting_texts(context, order, self._most)
            ledger.left_out = frozenset(context) - frozenset(shown)
            if context and not shown:
                ledger.remarks[NOTHING_FITS] = (
                    f"the best text is larger than context_tokens={self._most}, so none was shown"
                )

            return await self._reader.answer(query, shown)


def fitting_texts(texts: Sequence[str], order: Sequence[int], most: int) -> list[str]:
    """The texts within a budget of tokens; `order` starts with the most important one."""
    shown, size = [], 0
    for position in order:
        size += count_tokens(texts[position])
        if size > most:
            break

        shown.append(position)

    return [texts[position] for position in sorted(shown)]


def without_left_out(answer: Answer, left_out: frozenset[str]) -> Answer:
    """The answer with only those of its chunks that the reader was shown."""
    if not left_out or answer.retrieved is None:
        return answer

    kept = tuple(chunk for chunk in answer.retrieved if chunk.text not in left_out)
    return replace(answer, retrieved=kept)


def whole_reply(completion: Completion, text: str | None) -> str | None:
    """The model's whole reply if it contains more than the answer's text; most replies don't."""
    reply = completion.raw or completion.text
    return None if reply == text else reply


def final_answer(reply: str) -> str:
    """Text after the last line that begins with `Answer:`, or the whole reply.

    Punctuation around the mark is skipped, and so is a repeated mark: `Answer: Answer: 5`.
    """
    text, start = reply, 0
    # Only the last mark counts.
    for mark in _MARKED_LINE.finditer(reply):
        start = mark.end()

    if start:
        start = _after_marks(reply, start)
        while repeated := _MARK.match(reply, start):
            start = _after_marks(reply, repeated.end())

        text = reply[start:]

    # If nothing follows the mark, the whole reply is the answer.
    return text.strip().strip("*").strip() or reply.strip()


def _after_marks(text: str, start: int) -> int:
    # The pattern also matches the empty string: there is always a match.
    return _AROUND_MARK.match(text, start).end()  # type: ignore[union-attr]
