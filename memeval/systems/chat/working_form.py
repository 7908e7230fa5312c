"""The working memory of the chat-memory configurations: a form that the model brings up to date after each session."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from memeval.errors import UserError
from memeval.llm.contract import Completion
from memeval.llm.form import field_names, read_form, write_form
from memeval.llm.memory_prompts import WorkingMemoryPrompt
from memeval.prompts import load_builtin
from memeval.records import IngestHealth, MemoryChunk
from memeval.systems.asking import asked
from memeval.systems.base import INGEST, SystemContext

FORM_FILE = "working_memory.json"
TEMPLATES = ("working_memory", "working_memory_template")
"""The words under which a model fills the form, and our own template: both are part of a memory's identity."""


@dataclass(frozen=True)
class WorkingMemorySettings:
    """Settings `working_memory.*`."""

    template: str | None = field(default=None, metadata=INGEST)
    """Headings and lines `- Name:`, one below the other; None takes ours (memeval/prompts/working_memory_template.txt)."""

    def __post_init__(self) -> None:
        if self.template is None:
            return
        names = field_names(self.template)
        if not names or len(names) != len(set(names)):
            raise UserError(
                "system.working_memory.template needs lines `- Name:`, each name once",
                "for example:  'system.working_memory.template=\"# People\\n- Names:\\n# Ahead\\n- Plans:\"'",
            )


class WorkingForm:
    """The form of one case. A field that a reply leaves out keeps what it held, so that no reply can lose the template."""

    def __init__(self, settings: WorkingMemorySettings, parts: SystemContext) -> None:
        self._template = settings.template or load_builtin("working_memory_template").user
        self._parts = parts
        self.reset()

    def reset(self) -> None:
        self._filled: dict[str, list[str]] = {}
        self._session: list[MemoryChunk] = []
        self._replies = 0
        self._incomplete = 0
        self._units = 0
        self._lost = 0

    async def add(self, unit: MemoryChunk) -> None:
        """Takes a unit in; the session before is worked through as soon as another one begins."""
        if self._session and self._session[0].session_id != unit.session_id:
            await self.finish()
        self._session.append(unit)
        self._units += 1

    @property
    def health(self) -> IngestHealth:
        """Units of sessions for which no reply held a field of the form, after it was asked for once more."""
        return IngestHealth(asked=self._units, stored=self._units - self._lost, lost=self._lost)

    def _read(self, completion: Completion) -> dict[str, list[str]] | None:
        """What a reply fills in; None where it holds no field, or was cut before the last."""
        filled = read_form(self._template, completion.text)
        names = field_names(self._template)
        whole = not completion.cut or names[-1] in filled
        return filled if filled and whole else None

    async def finish(self) -> None:
        """Works through the open session."""
        if not self._session:
            return
        template, units = load_builtin("working_memory"), tuple(unit.text for unit in self._session)
        prompt = WorkingMemoryPrompt(
            self._template, self.text, units, template.system, template.user
        )
        filled = await asked(self._parts.model, prompt, seed=self._parts.seed, read=self._read)
        self._replies += 1
        if filled is None:  # the form keeps what it held
            self._lost += len(units)
            self._session = []
            return
        self._incomplete += len(filled) < len(field_names(self._template))
        self._filled |= filled
        self._session = []

    @property
    def text(self) -> str:
        """The form as a reader sees it; empty while nothing is filled in."""
        return write_form(self._template, self._filled) if any(self._filled.values()) else ""

    @property
    def notes(self) -> dict[str, str]:
        """What a report should say of it."""
        if not self._incomplete:
            return {}
        return {
            "working memory": f"{self._incomplete} of {self._replies} replies left fields out, which kept what they held"
        }

    def save(self, folder: Path) -> None:
        state = {"filled": self._filled, "replies": self._replies, "incomplete": self._incomplete}
        (folder / FORM_FILE).write_text(json.dumps(state, ensure_ascii=False), encoding="utf-8")

    def load(self, folder: Path) -> None:
        state = json.loads((folder / FORM_FILE).read_text(encoding="utf-8"))
        self._filled, self._replies, self._incomplete = (
            state["filled"],
            state["replies"],
            state["incomplete"],
        )
