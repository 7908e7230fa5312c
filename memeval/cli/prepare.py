"""`python -m memeval prepare dataset=… system=…`: builds and saves memories, so that later runs
only have to ask questions.
"""

import sys
from collections.abc import Sequence

from memeval.errors import UserError
from memeval.pipeline.execute.prepare import prepare as prepare_cell
from memeval.pipeline.open.opening import open_cell
from memeval.results.prices import total_cost_usd
from memeval.runs.compose.config import compose_config
from memeval.runs.display.progress import RunDisplay
from memeval.runs.job import check_writable
from memeval.runs.loop import run_loop
from memeval.runs.spending import refuse_limits


def prepare(arguments: Sequence[str]) -> int:
    """Prepares the memories of one configuration.

    Exit status 1 if a case failed; the same command tries it again.
    """
    if "-m" in arguments or "--multirun" in arguments:
        raise UserError(
            "prepare takes one configuration at a time",
            "a sweep needs no prepare: it builds each memory only once",
        )

    check_writable()
    cell = open_cell(compose_config(arguments), "")
    refuse_limits(cell, "prepare")
    with RunDisplay(f"prepare {cell.name}") as progress:
        done = run_loop(prepare_cell(cell, progress))

    calls = sum(usage.calls for usage in done.usages)
    cost = total_cost_usd(done.usages, billed=True)
    outcomes = [f"{count} {outcome}" for outcome, count in done.counts.items()]
    print(f"memories: {', '.join(outcomes)}")

    if calls:
        price = "cost unknown" if cost is None else f"${cost:.4f}"
        print(f"model calls: {calls:,}, {price}")

    if done.counts["built"] or done.counts["found"]:
        print(f"below: {done.folder}")

    for note in done.notes:
        print(f"note: {note}", file=sys.stderr)

    for failure in done.failures:
        print(f"failed: {failure}", file=sys.stderr)

    return int(bool(done.failures))
