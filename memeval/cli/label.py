"""`python -m memeval label RUN`: answers of a run, drawn at random, for a person to label."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path

from memeval.api.selecting import select_run
from memeval.calibration.label_file import LabelSheet, gold_text, keep_labels, suffix_of
from memeval.calibration.scored import STRATA, JudgedAnswer, draw_sample, scored_answers
from memeval.cli.parser import RUN, Parser, one_of
from memeval.cli.show import wrap
from memeval.config.paths import outputs_dir
from memeval.errors import check_number
from memeval.results.run import Run
from memeval.runs.display.terminal import ask
from memeval.text.shown import in_shell, one_line

COUNT = 100
KEYS = {"y": True, "yes": True, "n": False, "no": False}
SKIP, QUIT = ("s", "skip", ""), ("q", "quit")

USAGE = f"""
writes a random sample of a run's answers for a person to label; existing labels in the file are
kept

{RUN}
--n N:int         number of answers (default: {COUNT}, or those that the file already lists)
--stratify {one_of(sorted(STRATA))}  draw from each category (default) or each case in proportion to
    its size, or from all answers
--seed SEED:int   seed of the draw (default: 0)
-o --output FILE  .csv or .jsonl (default: outputs/labels/<run key>.csv)
--terminal        ask for the labels here, one by one
--verdict         show the judge's verdict; hidden by default, since it would influence your labels
"""
PARSER = Parser.of("label", USAGE, stratify="category", seed=0)


def label(arguments: Sequence[str]) -> int:
    """Writes a file of answers to be labelled, or asks for the labels one by one."""
    options = PARSER.parse_args(list(arguments))
    check_number("--n", options.n, {"least": 1})
    run, _ = select_run(options.run, "label")
    path = Path(options.output or outputs_dir() / "labels" / f"{run.key}.csv")
    suffix_of(path)  # refuses other kinds of files before anything is drawn
    sheet = open_sheet(path, run, options)
    sheet.write()
    if options.terminal:
        sheet = ask_labels(sheet)

    done, count = len(sheet.labels), len(sheet.answers)
    print(f"{done:,} of {count:,} answers have a label: {path}")
    if done < count:
        print("label them:  write right or wrong into the label column, or use --terminal")

    print(f"then:  python -m memeval judge calibrate {run.key} --labels {in_shell(path)}")
    return 0


def open_sheet(path: Path, run: Run, options: Namespace) -> LabelSheet:
    """The answers to label, with the labels that the file already contains.

    The answers that a file lists are kept, unless `--n` requests a new sample. Labelled answers are
    kept even if they are not in the new sample.
    """
    answers = scored_answers(run)
    kept = keep_labels(path, run.key, answers)
    labels = {key: label for key, label in kept.items() if label is not None}
    listed = list(kept)
    if not kept or options.n is not None:
        sample = draw_sample(
            answers, options.n or COUNT, by=options.stratify, seed=options.seed, run_key=run.key
        )
        drawn = [answer.key for answer in sample]
        # Labels are manual work: a new sample drops none.
        listed = list(dict.fromkeys([*drawn, *labels]))

    by_key = {answer.key: answer for answer in answers}
    return LabelSheet(
        path=path,
        run_key=run.key,
        answers=tuple(map(by_key.__getitem__, listed)),
        labels=labels,
        show_verdict=options.verdict,
    )


def ask_labels(sheet: LabelSheet) -> LabelSheet:
    """Asks for the missing labels on the terminal. Each is on disk before the next question."""
    missing = [answer for answer in sheet.answers if answer.key not in sheet.labels]
    for number, answer in enumerate(missing, start=1):
        for line in question_lines(sheet, answer, f"{number} of {len(missing)}"):
            print(line)

        key = read_key()
        if key is None:
            break
        if key in KEYS:
            sheet = sheet.with_label(answer.key, KEYS[key])
            sheet.write()

    return sheet


def question_lines(sheet: LabelSheet, answer: JudgedAnswer, position: str) -> Iterator[str]:
    """Text shown to the person who labels, with escapes for all content."""
    yield ""
    yield f"{position}  {one_line(answer.question_id)}  {one_line(answer.category)}"
    yield from wrap("question", answer.question)
    yield from wrap("gold", gold_text(answer))
    yield from wrap("answer", answer.answer)
    if sheet.show_verdict:
        verdict = "right" if answer.right else "wrong"
        yield f"  the judge says: {verdict}"


def read_key() -> str | None:
    """The user's input: one of `KEYS` or of `SKIP`; None to stop."""
    while (line := ask("  right? y, n, s(kip) or q(uit): ")) is not None:
        word = line.lower()
        if word in KEYS or word in SKIP:
            return word
        if word in QUIT:
            print()
            break

        print("  type y, n, s or q")

    return None
