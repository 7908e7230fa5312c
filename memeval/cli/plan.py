"""`python -m memeval plan [overrides]`: work and cost of a run or a sweep. Nothing is run."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from memeval.api.sweeping import forecast_of
from memeval.cli.parser import print_json
from memeval.cli.run import report_once, report_refusal
from memeval.errors import RefusedError
from memeval.runs.display.terminal import print_folded
from memeval.runs.forecast.forecast import Forecast

JSON, EXACT = "--json", "--exact"


def plan(arguments: Sequence[str]) -> int:
    """Prints what the same command would do without `plan`."""
    # Imported here: it imports Hydra.
    from memeval.runs.launch.application import words_to_plan

    words = [word for word in arguments if word not in (JSON, EXACT)]
    try:
        result = forecast_of(words_to_plan(words), exact=EXACT in arguments)
    except RefusedError as refusal:
        return report_refusal(refusal)

    if JSON in arguments:
        print_json(as_json(result))
    else:
        from memeval.cli.plan_text import plan_lines

        print_folded("\n".join(plan_lines(result)))

    report_once(result.failures)
    return max((failure.status for failure in result.failures), default=0)


def as_json(result: Forecast) -> dict[str, Any]:
    estimate = result.estimate
    units = {}
    for stage, counts in result.units.items():
        units[stage] = {"all": counts.count, "finished": counts.finished}

    return {
        "cells": {"all": result.cells, "finished": result.finished_cells},
        "units": units,
        "calls": estimate.calls,
        "most_calls": estimate.most_calls,
        "tokens": estimate.tokens,
        "usd": estimate.usd,
        "most_usd": estimate.most_usd,
        "minutes": estimate.seconds / 60,
        "by_role": list(map(asdict, estimate.lines)),
        "detectable": list(map(asdict, result.outlooks)),
        "basis": list(estimate.basis),
    }
