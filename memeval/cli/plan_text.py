"""A forecast as lines for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memeval.comparison.tables import align
from memeval.metrics.formats import count, dollars, percent, short_count
from memeval.runs.display.live import duration
from memeval.runs.forecast.forecast import Forecast
from memeval.runs.forecast.outlook import Outlook
from memeval.runs.forecast.totals import Estimate, RoleTotal
from memeval.text.shown import counted, one_line

STAGES = {"prepare": "memories", "answer": "answers", "judge": "verdicts"}


def plan_lines(result: Forecast) -> list[str]:
    """Work of a plan, its cost, and the differences it could show."""
    rows = [["", "all", "finished", "left"]]
    rows.append(_remainder_row("runs", result.cells, result.finished_cells))
    for stage, name in STAGES.items():
        units = result.units[stage]
        rows.append(_remainder_row(name, units.count, units.finished))

    lines = [*align(rows), "", *call_lines(result.estimate)]
    if result.outlooks:
        lines += ["", *map(outlook_line, result.outlooks)]

    lines += [f"note: {one_line(note, 400)}" for note in result.estimate.basis]
    return [*lines, "", "Nothing was run. To run it, use the same command without `plan`."]


def _remainder_row(name: str, whole: int, finished: int) -> list[str]:
    return [name, count(whole), count(finished), count(whole - finished)]


def call_lines(estimate: Estimate) -> Iterator[str]:
    """Calls, tokens and dollars by role, and in total."""
    if not estimate.lines:
        yield "cost unknown" if estimate.uncounted else "no model calls are needed"
        return

    header = ["role", "model", "calls\nknown", "estimate", "at most"]
    rows = [[*header, "tokens\nsent", "tokens\nreceived", "$\nestimate", "at most"]]
    rows += map(_call_row, estimate.lines)
    yield from align(rows)
    yield ""
    cost = "cost unknown"
    if estimate.usd is not None:
        cost = f"${dollars(estimate.usd)} (at most ${dollars(estimate.most_usd)})"

    yield (
        f"{counted(estimate.calls, 'call')} (at most {count(estimate.most_calls)}), "
        f"{short_count(estimate.tokens)} tokens, {cost}, about {duration(max(1, estimate.seconds))}"
    )


def _call_row(line: RoleTotal) -> list[str]:
    return [
        line.role.value,
        one_line(line.model, 30),
        count(line.known_calls),
        count(line.calls),
        count(line.most_calls),
        short_count(line.prompt_tokens),
        short_count(line.completion_tokens),
        dollars(line.usd),
        dollars(line.most_usd),
    ]


def asked_counts(cases: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Numbers of cases with questions, and of questions, in a file of dataset=json."""
    sizes = [len(case["questions"]) for case in cases]
    return sum(map(bool, sizes)), sum(sizes)


def outlook_line(outlook: Outlook, *, per_case: int | None = None) -> str:
    """The differences that the data could show; `per_case` is an assumed number of questions."""
    size = f"{counted(outlook.questions, 'question')} in {counted(outlook.cases, 'case')}"
    data, few = f"{outlook.dataset}: {size}", " are"
    if outlook.questions == 1:
        few = " is"

    if per_case is not None:
        data = f"With {per_case} questions per case, {outlook.dataset} would have {size}"
        few = ":"

    if outlook.difference is None:
        more = ""
        if outlook.cases_needed is not None:
            more = (
                f"; {counted(outlook.cases_needed, 'case')} would show about "
                f"{percent(outlook.difference_then)} points of accuracy"
            )

        return f"{data}{few} too few to show any difference{more} ({outlook.basis})"

    if per_case is not None:
        data += ", which"

    if outlook.difference >= 1:
        return f"{data} can't show any difference with 80 % power ({outlook.basis})"

    return (
        f"{data} can show a difference of {percent(outlook.difference)} points of accuracy "
        f"with 80 % power ({outlook.basis})"
    )
