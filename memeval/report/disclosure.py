"""The six facts without which a figure means nothing: data, questions, judge, reader, the reader's
context, and the error.
"""

from __future__ import annotations

from memeval.metrics.formats import NONE, count, interval, percent
from memeval.results import CategoryResult, RunSummary, is_imported
from memeval.text.shown import one_line

_LIMITS = (
    "dataset.limit_cases",
    "dataset.limit_questions",
    "dataset.sample",
    "dataset.question_ids",
    "dataset.only",
    "dataset.split",
)
"""Settings that restrict a run to a part of the questions."""


def disclosures(summary: RunSummary) -> dict[str, str]:
    """Disclosures of a run, by aspect."""
    return {
        "data": _data(summary),
        "questions": _questions(summary),
        "judge": _judge(summary),
        "reader": _reader(summary),
        "retrieval": _retrieval(summary),
        "error": _error(summary),
    }


def _version(summary: RunSummary) -> str:
    """Version of a frozen data set; empty for others."""
    version = summary.tags.get("data_version")
    return "" if version is None else f"version {one_line(version)}"


def _data(summary: RunSummary) -> str:
    tags = summary.tags
    parts = [
        " ".join(filter(None, [one_line(summary.dataset), _version(summary)])),
        f"sha256 {one_line(tags.get('data_sha256', NONE))}",
        f"labels {one_line(summary.params.get('dataset.labels', 'original'))}",
    ]
    if tags.get("data_pinned") == "false":
        parts.append("not the registered file")
    if tags.get("data_excerpt") == "true":
        parts.append("an excerpt")
    if tags.get("data_derived") == "true":
        parts.append("derived")
    if tags.get("data_drafted") == "true":
        parts.append("unreviewed questions drafted by a model")

    return ", ".join(parts)


def _questions(summary: RunSummary) -> str:
    counted = [row for row in summary.categories if row.headline]
    others = [row for row in summary.categories if not row.headline]
    named = ", ".join(f"{_category(row)} {row.n:,}" for row in counted)
    text = f"{count(summary.metrics.get('n_questions'))} ({named})"
    if others:
        apart = ", ".join(map(_category, others))
        text += f"; reported separately: {apart}"

    limits = [
        f"{name}={one_line(summary.params[name], 80)}"
        for name in _LIMITS
        if summary.params.get(name) not in (None, "all")
    ]
    if summary.params.get("system.only_listed"):
        limits.append("only the questions listed in the answer file")

    return "; ".join([text, *limits])


def _category(row: CategoryResult) -> str:
    """Id and name of a category, or only one of them if they are equal."""
    return " ".join(dict.fromkeys((one_line(row.category), one_line(row.name))))


def _judge(summary: RunSummary) -> str:
    judge = summary.judge
    if summary.only_retrieves:
        return "none: nothing was judged"
    if judge is None or not judge.is_named:
        return NONE
    if summary.has_recorded_verdicts:
        recorded = "recorded in the answer file; prompt not disclosed"
        return f"{one_line(judge.model)}, {recorded}"
    if judge.prompt_sha256 is None:
        return f"{one_line(judge.shown)}, not a language model"

    sent = ", ".join(f"{name} {one_line(value)}" for name, value in judge.request.items())
    return (
        f"{one_line(judge.name)}, {one_line(judge.model)}, prompt sha256 "
        f"{one_line(judge.prompt_sha256)}, {judge.repeats} per answer"
        + (f"; sent: {sent}" if sent else "")
    )


def _reader(summary: RunSummary) -> str:
    params = summary.params
    if summary.only_retrieves:
        return "none: nothing was answered"
    if is_imported(summary):
        return "another program: its answers were imported"

    model = one_line(params.get("llm.model") or params.get("llm", NONE))
    if summary.has_deterministic_reader:
        model += " (offline, not a language model)"

    temperature = params.get("llm.temperature")
    warmth = "" if temperature is None else f", temperature {one_line(temperature)}"
    prompt = f"prompt {one_line(params.get('prompt', NONE))}"
    return f"{model}{warmth}, {prompt} sha256 {one_line(summary.tags.get('prompt_sha256', NONE))}"


def _retrieval(summary: RunSummary) -> str:
    if is_imported(summary):
        return "another program: its retrieval is not in the answer file"

    get = summary.params.get
    tokens = count(summary.metrics.get("context_tokens"))
    return (
        f"{one_line(get('system', NONE))}, top_k {one_line(get('top_k', NONE))} "
        f"of {one_line(get('granularity', NONE))}, {tokens} tokens of context per question, "
        f"compression {one_line(get('compression_turn', NONE))}"
    )


def _error(summary: RunSummary) -> str:
    get = summary.metrics.get
    repeats = max(len(summary.repeats), 1)
    bounds = interval(*summary.share()[1:])
    # Not 0: one repeat says nothing about the spread over repeats.
    deviation = "unknown (only 1 repeat)"
    if repeats > 1:
        deviation = f"{percent(get('accuracy_std'))} ({repeats} repeats)"

    return (
        f"95 % interval over conversations {bounds}; re-run std {deviation}; "
        f"coverage {percent(get('coverage'))} %"
    )
