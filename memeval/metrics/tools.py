"""A model's use of a memory's tools: reading for a question, and writing.

Only runs under `reader=tools` and `writer=tools` have these figures.
"""

from collections.abc import Callable
from itertools import chain

from memeval.metrics.formats import decimals
from memeval.metrics.metric import PAGE, POINTS, REPORT, SHOW, TABLE, Metric, Unit
from memeval.results import Record
from memeval.results.steps import StepCall

STEPS = Unit("steps", short=decimals, full=decimals)
CALLS = Unit("calls", short=decimals, full=decimals)
ERRORS = Unit("errors", short=decimals, full=decimals)
COUNTED = Unit("count")
WRITE_RECALL = "write_recall"
OPTIONAL = (TABLE, PAGE, SHOW, REPORT)


def evidence_seen(record: Record) -> float | None:
    """Share of the evidence turns that at least one tool result shows.

    These are the turns that the tool names, or otherwise those that the result quotes (see
    `memeval.metrics.quotation`). None without evidence.
    """
    evidence = set(record.evidence)
    if not evidence:
        return None

    seen: set[str] = set()
    for call in _calls(record):
        seen.update(call.turn_ids or ())

    return len(evidence & seen) / len(evidence)


def _calls(record: Record) -> list[StepCall]:
    return list(chain.from_iterable(step.calls for step in record.steps))


def _count(record: Record) -> float:
    return float(len(_calls(record)))


def _errors(record: Record) -> float:
    return float(sum(call.fault is not None for call in _calls(record)))


def _read_metric(
    name: str,
    read: Callable[[Record], float | None],
    title: str,
    *,
    unit: Unit,
    places: tuple[str, ...] = (PAGE,),
    more_is_better: bool = False,
    hint: str = "",
) -> Metric:
    """A figure of the questions that were answered by tools."""

    def read_steps(record: Record) -> float | None:
        if record.steps:
            return read(record)

        return None

    return Metric(
        name,
        unit,
        of_record=read_steps,
        averaged=False,
        all_categories=True,
        more_is_better=more_is_better,
        columns=dict.fromkeys(places, title),
        lines={SHOW: title, REPORT: title},
        optional=OPTIONAL,
        hint=hint,
    )


def _write_metric(name: str, title: str, unit: Unit = COUNTED) -> Metric:
    return Metric(
        name,
        unit,
        more_is_better=False,
        columns={PAGE: title},
        lines={SHOW: title, REPORT: title},
        optional=OPTIONAL,
    )


METRICS = (
    _read_metric(
        "steps",
        lambda record: float(len(record.steps)),
        "steps",
        unit=STEPS,
        hint="replies per question",
    ),
    _read_metric(
        "tool_calls",
        _count,
        "tool calls",
        unit=CALLS,
        places=(TABLE, PAGE),
        hint="per question",
    ),
    _read_metric(
        "tool_errors",
        _errors,
        "tool errors",
        unit=ERRORS,
        hint="calls without a result, per question",
    ),
    _read_metric(
        "without_call",
        lambda record: float(not _calls(record)),
        "no call",
        unit=POINTS,
        hint="questions answered without any call",
    ),
    _read_metric(
        "at_step_limit",
        lambda record: float(record.step_limit),
        "at the limit",
        unit=POINTS,
        hint="questions whose model had to answer because a limit was reached",
    ),
    _read_metric(
        "evidence_seen",
        evidence_seen,
        "evidence seen",
        unit=POINTS,
        places=(TABLE, PAGE),
        more_is_better=True,
        hint="share of the evidence turns that tool results show",
    ),
    Metric(
        WRITE_RECALL,
        of_record=lambda record: record.metrics.get(WRITE_RECALL),
        averaged=False,
        all_categories=True,
        columns={TABLE: "write recall", PAGE: "write recall"},
        lines={SHOW: "write recall", REPORT: "write recall"},
        optional=OPTIONAL,
        hint="share of the evidence turns that the written memory quotes",
    ),
    _write_metric("write_calls", "writer's calls"),
    _write_metric("writes", "writes"),
    _write_metric("write_errors", "writer's errors"),
    _write_metric("write_items", "items written"),
    _write_metric("write_kept", "written of read", POINTS),
)
