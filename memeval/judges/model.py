"""The judges that use models, and their base class: the call, the votes and unreadable replies."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, Self

from memeval.config.schema import JudgeConfig
from memeval.judges.contract import Judge, JudgeContext, Metrics, is_fenced
from memeval.llm.contract import Completion, JudgePrompt
from memeval.llm.metering import current_ledger
from memeval.llm.model import LanguageModel
from memeval.llm.prompts import (
    PromptTemplate,
    from_file,
    join_parts,
    load_builtin,
    sections_from_file,
)
from memeval.records import AnswerKind, EvalQuestion, Label, Role, Verdict

TRIES = 2
"""Replies requested in one pass before an answer is left unscored."""
CUT = "length"
WITHHELD = "content_filter"
"""Finish reasons of a reply that is not complete."""
SHOWN = 200
"""Characters of an unreadable reply that its reason quotes."""

VerdictReader = Callable[[Completion], Verdict | None]
"""Reads the verdict in a reply; None if it can't be read. It is not called for a cut reply, unless
the prompt has a limit of tokens.
"""


class ModelJudge(Judge):
    """Asks a model for one JSON object with a `label`.

    After a reply that is cut or has another form, the model is asked once more. If that fails too,
    the answer is unscored; a label is never guessed.
    """

    needs_model = True
    says_yes_or_no: ClassVar[bool] = False
    """Whether replies, or some of them, are yes or no, and are read as `judge.reading` says."""
    counts_rubrics: ClassVar[bool] = False
    """Whether it judges by the items of a rubric, which are counted as `judge.scoring` says."""
    kinds: ClassVar[tuple[str, ...]] = ()
    """Parts of its prompt template; empty if it has only one. A user's file must have a section for
    each.
    """
    fields: ClassVar[tuple[str, ...]] = ("question", "gold", "answer")
    """Fields that a user's template must have."""
    prompts: ClassVar[str] = "memeval.llm.prompts"
    """Package that contains its built-in template."""

    def __init__(
        self,
        model: LanguageModel,
        template: PromptTemplate,
        seed: int = 0,
        settings: JudgeConfig | None = None,
    ) -> None:
        self._model, self._template, self._seed = model, template, seed
        self._settings = settings or JudgeConfig()
        self._fenced = is_fenced(self._settings, template)

    @classmethod
    def template(cls, prompt_file: str | None) -> PromptTemplate:
        """The built-in template, or that of a user's file.

        Raises `UserError` if that file can't be read, or lacks a section or a field.
        """
        if prompt_file and cls.kinds:
            return sections_from_file(prompt_file, cls.kinds, cls.fields)
        if prompt_file:
            return from_file(prompt_file, cls.fields)

        name = f"judge_{cls.name}"
        if cls.kinds:
            return join_parts(name, cls.parts())

        return load_builtin(name, cls.prompts)

    @classmethod
    def parts(cls) -> dict[str, PromptTemplate]:
        """The built-in template of each kind."""
        return {kind: load_builtin(f"judge_{cls.name}_{kind}", cls.prompts) for kind in cls.kinds}

    @classmethod
    def build(cls, context: JudgeContext) -> Self:
        assert context.template is not None, "a model judge has a template"
        return cls(context.model(), context.template, context.seed, context.settings)

    async def judge(
        self, question: EvalQuestion, answer: str, metrics: Metrics, tried: int = 0
    ) -> Verdict:
        prompt = self._prompt(question, answer, self._template)
        return await self._take_votes(prompt, lambda reply: self._read(reply, prompt), tried)

    def _read(self, reply: Completion, prompt: JudgePrompt) -> Verdict | None:
        """The verdict in a reply; None if it can't be read."""
        # Imported late: its patterns are slow to compile, and a finished run may not need them.
        from memeval.judges.reading import read_label, read_reason

        label = read_label(
            reply.whole, answer=prompt.answer, prompt=prompt.template, quotable=prompt.quotable
        )
        if label is None:
            return None

        right = label is Label.CORRECT
        reason = read_reason(reply.whole, answer=prompt.answer, quotable=prompt.quotable)
        return self.verdict(prompt.answer, right=right, score=float(right), reason=reason)

    def _prompt(
        self,
        question: EvalQuestion,
        answer: str,
        template: PromptTemplate,
        max_tokens: int | None = None,
        words: tuple[str, str] = ("yes", "no"),
    ) -> JudgePrompt:
        fence, user_template = "", template.user
        if self._fenced:
            fence = fence_for(question, answer, self._seed)
        if words != ("yes", "no"):
            user_template += f'\nWrite "{words[0]}" for yes and "{words[1]}" for no: one word.'

        return JudgePrompt(
            question=question.text,
            gold=question.gold,
            answer=answer,
            system_text=template.system,
            user_template=user_template,
            max_tokens=max_tokens,
            fence=fence,
            words=words,
        )

    async def _take_votes(self, prompt: JudgePrompt, read: VerdictReader, tried: int) -> Verdict:
        """The verdict of the majority of all votes; without a majority the answer is unscored."""
        votes, tries = await self._vote_all(prompt, read, tried)
        if len(votes) == 1:
            return votes[0]

        labels = tuple(vote.label for vote in votes)
        label, count = Counter(labels).most_common(1)[0]
        # More than half of all votes, the unreadable ones included.
        if label is Label.UNSCORED or 2 * count <= len(votes):
            return self.unscored(f"no majority: {', '.join(labels)}", tries=tries, votes=labels)

        winners = [vote for vote in votes if vote.label is label]
        score = sum(vote.score or 0.0 for vote in winners) / len(winners)
        return replace(winners[0], score=score, votes=labels, tries=tries)

    async def _vote_all(
        self, prompt: JudgePrompt, read: VerdictReader, tried: int
    ) -> tuple[list[Verdict], int]:
        """One vote per repeat, and the largest number of unreadable replies before a vote."""
        votes, most_tries = [], 0
        for number in range(self._settings.repeats):
            vote = await self._vote(prompt, read, number=number, tries=tried + TRIES)
            votes.append(vote)
            most_tries = max(most_tries, vote.tries)

        return votes, most_tries

    async def _vote(
        self, prompt: JudgePrompt, read: VerdictReader, *, number: int, tries: int
    ) -> Verdict:
        """One vote: the first readable reply of up to `tries`. Earlier ones are in the cache."""
        text = ""
        for attempt in range(tries):
            with _sample(number, attempt):
                reply = await self._model.complete(
                    prompt, role=Role.JUDGE, seed=_seed_of(self._seed, number, attempt)
                )

            # The word can be complete even if the reply reached its one-word limit.
            is_word = prompt.max_tokens is not None and reply.finish_reason == CUT
            is_cut = reply.finish_reason in (CUT, WITHHELD)
            verdict = read(reply) if is_word or not is_cut else None
            if verdict is not None:
                return replace(verdict, tries=attempt)

            text = reply.text
            if is_cut:
                text = f"{reply.finish_reason}: {text}"

        return self.unscored(f"can't be read: {text[:SHOWN]}", tries=tries)


class StrictJudge(ModelJudge):
    """Right only if the answer states the gold; vague, partial and hedged answers are wrong."""

    name = "llm"
    usual_for = frozenset({AnswerKind.SENTENCES})


# Lenient, as published: such a judge accepts 10.6 % of specific wrong answers and 62.8 % of vague
# ones, so it is never the default.
class Mem0Judge(ModelJudge):
    """Right as long as the answer touches on the gold's topic: for comparison with figures that
    were made with such a judge. Source: Chhikara et al., 2025.
    """

    name = "mem0"


@contextmanager
def _sample(number: int, attempt: int) -> Iterator[None]:
    """Makes the calls in the block a separate sample.

    The cache then returns neither another vote's reply nor an unreadable one.
    """
    ledger = current_ledger()
    scope = ledger.scope
    if number or attempt:
        ledger.scope = f"{scope} judging {number} attempt {attempt}"

    try:
        yield
    finally:
        ledger.scope = scope


def _seed_of(seed: int, number: int, attempt: int) -> int:
    """The seed of a reply: the repeat's own seed for the first one."""
    # Later replies need another seed: an endpoint that uses seeds would repeat the same reply.
    if not number and not attempt:
        return seed

    digest = hashlib.sha256(f"{seed}/{number}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def fence_for(question: EvalQuestion, answer: str, seed: int) -> str:
    """Suffix of the names of the marks around question, gold and answer, such as
    `3f9a1c0b7d52e864`. The marks keep the model from reading these texts as instructions.

    It is the same for the same question, answer and seed, so the cache finds the prompt again.
    """
    # It is a digest of all three, so no text can contain its own mark: inserting the mark changes
    # the digest.
    texts = (question.text, *question.gold, answer)
    for attempt in range(100):
        content = json.dumps(
            [question.question_id, question.text, list(question.gold), answer, seed, attempt]
        )
        name = hashlib.sha256(content.encode()).hexdigest()[:16]
        if not any(name in text for text in texts):
            return name

    raise AssertionError("a text holds a hundred digests of itself")
