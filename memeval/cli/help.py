"""Text of `--help`, read from the YAML files so that it is quick and correct."""

import json
import textwrap
from collections.abc import Sequence
from pathlib import Path

from memeval.config.overrides import INTEGER_GROUPS
from memeval.config.paths import conf_dir
from memeval.config.plugins import SWEEP, own_files, plugin, plugins
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
OF_COMMANDS = {
    "plan": """usage: python -m memeval plan [-m] [SETTINGS] [--json] [--exact]

  prints what the same command without plan would do and cost; runs nothing
  --json   print the plan as JSON
  --exact  count every question, instead of a sample of a large sweep""",
    "prepare": """usage: python -m memeval prepare [SETTINGS]

  builds and saves the memories of one configuration, and asks no questions""",
    "evaluate": """usage: python -m memeval evaluate FILE [SETTINGS] [--only-listed] [--ranked]

  judges another program's answers: JSON lines with question_id and hypothesis
  --only-listed     ask only the questions that the file lists
  --ranked          the file has search results: the reader answers from them
  --judged-by=NAME  with judge=recorded: the judge whose verdicts count""",
}
"""Help on the commands that take the settings of a run."""
WIDTH = 79
DESCRIPTION = 22
"""The column in which descriptions begin."""
FIELDS, SWEEPS, ALL = "fields", "sweeps", "all"


def print_help(topic: str | None = None, folders: Sequence[Path] = ()) -> None:
    """Prints the usage on one screen, or the help on a topic: a group, `fields`, `sweeps` or `all`,
    or a command that takes the settings of a run. The user's own options are in `folders`.

    Raises `UserError` with the nearest names for an unknown topic.
    """
    groups = _groups()
    if topic in OF_COMMANDS:
        print(f"{OF_COMMANDS[topic]}\n\nsettings:  python -m memeval --help")
    elif topic is None:
        print(usage(), end="")
    elif topic == FIELDS:
        _print_fields()
    elif topic == SWEEPS:
        _print_sweeps()
    elif topic == ALL:
        for name in groups:
            _print_group(name, folders)

        _print_fields()
        _print_sweeps()
    elif topic in groups:
        _print_group(topic, folders)
    else:
        topics = [*groups, FIELDS, SWEEPS, ALL]
        raise unknown("topic of --help", topic, topics, "a command's arguments:  COMMAND --help")


def usage() -> str:
    """The commands and the groups, on one screen."""
    names = textwrap.wrap(" ".join(_groups()), WIDTH - 8)
    return USAGE.format(groups="\n        ".join(names))


def _groups() -> list[str]:
    folders = (path.name for path in conf_dir().iterdir() if path.is_dir())
    return sorted({*folders} - {"sweep", "hydra"})


def _print_group(name: str, folders: Sequence[Path]) -> None:
    """The options of a group, each with its fields; the default has a star."""
    also = "   or any positive integer" if name in INTEGER_GROUPS else ""
    print(f"  {name}{also}")

    defaults = _lines(conf_dir() / "config.yaml")
    listed = own_files(name)
    for folder in folders:
        listed += sorted(filter(Path.is_file, (folder / name).glob("*.yaml")))

    for option in listed:
        mark = "*" if f"  - {name}: {option.stem}" in defaults else " "
        _print_entry(f"   {mark} {option.stem:<16} {_summary(option)}")
        for field in _fields(option, skip=(name,)):
            _print_field(f"{name}.{field}")

    for option_name in sorted(plugins(name)):
        _print_plugin(name, option_name)

    common = _fields(conf_dir() / "common.yaml")
    if fields := [field for field in common if field.startswith(f"{name}.")]:
        print("     Each of them also has")
        for field in fields:
            _print_field(field)


def _print_plugin(group: str, name: str) -> None:
    """Prints an option of a package; if it can't be used, the reason on the same line."""
    try:
        part = plugin(group, name)
        assert part is not None, "a plug-in has a package"
        if part.file is not None:
            summary, fields = _summary(part.file), []
            if group != SWEEP:
                fields = _fields(part.file, skip=(group,))
        else:
            # Imported here: Hydra takes longer to import than `--help` may take.
            from memeval.config.served import describe, served_fields

            fields = []
            for field, value in (served_fields(group, name) or {}).items():
                if field not in ("name", "class"):
                    shown = json.dumps(value).strip('"')
                    fields.append(f"{field}={shown}")

            summary = describe(group, part)
    except UserError as error:
        _print_entry(f"     {name:<16} {error}")
        return

    _print_entry(f"     {name:<16} {' '.join(filter(None, [summary, f'({part.package})']))}")
    for field in fields:
        _print_field(f"{group}.{field}")


def _print_entry(text: str) -> None:
    """Prints a name and a description in two columns."""
    print(_wrapped(text, DESCRIPTION))


def _print_field(text: str, indent: int = 7) -> None:
    # Keeps the comment mark and the word after it on one line.
    marked = " ".join(text.split()).replace(" # ", "  #\0")
    print(_wrapped(" " * indent + marked, indent + 4).replace("\0", " "))


def _wrapped(text: str, indent: int) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _print_fields() -> None:
    print("Fields (field=value):\n")
    for field in _fields(conf_dir() / "config.yaml"):
        _print_field(field, indent=4)


def _print_sweeps() -> None:
    print("Sweeps (-m +sweep=name):\n")
    for sweep in own_files(SWEEP):
        _print_entry(f"    {sweep.stem:<17} {_summary(sweep)}")

    for name in sorted(plugins(SWEEP)):
        _print_plugin(SWEEP, name)


# Read as text: OmegaConf takes longer to load than all of this, and drops the comments, which are
# the help.
def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def _summary(path: Path) -> str:
    # The first comment is the description; `# @package _global_` is meant for Hydra.
    for line in _lines(path):
        comment = line[1:].strip()
        if line.startswith("#") and not comment.startswith("@"):
            return comment

    return ""


def _fields(path: Path, skip: tuple[str, ...] = ()) -> list[str]:
    """The fields of a YAML file with their comments, as written, each with the names above it."""
    fields = []
    names: list[str] = []
    for line in _lines(path):
        name, colon, value = line.strip().partition(":")
        if not colon or name.startswith(("#", "- ")):
            continue

        names[(len(line) - len(line.lstrip())) // 2 :] = [name]
        has_value = value.strip() and not value.strip().startswith("#")
        if has_value and names[0] not in (*skip, "name", "class", "defaults", "hydra"):
            fields.append(f"{'.'.join(names)}={value.strip()}")

    return fields
