"""Language models: their interface, and a wrapper that counts a model's calls."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

from msgspec import UNSET
from msgspec.structs import replace

from memeval.config.schema import LlmConfig
from memeval.errors import WorldError
from memeval.llm.contract import Completion, Prompt
from memeval.llm.metering import Answered, current_ledger
from memeval.llm.reply.body import CutReplyError, FilteredReplyError
from memeval.records import Role

if TYPE_CHECKING:
    from memeval.llm.network import Network


class LanguageModel(ABC):
    """A model that completes typed prompts. Raises `ModelError` if a call failed."""

    name: str
    """Name shown in reports."""
    deterministic: bool = False
    """Whether equal prompts give equal replies under every seed."""
    sends_messages: bool = True
    """False for the offline reader, which reads the typed prompt and never sends its messages."""

    @classmethod
    def from_settings(cls, settings: LlmConfig, role: str, network: "Network") -> Self:
        """Creates the model with the settings of a role: `llm`, `llm.ingest` or `llm.judge`.

        Called for models from packages. `network` has the run's endpoints and caches. Raises
        `UserError` for unusable settings. Default: created without arguments.
        """
        return cls()

    @abstractmethod
    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        """One reply to `prompt`, metered as `role`; `seed` distinguishes repeats."""

    def forget(self, completion: Completion) -> None:
        """Drops an unusable reply from the cache, so that the next call requests it again."""


class MeteredModel(LanguageModel):
    """A model whose calls are counted in the current ledger."""

    def __init__(self, inner: LanguageModel) -> None:
        self._inner = inner
        self.name, self.deterministic = inner.name, inner.deterministic
        self.sends_messages = inner.sends_messages

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        ledger = current_ledger()
        try:
            with ledger.calling():
                completion = await self._inner.complete(prompt, role=role, seed=seed)
        # Both are subclasses of `WorldError`, caught first because the endpoint did answer.
        except CutReplyError:
            ledger.note_end(role, "length")
            raise
        except FilteredReplyError:
            ledger.note_end(role, "content_filter")
            raise
        except WorldError:
            ledger.failed += 1
            raise

        ledger.usages.append(completion.usage)
        ledger.add_duration(role, completion.latency_s)
        if role is Role.ANSWER:
            ledger.answered = Answered(prompt, completion, sent=self.sends_messages)

        finish_reason = completion.finish_reason
        # A protocol's low limit is meant to be reached: such a reply is complete.
        if completion.cut and prompt.bounded:
            finish_reason = "stop"

        ledger.note_end(role, finish_reason)
        ledger.repairs.update(completion.notes)

        return completion

    def forget(self, completion: Completion) -> None:
        usages = current_ledger().usages
        if completion.usage in usages:
            # The same request, if it is sent again, is billed again.
            position = usages.index(completion.usage)
            usages[position] = replace(completion.usage, requests=UNSET)

        self._inner.forget(completion)
