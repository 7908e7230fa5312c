"""`python -m memeval verify [RUN ...]`: whether finished runs are as they were measured."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.parser import Parser
from memeval.config.paths import outputs_dir
from memeval.errors import UserError
from memeval.text.shown import one_line, printable

_KEY = re.compile(r"[0-9a-f]{1,64}")


def verify(arguments: Sequence[str]) -> int:
    """Says of each run what does not fit.

    Exit status 0 if all fits, 1 if something does not.
    """
    options = parser().parse_args(list(arguments))
    folders = [named_run(word) for word in options.runs] or all_runs()
    from memeval.pipeline.verify import verify_run

    wrong = 0
    for folder in dict.fromkeys(folders):
        verified = verify_run(folder)
        wrong += bool(verified.problems)
        outcome = f"{len(verified.problems)} problems" if verified.problems else "sound"
        print(printable(f"{folder.name}  {one_line(verified.name)}: {outcome}"))
        for line in verified.problems:
            print(f"  {printable(line)}")

        for line in verified.unchecked:
            print(f"  not compared: {printable(line)}")

    if wrong:
        print("to repair a run:  its own command makes it again from the sound rows")
    elif not folders:
        print(f"no finished runs below {printable(str(outputs_dir()))}")

    return 1 if wrong else 0


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    options = Parser.of(
        "verify",
        "compares finished runs with their digests, and makes their figures again: "
        "files, rows, keys, figures and memories",
    )
    options.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="a run key, its beginning, or a run folder (default: all runs of this home)",
    )
    return options


def all_runs() -> list[Path]:
    """Every run folder of this home."""
    runs = outputs_dir() / "runs"
    return sorted(path for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []


def named_run(word: str) -> Path:
    """The run folder that a word names.

    Raises `UserError` if none or several match.
    """
    known = [path for path in all_runs() if _KEY.fullmatch(word) and path.name.startswith(word)]
    exact = [path for path in known if path.name == word]
    if len(exact or known) == 1:
        return (exact or known)[0]

    if known:
        names = ", ".join(path.name for path in known[:5])
        raise UserError(f"verify: {len(known)} runs begin with '{one_line(word)}': {names}")

    try:
        if word and Path(word).is_dir():
            return Path(word)
    except (OSError, ValueError):
        pass  # too long for a path, or with a NUL: then it is not one

    raise UserError(
        f"verify: no run '{one_line(word)}' below {outputs_dir() / 'runs'}",
        "all runs of this home:  python -m memeval verify",
    )
