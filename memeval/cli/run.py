"""`python -m memeval [overrides]` and `-m`: composes, runs the pipeline, prints the comparison."""

import sys
from collections.abc import Sequence

from memeval.cli.comparison import show_comparison
from memeval.errors import RefusedError, UserError
from memeval.runs.compose.words import KEEP_GOING, STATISTICS, reorder_arguments
from memeval.runs.display.terminal import report_error
from memeval.runs.interrupt import describe_lost
from memeval.runs.invocation import FailedCell, current_invocation
from memeval.runs.job import check_writable, clean_copies


def run(arguments: Sequence[str]) -> int:
    """Composes and runs each cell. Exit status 1 if a cell is invalid."""
    from memeval.runs.compose.errors import explaining_config_errors
    from memeval.runs.launch.application import hydra_application

    statistics = STATISTICS in arguments
    arguments = reorder_arguments([word for word in arguments if word != STATISTICS])
    check_writable()
    with explaining_config_errors():
        main = hydra_application(arguments)

    interrupted = False
    invocation = current_invocation()

    try:
        with explaining_config_errors():
            main()
    except RefusedError as refusal:
        return report_refusal(refusal)
    except UserError:
        # Optuna fails if no run has a result: the failures of the runs say why.
        if not invocation.failed_cells():
            raise
    except KeyboardInterrupt:
        interrupted = True
        raise
    finally:
        # Also after an error or Ctrl-C: finished cells are shown.
        clean_copies(invocation.folder)
        conclusion = show_comparison(invocation, statistics=statistics, interrupted=interrupted)

    failures = invocation.failed_cells()
    report_once(failures)
    if failures:
        if any(failure.status == 1 for failure in failures) and (lost := describe_lost()):
            print(lost.lstrip("\n"), file=sys.stderr)

        return max(failure.status for failure in failures)

    return int(not all(summary.valid for summary in conclusion.summaries))


def report_refusal(refusal: RefusedError) -> int:
    """Prints each mistake once, and that nothing was run; returns the exit status."""
    report_once(refusal.errors)
    others = f"; {KEEP_GOING} runs the others" if refusal.leaves_others else ""
    print(f"  nothing was run: {refusal}{others}", file=sys.stderr)
    return 2


def report_once(errors: Sequence[UserError | FailedCell]) -> None:
    """Prints each mistake of several cells once."""
    for message, *hints in dict.fromkeys((error.message, *error.hints) for error in errors):
        report_error(UserError(message, *hints))
