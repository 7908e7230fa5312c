"""`make mutants`: whether the tests of the figures notice small changes to the code.

mutmut makes the mutants of the modules that pyproject.toml names. A sample of them is tested, and
the survivors are listed. Exit status 1 if fewer than 95 % are killed.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys

LEAST = 0.95
SEED = 0
FIRST = "memeval.statistics.agreement.*"
"""mutmut makes all mutants before it tests these."""
TABLES = re.compile(r"memeval\.metrics\.(porter|punkt|nltk_words|refusal_\w+)\.")
"""Rules of other programs, which are tested against recorded values of those programs."""
AT_IMPORT = re.compile(r"memeval\.metrics\.\w+\.x__(?:metric|rate|read|written|of_operation)__")
"""Functions that build the metrics at import. mutmut imports a module before it activates a mutant,
so no test can notice these mutants.
"""
LINE = re.compile(r"^\s*(?P<name>memeval\.\S+): (?P<status>.+)$", re.MULTILINE)


def mutmut(*words: str) -> str:
    """Runs mutmut and returns its output; exits with that output if mutmut failed."""
    command = [sys.executable, "-m", "mutmut", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{done.stdout[-3000:]}{done.stderr[-3000:]}")

    return done.stdout


def statuses() -> dict[str, str]:
    """The status of each mutant."""
    found = LINE.finditer(mutmut("results", "--all", "true"))
    return {line["name"]: line["status"] for line in found}


def main(count: int) -> int:
    """Tests `count` mutants."""
    mutmut("run", FIRST)
    names = sorted(
        name for name in statuses() if not TABLES.match(name) and not AT_IMPORT.match(name)
    )
    sample = random.Random(SEED).sample(names, min(count, len(names)))
    mutmut("run", *sample)

    after = statuses()
    tested = [name for name in sample if after[name] not in ("not checked", "no tests")]
    survivors = [name for name in tested if after[name] == "survived"]
    for name in survivors:
        changed = re.findall(r"^[-+](?![-+]).*$", mutmut("show", name), re.MULTILINE)
        print(name, *changed, sep="\n")

    killed = len(tested) - len(survivors)
    print(f"{killed} of {len(tested)} mutants killed, of {len(names)} there are")
    return 0 if tested and killed >= LEAST * len(tested) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
