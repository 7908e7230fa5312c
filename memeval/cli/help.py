"""What `--help` prints: read off the YAML files, so that it is quick and true."""

from __future__ import annotations

import itertools
from pathlib import Path

from memeval.config.paths import conf_dir, sweeps_dir

USAGE = """memeval measures the memory of language-model agents.

  python -m memeval [group=option] [field=value]             one run
  python -m memeval -m system=rag,bm25,mem0 dataset=locomo   every combination, compared
  python -m memeval -m +sweep=baselines dataset=locomo       a named sweep
  python -m memeval plan -m ...                              calls, cost and time of a sweep
  python -m memeval prepare dataset=... system=...           build and save memories only
  python -m memeval evaluate ANSWERS.jsonl dataset=locomo    judge another program's answers
  python -m memeval data list | fetch NAME | verify NAME     list, download, verify data sets
  python -m memeval data stats NAME | make NAME FILE         describe one; write one to a file
  python -m memeval list [FILTER ...]                        find finished runs
  python -m memeval show RUN [QUESTION]                      read a run, or one of its questions
  python -m memeval compare RUN RUN ... | sweep=NAME         compare finished runs
  python -m memeval gate --baseline FILE [RUN | field=value] fail where a run is worse than FILE
  python -m memeval claims [RUN ...]                         published figures beside a run
  python -m memeval lint RUN ...                             look for leaks in finished runs
  python -m memeval judge probe | calibrate | agree          how far a judge can be trusted
  python -m memeval label RUN                                label answers of a run by hand
  python -m memeval verify [RUN ...]                         verify finished runs
  python -m memeval store info | clean | verify | copy       what is stored: show, clean, copy it
  python -m memeval ui                                       open MLflow's page of the runs
"""
INTEGERS = ("top_k", "compression_turn")


def print_help() -> None:
    """Usage, groups with their options and each option's fields, sweeps."""
    print(USAGE)
    print("Groups (group=option; * is the default):\n")
    defaults = _defaults()

    for folder in sorted(
        path for path in conf_dir().iterdir() if path.is_dir() and path.name != "sweep"
    ):
        also = "   or any positive integer" if folder.name in INTEGERS else ""
        print(f"  {folder.name}{also}")

        for option in sorted(folder.glob("*.yaml")):
            mark = "*" if defaults.get(folder.name) == option.stem else " "
            print(f"   {mark} {option.stem:<16} {_summary(option)}")
            for field in _fields(option, skip=(folder.name,)):
                print(f"       {folder.name}.{field}")

    print("\nFields (field=value):\n")
    for field in [*_fields(conf_dir() / "config.yaml"), *_fields_within("store")]:
        print(f"    {field}")

    print("\nSweeps (-m +sweep=name):\n")
    for sweep in sorted(sweeps_dir().glob("*.yaml")):
        print(f"    {sweep.stem:<16} {_summary(sweep)}")

    print("\nHydra's own options:  python -m memeval --hydra-help")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _summary(path: Path) -> str:
    comments = (line[1:].strip() for line in _lines(path) if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@")), "")


def _fields(path: Path, skip: tuple[str, ...] = ()) -> list[str]:
    """The top-level fields of a YAML file with their comments, as written."""
    named = [
        line
        for line in _lines(path)
        if line and not line[0].isspace() and line[0] != "#" and ":" in line
    ]
    fields = [
        line.replace(": ", "=", 1)
        for line in named
        if line.split(":")[0] not in (*skip, "name", "class", "defaults", "hydra")
    ]
    return [field for field in fields if "=" in field]


def _fields_within(member: str) -> list[str]:
    """The fields of a member of the top-level config that is not a group."""
    lines = _lines(conf_dir() / "config.yaml")
    start = lines.index(f"{member}:") + 1
    fields = itertools.takewhile(lambda line: line.startswith("  "), lines[start:])
    return [f"{member}.{line.strip().replace(': ', '=', 1)}" for line in fields]


def _defaults() -> dict[str, str]:
    pairs = (
        line.strip().removeprefix("- ").split(": ", 1)
        for line in _lines(conf_dir() / "config.yaml")
        if line.startswith("  - ")
    )
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
