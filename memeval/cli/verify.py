"""`python -m memeval verify [RUN ... | PACKAGE ...]`: checks that runs are unchanged."""

from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from memeval.cli.parser import Parser
from memeval.comparison.finding import run_folder, run_folders
from memeval.config.paths import outputs_dir
from memeval.errors import UserError
from memeval.packages.form import SUFFIX
from memeval.pipeline.verify.sound import WAY_OUT, verify_run
from memeval.text.shown import counted, one_line, printable

USAGE = """
compares finished runs with their digests, and recomputes their figures: files, rows, keys, figures
and memories; checks a package level by level

runs* RUN                 a run key or its beginning, a run folder, or a name that list prints
    (default: all runs of this home); or a package FILE.memeval
--data                    for a package: fail if its data is not on this machine
--judge N:count   for a package: have its model judge N answers of each run again
--answer N:count  for a package: answer N questions of each run again
--allowed-signers FILE:file  for a package: who may have signed it, in ssh-keygen's format
"""
PARSER = Parser.of("verify", USAGE, judge=0, answer=0)


def verify(arguments: Sequence[str]) -> int:
    """Prints the problems of each run. Exit status 0 if there are none, 1 otherwise."""
    options = PARSER.parse_args(list(arguments))
    packages = list(map(Path, filter(_is_package, options.runs)))
    if packages:
        if len(packages) < len(options.runs):
            raise UserError("verify takes packages or runs, not both")

        return max([verify_packages(path, options) for path in packages])

    _refuse_options_of_packages(options)
    runs = outputs_dir() / "runs"
    folders = [run_folder(word, runs) for word in options.runs] or run_folders(runs)

    wrong = 0
    for folder in dict.fromkeys(folders):
        verified = verify_run(folder, keeps_rows=False)
        outcome = counted(len(verified.problems), "problem") if verified.problems else "sound"
        wrong |= bool(verified.problems)
        print(printable(f"{folder.name}  {one_line(verified.name)}: {outcome}"))
        for line in verified.problems:
            print(f"  {printable(line)}")

        for line in verified.unchecked:
            print(f"  not compared: {printable(line)}")

    if wrong:
        print(WAY_OUT)
    elif not folders:
        print(f"no finished runs in {printable(str(outputs_dir()))}")

    return wrong


def _is_package(word: str) -> bool:
    try:
        return word.endswith(SUFFIX) or Path(word).is_file()
    except (OSError, ValueError):
        return False  # too long for a path, or with a NUL


def _refuse_options_of_packages(options: Namespace) -> None:
    for name in ("data", "judge", "answer", "allowed_signers"):
        if getattr(options, name):
            raise UserError(
                f"verify: --{name.replace('_', '-')} is only for packages",
                "for example:  python -m memeval verify FILE.memeval --data",
            )


def verify_packages(path: Path, options: Namespace) -> int:
    """Prints the checks and findings of each level of a package; returns 1 if a level fails."""
    if not path.is_file():
        state = "is not a file" if path.exists() else "does not exist"
        raise UserError(f"verify: {one_line(path)} {state}")

    from memeval.packages.levels import Checks, verify_package

    judge = answer = None
    if options.judge or options.answer:
        # Imported here, because it imports everything that a run needs.
        from memeval.api.again import answer_again, judge_again

        if options.judge:
            judge = partial(judge_again, count=options.judge)
        if options.answer:
            answer = partial(answer_again, count=options.answer)

    checks = Checks(
        data=options.data, judge=judge, answer=answer, allowed_signers=options.allowed_signers
    )
    failed = 0
    print(printable(one_line(path.name)))
    for level in verify_package(path, checks):
        outcome = counted(len(level.problems), "problem").upper() if level.problems else level.did
        failed |= bool(level.problems)
        print(printable(f"  {level.number} {level.name:<11}{outcome}"))
        for line in level.problems:
            print(f"      {printable(line)}")
        for line in unchecked_lines(level.unchecked):
            print(f"      not compared: {printable(line)}")

    return failed


def unchecked_lines(unchecked: Sequence[str]) -> Iterator[str]:
    """The parts that were not compared, with each reason once and its number of runs."""
    by_reason: dict[str, list[str]] = {}
    for line in unchecked:
        run, _, reason = line.partition(": ")
        by_reason.setdefault(reason or run, []).append(line)

    for reason, lines in by_reason.items():
        yield lines[0] if len(lines) == 1 else f"{len(lines)} runs: {reason}"
