"""The working memory of chat memories: a form that a model updates after each session."""

from dataclasses import dataclass, field
from pathlib import Path

from memeval.errors import UserError
from memeval.llm.contract import Completion
from memeval.llm.form import field_names, read_form, write_form
from memeval.llm.memory_prompts import WorkingMemoryPrompt
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import batches
from memeval.records import IngestHealth, MemoryChunk
from memeval.systems.asking import ask_for
from memeval.systems.base import INGEST, POSITIVE, DumpItem, SystemContext
from memeval.systems.chunk_file import read_state, write_state
from memeval.text.shown import one_line

FORM_FILE = "working_memory.json"
TEMPLATES = ("working_memory", "working_memory_template")
"""The prompt template for filling in the form, and the form: part of a memory's identity."""


@dataclass(frozen=True)
class WorkingMemorySettings:
    template: str | None = field(default=None, metadata=INGEST)
    """Headings and lines `- Name:`, one below the other, or the path of a file that contains them.
    None uses the built-in form (memeval/llm/prompts/working_memory_template.txt).

    A path is replaced with the text of its file: the text is part of a memory's identity.
    """
    batch_tokens: int = field(default=100_000, metadata=INGEST | POSITIVE)
    """Tokens of a session that one call reads: a longer session fills the form in several calls. A
    chunk is never split.
    """

    def __post_init__(self) -> None:
        if self.template is None:
            return

        template = _template_text(self.template)
        names = field_names(template)
        if not names or len(names) != len(set(names)):
            raise UserError(
                "system.working_memory.template needs lines `- Name:` with distinct names",
                "for example:  "
                "'system.working_memory.template=\"# People\\n- Names:\\n# Ahead\\n- Plans:\"'",
                "or a file:    system.working_memory.template=my_form.txt",
            )

        # The memory's key contains the text, not the path: editing the file changes the key.
        object.__setattr__(self, "template", template)


def _template_text(given: str) -> str:
    """The text of a form that is given as text or as the path of a file."""
    # Hydra keeps a `\n` of the command line as two characters.
    text = given if "\n" in given else given.replace("\\n", "\n")
    # One line without a field can only be a path.
    if field_names(text) or "\n" in text:
        return text

    try:
        return Path(given).read_text(encoding="utf-8")
    # Neither a form nor a file. The check of the fields then describes the expected form.
    except FileNotFoundError:
        return text
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"system.working_memory.template: {one_line(given, 80)} can't be read: {reason}"
        ) from error


class WorkingForm:
    """The form of one case; a field that a reply leaves out keeps its value."""

    def __init__(self, settings: WorkingMemorySettings, parts: SystemContext) -> None:
        self._template = settings.template or load_builtin("working_memory_template").user
        self._batch_tokens = settings.batch_tokens
        self._parts = parts
        self.reset()

    def reset(self) -> None:
        self._filled: dict[str, list[str]] = {}
        self._session: list[MemoryChunk] = []
        self._replies = 0
        self._incomplete = 0
        self._ingested = 0
        self._lost = 0

    async def add(self, chunk: MemoryChunk) -> None:
        """Adds a chunk. The form is updated as soon as another session begins."""
        if self._session and self._session[0].session_id != chunk.session_id:
            await self.finish()

        self._session.append(chunk)
        self._ingested += 1

    @property
    def health(self) -> IngestHealth:
        """Counts as lost the chunks without a usable reply after a second request."""
        stored = self._ingested - self._lost
        return IngestHealth(asked=self._ingested, stored=stored, lost=self._lost)

    def _read(self, completion: Completion) -> dict[str, list[str]] | None:
        """The fields that a reply fills in; None without any, or if it was cut before the last."""
        filled = read_form(self._template, completion.text)
        # The prompt lists the fields in the form's order, so a cut reply with the last one has them
        # all.
        if completion.cut and field_names(self._template)[-1] not in filled:
            return None

        return filled or None

    async def finish(self) -> None:
        """Updates the form with the current session; without a usable reply it stays unchanged."""
        texts = [chunk.text for chunk in self._session]
        self._session = []
        model, seed, template = self._parts.model, self._parts.seed, load_builtin("working_memory")
        for batch in batches(texts, str, self._batch_tokens):
            prompt = WorkingMemoryPrompt(
                template=self._template,
                previous=self.text,
                chunks=tuple(batch),
                system_text=template.system,
                user_template=template.user,
            )
            filled = await ask_for(model, prompt, seed=seed, read=self._read)
            self._replies += 1
            if filled is None:
                self._lost += len(batch)
                continue

            self._incomplete += len(filled) < len(field_names(self._template))
            self._filled |= filled

    @property
    def text(self) -> str:
        """The form as a reader sees it; empty while nothing is filled in."""
        if not any(self._filled.values()):
            return ""

        return write_form(self._template, self._filled)

    @property
    def notes(self) -> dict[str, str]:
        if not self._incomplete:
            return {}

        replies = f"{self._incomplete} of {self._replies} replies left fields out"
        return {"working memory": f"{replies}, which kept their old content"}

    def dump(self) -> list[DumpItem]:
        """Each line of a field that is filled in."""
        items: list[DumpItem] = []
        for name, lines in self._filled.items():
            items += [{"kind": "working_memory", "field": name, "text": line} for line in lines]

        return items

    def save(self, folder: Path) -> None:
        state = {"filled": self._filled, "replies": self._replies, "incomplete": self._incomplete}
        write_state(folder / FORM_FILE, state)

    def load(self, folder: Path) -> None:
        state = read_state(folder / FORM_FILE)
        self._filled = state["filled"]
        self._replies = state["replies"]
        self._incomplete = state["incomplete"]
