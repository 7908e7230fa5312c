"""`python -m memeval judge agree RUN RUN ...`: several judges on the same answers."""

from collections.abc import Iterator, Sequence

from memeval.api.selecting import select_runs
from memeval.calibration.agreement import Agreement, Disagreement, PairAgreement, measure_agreement
from memeval.cli.parser import Parser, print_json
from memeval.comparison.finding import check_records
from memeval.comparison.tables import align
from memeval.errors import UserError
from memeval.metrics.formats import NONE, percent
from memeval.text.shown import counted, one_line, some_of

SHOWN = 10
"""Maximum answers with differing verdicts that are listed without `--list`."""
VERDICTS = {None: NONE, True: "right", False: "wrong"}
"""Verdicts of a judge, as they are printed."""

USAGE = """
shows how far the judges of runs agree on the answers that the runs share

words* RUN|FILTER  runs, or a filter such as sweep=NAME
--list             list all answers on which judges differ
--json             print the result as JSON
"""
PARSER = Parser.of("judge agree", USAGE)


def agree_runs(arguments: Sequence[str]) -> int:
    """Prints the agreement of the judges of runs, and the answers on which they differ."""
    options = PARSER.parse_intermixed_args(list(arguments))
    runs = select_runs(options.words).chosen if options.words else []
    if len(runs) < 2:
        raise UserError(
            "judge agree needs two runs of the same answers under different judges",
            "for example:  python -m memeval judge agree 16e712a2 3851904c",
        )

    check_records(*runs)
    agreement = measure_agreement(runs)
    if options.json:
        print_json(agreement.to_json())
        return 0

    print(*agreement_lines(agreement, whole=options.list), sep="\n")
    return 0


def agreement_lines(agreement: Agreement, *, whole: bool) -> Iterator[str]:
    """α, the counts of each pair, and the answers on which judges differ."""
    for number, (judge, key) in enumerate(
        zip(agreement.judges, agreement.runs, strict=True), start=1
    ):
        yield f"{number}: {judge}  (run {key})"

    if agreement.left_out:
        runs = counted(len(agreement.left_out), "run")
        yield f"left out: {runs} without a verdict ({some_of(agreement.left_out, SHOWN)})"

    text = f"{counted(agreement.answers, 'answer')} with verdicts of two or more judges"
    if agreement.unshared:
        verb = "is" if agreement.unshared == 1 else "are"
        text += (
            f"; {counted(agreement.unshared, 'answer')} scored by only one judge {verb} left out"
        )

    yield text
    alpha = "not defined: all verdicts are the same"
    if agreement.alpha is not None:
        alpha = f"{agreement.alpha:.3f}"

    yield f"Krippendorff's α: {alpha} (1 is agreement, 0 is chance)"
    yield ""
    rows = [["pair", "n", "both right", "1st alone", "2nd alone", "both wrong", "agree %", "α"]]
    yield from align([*rows, *map(pair_row, agreement.pairs)])
    yield ""
    yield from differing_lines(agreement.differing, whole=whole)


def pair_row(pair: PairAgreement) -> list[str]:
    agreeing = (pair.both_right + pair.both_wrong) / pair.count if pair.count else None
    alpha = NONE if pair.alpha is None else f"{pair.alpha:.3f}"
    return [
        f"{pair.first + 1} and {pair.second + 1}",
        f"{pair.count:,}",
        f"{pair.both_right:,}",
        f"{pair.first_alone:,}",
        f"{pair.second_alone:,}",
        f"{pair.both_wrong:,}",
        percent(agreeing),
        alpha,
    ]


def differing_lines(differing: Sequence[Disagreement], *, whole: bool) -> Iterator[str]:
    """The answers on which judges differ, with the verdict of each."""
    yield f"judges differ on {counted(len(differing), 'answer')}"
    shown = len(differing) if whole else SHOWN
    for answer in differing[:shown]:
        name = one_line(answer.question_id)
        if answer.repeat:
            name += f" repeat {answer.repeat}"

        yield f"  {name}: {', '.join(map(VERDICTS.__getitem__, answer.verdicts))}"

    if len(differing) > shown:
        yield f"  and {len(differing) - shown:,} more: --list"
