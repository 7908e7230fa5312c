"""A language model with scripted replies, in process."""

from collections.abc import Callable

from memeval.errors import ModelError
from memeval.llm.contract import Completion, Prompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.records import Role, Usage

Reply = Callable[[Prompt], str]


class ScriptedModel(LanguageModel):
    """Replies with `reply` applied to a prompt, or like `inner`: the offline reader by default.

    It keeps every prompt, and reports one token per call.
    """

    name = "scripted"
    deterministic = True

    def __init__(
        self, reply: Reply | None = None, *, fails: bool = False, inner: LanguageModel | None = None
    ) -> None:
        self._reply, self._fails = reply, fails
        self._inner = inner or ExtractiveModel()
        self.prompts: list[tuple[Role, Prompt]] = []
        """The prompts, in order."""

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        self.prompts.append((role, prompt))
        if self._fails:
            raise ModelError("the scripted model fails")

        if self._reply:
            text = self._reply(prompt)
        else:
            text = (await self._inner.complete(prompt, role=role, seed=seed)).text

        # Added to the ledger, as a metered model does: the rules count calls there.
        usage = Usage(role, self.name, "offline", 1, 1)
        current_ledger().usages.append(usage)
        return Completion(text, usage, 0.0)
