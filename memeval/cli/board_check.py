"""`python -m memeval board check PACKAGE ...`: checks the package of a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from memeval.cli.parser import Parser
from memeval.packages.form import SUFFIX
from memeval.text.shown import one_line, printable

USAGE = f"""
says whether packages are sound and may be added to their folder

packages+ PACKAGE:path  files *{SUFFIX} of the folder
--most-mb MB:int        largest size (default: 50)
"""
PARSER = Parser.of("board check", USAGE, most_mb=50)


def check(arguments: Sequence[str]) -> int:
    """Says whether packages may be added to their folder; exit status 1 if one may not."""
    options = PARSER.parse_args(list(arguments))
    from memeval.board.check import check_package

    wrong = 0
    for path in options.packages:
        problems = check_package(path, most_bytes=options.most_mb * 10**6)
        wrong += bool(problems)
        outcome = f"{len(problems)} problems" if problems else "may be added"
        print(printable(f"{one_line(path.name)}: {outcome}"))
        for line in problems:
            print(f"  {printable(line)}")

    return 1 if wrong else 0
