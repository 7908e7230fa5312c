"""Thin entry: the first word chooses a command, no word means run."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0 done, 1 the world failed, 2 the user can mend it, 130 interrupted."""
    from memeval.cli.main import run_command

    return run_command(list(sys.argv[1:] if arguments is None else arguments))


if __name__ == "__main__":
    sys.exit(main())
