"""Text of `--help`, read from the YAML files so that it is quick and correct."""

from __future__ import annotations

import itertools
import json
import textwrap
from pathlib import Path

from memeval.config.overrides import INTEGER_GROUPS
from memeval.config.paths import conf_dir
from memeval.config.plugins import SWEEP, Plugin, own_files, plugin, plugins
from memeval.errors import UserError, unknown

USAGE = """memeval measures the memory of language-model agents.

usage: python -m memeval [COMMAND] [group=option ...] [field=value ...]

  (none)         one run; -m system=rag,bm25 top_k=5,10 runs all combinations
  plan, prepare  calls, cost and time of a run or a sweep; save memories only
  evaluate, ui   judge another program's ANSWERS.jsonl; show runs in MLflow
  data           list, fetch, verify, check and make data sets, show stats
  list, show     find finished runs; read a run, or one of its questions
  history, lint  a system's figures by version; find leaks in finished runs
  compare, table compare runs: RUN RUN ... | sweep=NAME; write a paper's table
  gate, claims   fail if a run is worse than before; show published figures
  check, explain test a memory system; explain a gap to a published figure
  judge, label   measure a judge's errors; label answers by hand
  pack, verify   package runs as one file; verify runs and packages
  unpack, board  add a package's runs; publish packages as a static site
  export, store  export a run to other tools; show, clean and copy the store
  register, init register runs beforehand; write a plug-in package

groups: {groups}
more:   --help GROUP    its options and fields   --help fields  fields of a run
        --help sweeps   named sweeps             --help all     all of these
        COMMAND --help  its arguments            --hydra-help   Hydra's options
"""
WIDTH = 79
FIELDS, SWEEPS, ALL = "fields", "sweeps", "all"


def print_help(topic: str | None = None) -> None:
    """Prints the usage on one screen, or the help on a topic: a group, `fields`, `sweeps` or `all`.

    Raises `UserError` with the nearest names for an unknown topic.
    """
    groups = _groups()
    if topic is None:
        names = textwrap.wrap(" ".join(groups), WIDTH - 8)
        print(USAGE.format(groups="\n        ".join(names)), end="")
    elif topic == FIELDS:
        _print_fields()
    elif topic == SWEEPS:
        _print_sweeps()
    elif topic == ALL:
        for name in groups:
            _print_group(name)

        _print_fields()
        _print_sweeps()
    elif topic in groups:
        _print_group(topic)
    else:
        raise unknown("topic of --help", topic, [*groups, FIELDS, SWEEPS, ALL])


def is_topic(word: str) -> bool:
    """Whether a word after `--help` could be a topic."""
    return word.isidentifier()


def _groups() -> list[str]:
    folders = (path for path in conf_dir().iterdir() if path.is_dir())
    return sorted(path.name for path in folders if path.name not in ("sweep", "hydra"))


def _print_group(name: str) -> None:
    """The options of a group, each with its fields; the default has a star."""
    also = "   or any positive integer" if name in INTEGER_GROUPS else ""
    print(f"  {name}{also}")

    default = _defaults().get(name)
    for option in own_files(name):
        mark = "*" if default == option.stem else " "
        print(f"   {mark} {option.stem:<16} {_summary(option)}")
        for field in _fields(option, skip=(name,)):
            print(f"       {name}.{field}")

    for option_name in sorted(plugins(name)):
        _print_plugin(name, option_name)


def _print_plugin(group: str, name: str) -> None:
    """Prints an option of a package; if it can't be used, the reason on the same line."""
    try:
        found = plugin(group, name)
        assert found is not None, "a plug-in has a package"
        if found.file is not None:
            summary, fields = _summary(found.file), _fields(found.file, skip=(group,))
            fields = [] if group == SWEEP else fields
        else:
            summary, fields = _describe_class(group, found)
    except UserError as error:
        print(f"     {name:<16} {error}")
        return

    print(f"     {name:<16} {' '.join(filter(None, [summary, f'({found.package})']))}")
    for field in fields:
        print(f"       {group}.{field}")


def _describe_class(group: str, found: Plugin) -> tuple[str, list[str]]:
    """The description of an option that is a class, and its fields with their defaults."""
    # Loaded here: loading Hydra takes longer than `--help` may take.
    from memeval.config.served import describe, served_fields

    assert found.path is not None, "a plug-in is a class or a file"
    values = served_fields(group, found.name) or {}
    shown = {name: json.dumps(value) for name, value in values.items() if name != "name"}
    fields = [f"{name}={value.strip(chr(34))}" for name, value in shown.items()]
    return describe(group, found), fields


def _print_fields() -> None:
    print("Fields (field=value):\n")
    fields = _fields(conf_dir() / "config.yaml")
    for field in [*fields, *_fields_within("store"), *_fields_within("budget")]:
        print(f"    {field}")


def _print_sweeps() -> None:
    print("Sweeps (-m +sweep=name):\n")
    for sweep in own_files(SWEEP):
        print(f"    {sweep.stem:<16} {_summary(sweep)}")

    for name in sorted(plugins(SWEEP)):
        _print_plugin(SWEEP, name)


# Read as text: OmegaConf takes longer to load than all of this, and drops the comments, which are
# the help.
def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _summary(path: Path) -> str:
    # The first comment is the description; `# @package _global_` is meant for Hydra.
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
    start = next(at for at, line in enumerate(lines) if line.startswith(f"{member}:")) + 1
    fields = itertools.takewhile(lambda line: line.startswith("  "), lines[start:])
    return [f"{member}.{line.strip().replace(': ', '=', 1)}" for line in fields]


def _defaults() -> dict[str, str]:
    pairs = (
        line.strip().removeprefix("- ").split(": ", 1)
        for line in _lines(conf_dir() / "config.yaml")
        if line.startswith("  - ")
    )
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
