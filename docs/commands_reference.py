"""Writes docs/commands_reference.md from the parsers of the commands:
`python docs/commands_reference.py`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path

from memeval.cli.board import CHECK_PARSER
from memeval.cli.help import usage as usage_of_all
from memeval.cli.judge import ACTIONS
from memeval.cli.main import COMMANDS, OWN_HELP, path_of

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Commands

Generated from the parsers of the commands by `python docs/commands_reference.py`. `memeval` is the same as `python -m memeval`, but does not search the current folder for your classes. `python -m memeval COMMAND --help` prints the help of one command.

```text
{usage}
```

[Exit status](configuration.md#exit-status): 0, it ran; 1, an endpoint, a disk or a download failed, or too few questions could be scored; 2, a mistake that you can fix; 130, interrupted. `gate` has [more](gate.md#verdicts).
"""
COMPOSED = """## Commands that take settings

The commands of this section take settings: `group=option` and `field=value` ([configuration.md](configuration.md)).

### `run`

`python -m memeval [run] [SETTINGS]` makes one run. The word `run` can be left out.

| argument | effect |
|---|---|
| `-m`, `--multirun` | takes several values per setting, and runs every combination ([sweeps.md](sweeps.md)) |
| `+sweep=NAME` | a [sweep that ships](../sweeps/README.md); needs no `-m` |
| `--fresh`, `--fresh=STAGE` | repeats the stage `prepare`, `answer` or `judge` and those after it, even if their results exist |
| `--keep-going` | with `-m`: runs the runs without a mistake, and lists the others |
| `--config-dir FOLDER`, `-cd FOLDER` | adds a folder with your own options |
| `--cfg job --resolve` | prints the composed configuration, and runs nothing |
| `--help`, `--help GROUP` | prints the groups with their options and fields, or one group |
| `--hydra-help` | prints Hydra's own arguments |

### `plan`

`python -m memeval plan [-m] [SETTINGS]` prints what the same command without `plan` would do and cost, and runs nothing ([sweeps.md](sweeps.md)).

| argument | effect |
|---|---|
| `--json` | prints the plan as JSON |
| `--exact` | counts every question; without it, the plan extrapolates from a sample |

### `prepare`

`python -m memeval prepare [SETTINGS]` builds and saves the memories of one configuration, and asks no questions.

### `evaluate`

`python -m memeval evaluate ANSWERS.jsonl [SETTINGS]` judges the answers of another program ([the file](configuration.md#answers-of-another-program)). With `--ranked` the file contains what another program retrieved, and the run's reader answers from it ([the file](configuration.md#rankings-of-another-program)).

| argument | effect |
|---|---|
| `--only-listed` | asks only the questions that the file lists |
| `--judged-by=NAME` | with `judge=recorded`: the judge whose verdicts in the file count |
"""


def reference() -> str:
    """The whole page."""
    usage_of_memeval = usage_of_all().partition("\n\n")[2].strip("\n")
    parts = [HEAD.format(usage=usage_of_memeval), COMPOSED, "## Commands with their own options"]
    for name in COMMANDS:
        if name in OWN_HELP:
            parts += command(name)

    return "\n\n".join(map(str.strip, parts)) + "\n"


def command(name: str) -> Iterator[str]:
    """The sections of a command: one, or one per action."""
    if name == "judge":
        for action, function in ACTIONS.items():
            yield from section(f"judge {action}", parser_of(function))

        return

    parser = parser_of(path_of(name))
    if name == "board":
        yield from section(name, parser)
        yield from section("board check", CHECK_PARSER)
        return

    choices = list(filter(is_choice_of_commands, parser._actions))
    if not choices:
        yield from section(name, parser)

    for choice in choices:
        summaries = {action.dest: action.help for action in choice._get_subactions()}
        for word, subparser in choice.choices.items():
            subparser.description = subparser.description or summaries.get(word)
            yield from section(f"{name} {word}", subparser)


def parser_of(function: str) -> argparse.ArgumentParser:
    """The parser in the module of a command's function."""
    module = importlib.import_module(function.partition(":")[0])
    parser: argparse.ArgumentParser = module.PARSER
    return parser


def is_choice_of_commands(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def section(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A heading, the usage, the description, and a table of the arguments."""
    arguments = [action for action in parser._actions if action.dest != "help"]
    words = " ".join(map(usage, arguments))
    yield f"### `{name}`"
    yield f"```text\npython -m memeval {name} {words}".rstrip() + "\n```"

    if parser.description:
        yield sentence(parser.description)

    if any(action.help for action in arguments):
        yield "\n".join(["| argument | description |", "|---|---|", *map(row, arguments)])


def usage(action: argparse.Action) -> str:
    """An argument as a usage line shows it."""
    if not action.option_strings:
        return usage_of_positional(action)

    option = f"{action.option_strings[-1]} {value_name(action)}".strip()
    return option if action.required else f"[{option}]"


def usage_of_positional(action: argparse.Action) -> str:
    """A positional argument as a usage line shows it."""
    name = value_name(action)
    repeated = {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}
    return repeated.get(str(action.nargs), name)


def value_name(action: argparse.Action) -> str:
    """The name of an argument's value in the usage; empty for a switch."""
    if action.nargs == 0:
        return ""

    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"

    if action.metavar is None:
        return action.dest.upper()

    return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)


def row(action: argparse.Action) -> str:
    """A row of the table."""
    name = ", ".join(action.option_strings) or value_name(action)
    if action.option_strings and value_name(action):
        name += f" {value_name(action)}"

    text = (action.help or "") % {"default": action.default, "prog": "", "metavar": name}
    return f"| `{escape(name)}` | {escape(text).replace('<', '&lt;')} |"


def escape(text: str) -> str:
    """A string as a cell of a table may contain it."""
    return text.replace("|", "\\|")


def sentence(text: str) -> str:
    """A description as a sentence."""
    text = text.strip().removesuffix(".")
    return f"{text[:1].upper()}{text[1:]}."


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
