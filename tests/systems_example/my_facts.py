"""A memory system that asks a model for the facts in each chunk."""

from __future__ import annotations

import json

from memeval.llm.contract import ChatPrompt, Completion
from memeval.records import IngestHealth, MemoryChunk, Query, Retrieved
from memeval.systems.asking import ask_for
from memeval.systems.base import RecallSystem

INSTRUCTIONS = 'Reply with the facts in this message, as JSON: {"facts": ["...", "..."]}'


def read_facts(completion: Completion) -> list[str] | None:
    """The facts in a reply; None if the model should be asked once more."""
    text = completion.text
    try:
        facts = json.loads(text[text.index("{") : text.rindex("}") + 1])["facts"]
    except (ValueError, KeyError):
        return None

    return [str(fact) for fact in facts]


class Facts(RecallSystem):
    """Facts instead of messages, ranked by the words that they share with the question."""

    @classmethod
    def needs_language_model(cls, settings: object) -> bool:
        return True  # llm=extractive can't answer your own prompts

    def reset(self) -> None:
        self.facts: list[Retrieved] = []
        self.asked = self.lost = 0

    async def ingest(self, chunk: MemoryChunk) -> None:
        prompt = ChatPrompt(
            (
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": chunk.text},
            )
        )
        facts = await ask_for(self.parts.model, prompt, seed=self.parts.seed, read=read_facts)
        self.asked += 1
        self.lost += facts is None
        self.facts += [
            Retrieved(text=fact, turn_ids=chunk.turn_ids, time=chunk.time) for fact in facts or ()
        ]

    def health(self) -> IngestHealth:
        return IngestHealth(asked=self.asked, stored=self.asked - self.lost, lost=self.lost)

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        words = set(query.text.lower().split())
        ranked = sorted(self.facts, key=lambda fact: -len(words & set(fact.text.lower().split())))
        return ranked[:depth]
