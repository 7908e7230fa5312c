"""Traces of the values that a question is judged by, outside the answer itself."""

import json
from collections.abc import Mapping, Sequence

from memeval.llm.contract import AnswerPrompt, ChoosePrompt, ToolPrompt
from memeval.llm.metering import Ledger, metered
from memeval.metrics.lifecycle import CONTEXT, FORGETEVAL, PROBE, SEARCH, STORE
from memeval.pipeline.execute.timeline import search_for
from memeval.pipeline.isolate.returned import plain_notes
from memeval.pipeline.isolate.watch import Watched
from memeval.records import Answer, Traces
from memeval.text.value_search import values_in


async def find_traces(
    watched: Watched, traces: Traces, answer: Answer, ledger: Ledger
) -> Mapping[str, tuple[str, ...]]:
    """Values found at each level that can be inspected; the answer's costs don't include this."""
    if traces.kind == FORGETEVAL:
        return await _find_strings(watched, traces)

    seen = {}
    shown = _shown_chunks(answer, ledger)
    if shown is not None:
        seen[CONTEXT] = values_in(traces.values, *shown)

    if not traces.unwanted:
        return seen

    results = await search_for(watched, traces.probes)
    if results is not None:
        seen[PROBE] = values_in(traces.unwanted, *results)

    with metered(Ledger()):
        items = await watched.call("dump")

    if items is not None:
        texts = [json.dumps(plain_notes(item), ensure_ascii=False) for item in items]
        # A list may contain only a part of what is stored, such as notes: a value that a search
        # found is also stored.
        seen[STORE] = values_in(traces.unwanted, *texts, *(results or ()))

    return seen


async def _find_strings(watched: Watched, traces: Traces) -> Mapping[str, tuple[str, ...]]:
    """As ForgetEval does: strings in the results of the question (first probe) and the others."""
    results = []
    for words in traces.probes:
        texts = await search_for(watched, [words])
        # A system that can't be searched returns None each time.
        if texts is not None:
            results.append("\n".join(texts).casefold())

    seen = {}
    if results:
        seen[SEARCH] = _contained(traces.values, results[:1])
    if results[1:]:
        seen[PROBE] = _contained(traces.deleted, results[1:])

    return seen


def _contained(values: Sequence[str], folded_texts: Sequence[str]) -> tuple[str, ...]:
    contained = []
    for value in values:
        folded = value.casefold()
        if any(folded in text for text in folded_texts):
            contained.append(value)

    return tuple(contained)


def _shown_chunks(answer: Answer, ledger: Ledger) -> Sequence[str] | None:
    """Chunks that the reader saw; None if the system does not report them."""
    if ledger.answered is not None:
        prompt = ledger.answered.prompt
        if isinstance(prompt, AnswerPrompt | ChoosePrompt | ToolPrompt):
            return prompt.context

    if answer.context_tokens == 0:
        return ()
    if answer.retrieved is None:
        return None

    return [chunk.text for chunk in answer.retrieved]
