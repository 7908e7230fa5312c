"""`python -m memeval judge calibrate RUN --labels FILE`: corrects an accuracy for judge errors."""

from collections.abc import Iterator, Sequence

from memeval.api.judging import calibrate as calibrate_run
from memeval.api.selecting import select_run
from memeval.cli.parser import RUN, Parser, print_json
from memeval.metrics.formats import interval, percent, span, with_interval
from memeval.results import judge_shown
from memeval.results.calibration import CALIBRATION_FILE, LABELS, PPI, Calibration
from memeval.results.run import Run
from memeval.text.shown import one_line

USAGE = f"""
corrects a run's accuracy for its judge's errors, with a person's labels

{RUN}
--labels! FILE  labels of this run, as written by `label`; or labels of other answers with the
    judge's verdicts, as written by `judge probe --output`
--partial       accept a file in which some rows have no label
--json          print the result as JSON
"""
PARSER = Parser.of("judge calibrate", USAGE)


def calibrate(arguments: Sequence[str]) -> int:
    """Prints the corrected accuracy, and saves it with the run."""
    options = PARSER.parse_args(list(arguments))
    run, _ = select_run(options.run, "judge calibrate")
    calibration = calibrate_run(run, options.labels, partial=options.partial)
    if options.json:
        print_json(calibration.to_json())
        return 0

    print(*calibration_lines(run, calibration), sep="\n")
    return 0


def calibration_lines(run: Run, calibration: Calibration) -> Iterator[str]:
    """Raw and corrected accuracy, the method, and its labels."""
    yield f"{one_line(run.name)}  {run.key}"
    yield f"judge: {one_line(judge_shown(run.summary.judge))}"
    yield f"accuracy by the judge:  {percent(calibration.raw)}"
    if calibration.method in (PPI, LABELS):
        value = with_interval(calibration.accuracy, calibration.low, calibration.high)
        yield f"corrected:              {value}"
        yield from own_label_lines(calibration)
    else:
        yield f"corrected:              {span(calibration.low, calibration.high)}"
        yield from range_lines(calibration)

    yield f"written: {run.folder / CALIBRATION_FILE}"
    yield (
        "list, show and compare now show it; to update reports and MLflow, repeat the run's command"
    )


def own_label_lines(calibration: Calibration) -> Iterator[str]:
    """Explains the use of labels of the run's own answers."""
    yield str(calibration.note)
    if calibration.power is not None:
        yield (
            f"λ = {calibration.power:.2f}: weight of the judge's other verdicts, from 0 "
            "(only the labels count) to 1"
        )

    if calibration.low is None:
        yield "no interval: the estimated error is 0, which does not prove certainty"
    elif calibration.groups is not None:
        yield f"in brackets: its 95 % interval, clustered by {calibration.groups:,} conversations"
    else:
        yield "in brackets: its 95 % interval, which assumes that answers are independent"


def range_lines(calibration: Calibration) -> Iterator[str]:
    """Explains the range from labels of other answers, and lists the range of each kind."""
    yield str(calibration.note)
    yield (
        f"The judge kept {calibration.right_kept:,} of {calibration.right_labels:,} right answers. "
        "The share that it catches depends on the kind of wrong answer:"
    )
    for kind in calibration.kinds:
        outcome = "no bound: no better than chance, or inconsistent with the run's verdicts"
        if kind.share is not None:
            ends = interval(kind.low, kind.high)
            outcome = f"if all were like this, {percent(kind.share)} ({ends})"

        yield f"  {one_line(kind.kind)}: caught {kind.caught:,} of {kind.labels:,}; {outcome}"

    if calibration.flip_rate is not None:
        share, low, high = calibration.flip_rate
        yield (
            f"Attacks on the judge flipped {calibration.flipped or 0:,} of "
            f"{calibration.attacks:,} verdicts: {percent(share)} ({interval(low, high)})"
        )

    yield (
        "So the result is a range over kinds of wrong answer, not one number (Rogan-Gladen, "
        "interval of Lee et al.; it assumes that answers are independent)."
    )
