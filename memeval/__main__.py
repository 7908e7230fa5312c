"""Entry point: the first word selects a command; the default is to run a configuration."""

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status: 0 success, 1 a failure outside memeval, 2 a
    mistake that the user can fix, 130 interrupted.
    """
    # Imported here, as importing this module must take no time.
    try:
        from memeval.cli.main import run_command
    except KeyboardInterrupt:
        return 130

    if arguments is not None:
        return run_command(list(arguments))

    from memeval.runs.interrupt import leave, listening

    with listening():
        return leave(run_command(sys.argv[1:]))


if __name__ == "__main__":
    raise SystemExit(main())
