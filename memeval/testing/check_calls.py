"""Rules of calls: each is metered once, and one that fails becomes an error."""

from memeval.errors import ModelError
from memeval.llm.metering import Ledger, metered
from memeval.systems.base import NOISE, TRIED_AGAIN
from memeval.testing.model import ScriptedModel
from memeval.testing.under_test import NotApplicableError, SystemUnderTest, ViolationError, expect


async def works_without_a_fault(sut: SystemUnderTest) -> None:
    with metered(Ledger()) as ledger:
        await sut.ask_all(await sut.fill_system())

    for remark in (TRIED_AGAIN, NOISE):
        noted = ledger.remarks.get(remark, "")
        expect(not noted, noted, "every request answered the first time, and nothing else written")


async def usage_adds_up(sut: SystemUnderTest) -> None:
    model = sut.model()
    with metered(Ledger()) as ledger:
        await sut.ask_all(await sut.fill_system(model, compress_after=(6,)))

    # Only the cell's model: a system's own calls can't be counted from outside.
    counted = sum(usage.calls for usage in ledger.usages if usage.model == model.name)
    expect(
        counted == len(model.prompts),
        f"usage of {counted} calls for {len(model.prompts)}",
        "one usage per call",
    )


async def failure_is_not_an_answer(sut: SystemUnderTest) -> None:
    if sut.silent():
        raise NotApplicableError("it never calls the run's model or reader")

    try:
        await sut.ask_all(await sut.fill_system(ScriptedModel(fails=True), compress_after=(6,)))
    except ModelError:
        return

    raise ViolationError("an answer although the model failed", "an error")
