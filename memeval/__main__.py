"""Thin entry: the first word chooses a command, no word means run."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0 done, 1 the world failed, 2 the user can fix
    it, 130 interrupted.
    """
    # Within the function, as the import of this module must take no time.
    from memeval.cli.main import run_command

    if arguments is not None:
        return run_command(list(arguments))

    from memeval.runs.interrupt import leave, listening

    with listening():
        return leave(run_command(sys.argv[1:]))


if __name__ == "__main__":
    raise SystemExit(main())
