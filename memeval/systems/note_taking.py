"""Notes that a model takes on what was said, within a budget."""

from __future__ import annotations

from memeval.llm.contract import Completion
from memeval.llm.memory_prompts import NotesPrompt
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import count_tokens
from memeval.systems.asking import ask_for
from memeval.systems.base import SystemContext
from memeval.systems.chat.summarization import shorten

NOTHING = "(nothing)"
"""The reply that the templates ask for if there is nothing to note."""


async def take_notes(
    parts: SystemContext, template_name: str, *, before: str, said: tuple[str, ...], budget: int
) -> str | None:
    """The model's notes, of `budget` tokens; empty for nothing, None if replies are useless."""
    template = load_builtin(template_name)
    prompt = NotesPrompt(
        before=before,
        said=said,
        budget_tokens=budget,
        system_text=template.system,
        user_template=template.user,
    )
    deterministic = parts.model.deterministic

    def read(completion: Completion) -> str | None:
        text = completion.text.strip()
        # The offline reader can't say so in words: its reply is then empty.
        if text == NOTHING or (deterministic and not text):
            return ""

        return shorten(text, budget) or None

    return await ask_for(
        parts.model,
        prompt,
        seed=parts.seed,
        read=read,
        holds_enough=lambda completion: count_tokens(completion.text.strip()) >= budget,
    )
