"""The six facts that every figure needs: data, questions, judge, reader, the reader's context, and
the error.
"""

from memeval.metrics.formats import NONE, count, coverage_percent, interval, percent
from memeval.results import RunSummary, is_imported
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


def _data(summary: RunSummary) -> str:
    tags = summary.tags
    dataset = one_line(summary.dataset)
    # Only a frozen data set has a version.
    if "data_version" in tags:
        dataset += f" version {one_line(tags['data_version'])}"

    parts = [
        dataset,
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
    counted, others = [], []
    for row in summary.categories:
        # Id and name, or only one of them if they are equal.
        category = " ".join(dict.fromkeys((one_line(row.category), one_line(row.name))))
        if row.headline or summary.only_retrieves:
            counted.append(f"{category} {row.n:,}")
        else:
            others.append(category)

    parts = [f"{count(summary.asked)} ({', '.join(counted)})"]
    if others:
        parts.append(f"reported separately: {', '.join(others)}")

    for name in _LIMITS:
        value = summary.params.get(name)
        if value not in (None, "all"):
            parts.append(f"{name}={one_line(value, 80)}")

    if summary.params.get("system.only_listed"):
        parts.append("only the questions listed in the answer file")

    return "; ".join(parts)


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

    text = (
        f"{one_line(judge.name)}, {one_line(judge.model)}, prompt sha256 "
        f"{one_line(judge.prompt_sha256)}, {judge.repeats} per answer"
    )
    sent = ", ".join(f"{name} {one_line(value)}" for name, value in judge.request.items())
    return f"{text}; sent: {sent}" if sent else text


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
    if temperature is not None:
        model += f", temperature {one_line(temperature)}"

    if summary.reads_by_tools:
        model += ", through the memory's tools"

    prompt = f"prompt {one_line(summary.prompt_name or NONE)}"
    # One digest for each of its templates.
    digests = one_line(summary.tags.get("prompt_sha256", NONE), 1_000)
    return f"{model}, {prompt} sha256 {digests}"


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
    # Not 0: one repeat has no spread over repeats.
    deviation = "unknown (only 1 repeat)"
    if repeats > 1:
        deviation = f"{percent(get('accuracy_std'))} ({repeats} repeats)"

    return (
        f"95 % interval over conversations {bounds}; re-run std {deviation}; "
        f"coverage {coverage_percent(get('coverage'))} %"
    )
