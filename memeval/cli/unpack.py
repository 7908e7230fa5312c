"""`python -m memeval unpack FILE`: adds the runs of a package to those of this home."""

from collections.abc import Sequence

from memeval.cli.parser import Parser
from memeval.text.shown import counted, printable

USAGE = """
adds the runs of packages without a problem to this home, separate from its own

packages+ FILE:path  a *.memeval file
--allowed-signers FILE:file  refuse packages not signed by anyone in this file (ssh-keygen's format)
"""
PARSER = Parser.of("unpack", USAGE)


def unpack(arguments: Sequence[str]) -> int:
    """Adds the runs, and prints their keys."""
    options = PARSER.parse_args(list(arguments))

    from memeval.packages.unpack import unpack as unpack_runs

    for path in options.packages:
        taken = unpack_runs(path, options.allowed_signers)
        print(printable(f"package: {path.name}, {taken.signer}"))
        for run in taken.runs:
            print(printable(f"  {run.key}  {run.name}"))

        if taken.restored:
            runs = counted(taken.restored, "run")
            print(f"texts:   restored from the data on this machine for {runs}")

        print(f"folder:  {taken.folder}")

    return 0
