"""Writes docs/commands_reference.md from the parsers of the commands:
`python docs/commands_reference.py`.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path

from memeval.cli.board import CHECK_PARSER
from memeval.cli.help import USAGE
from memeval.cli.judge import ACTIONS
from memeval.cli.main import COMMANDS, OWN_HELP

PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Commands

Made from the commands themselves by `python docs/commands_reference.py`. `python -m memeval` and `memeval` are the same; `python -m memeval COMMAND --help` prints what is here.

```text
{usage}
```

[Exit status](configuration.md#exit-status): 0, it ran; 1, an endpoint, a disk or a download failed, or nothing could be scored; 2, a mistake that you can mend; 130, interrupted. `gate` has [more](gate.md#verdicts).
"""
COMPOSED = """## Commands that take settings

A command of this section takes settings: `group=option` and `field=value`, as [configuration.md](configuration.md) lists them.

### `run`

`python -m memeval [run] [SETTINGS]` makes one run. The word `run` can be left out.

| word | does |
|---|---|
| `-m`, `--multirun` | takes several values per setting, and runs every combination ([sweeps.md](sweeps.md)) |
| `+sweep=NAME` | a [sweep that ships](../sweeps/README.md); needs no `-m` |
| `--fresh`, `--fresh=STAGE` | runs `prepare`, `answer` or `judge` and what follows it again, although the results are there |
| `--config-dir FOLDER`, `-cd FOLDER` | adds a folder with your own options |
| `--cfg job --resolve` | prints what is composed, and runs nothing |
| `--help`, `--help GROUP` | prints the groups with their options and fields, or one group |
| `--hydra-help` | the other words that Hydra knows |

### `plan`

`python -m memeval plan [-m] [SETTINGS]` says what the same words without `plan` would do and cost, and runs nothing ([sweeps.md](sweeps.md)).

| word | does |
|---|---|
| `--json` | prints the plan as JSON |
| `--exact` | goes through every question, where the plan otherwise extrapolates from a sample |

### `prepare`

`python -m memeval prepare [SETTINGS]` builds and saves the memories of one configuration, and asks nothing.

### `evaluate`

`python -m memeval evaluate ANSWERS.jsonl [SETTINGS]` judges the answers of another program ([the file](configuration.md#answers-of-another-program)). With `--ranked` the file holds what another program found, and the run's reader answers from it ([the file](configuration.md#rankings-of-another-program)).

| word | does |
|---|---|
| `--only-listed` | asks only the questions that the file lists |
| `--judged-by=NAME` | under `judge=recorded`, whose verdicts of the file count |
"""


def reference() -> str:
    """The whole page."""
    parts = [HEAD.format(usage=USAGE.partition("\n\n")[2].strip("\n")), COMPOSED]
    parts.append("## Commands with options of their own")
    for name in (name for name in COMMANDS if name in OWN_HELP):
        parts += command(name)

    return "\n\n".join(part.strip() for part in parts) + "\n"


def command(name: str) -> Iterator[str]:
    """A command; each of its actions, where it has some."""
    if name == "judge":
        for action, function in ACTIONS.items():
            yield from described(f"judge {action}", parser_of(function))
        return

    if name == "board":
        yield from described(name, parser_of(COMMANDS[name]))
        yield from described("board check", CHECK_PARSER)
        return

    parser = parser_of(COMMANDS[name])
    actions = [action for action in parser._actions if is_choice_of_commands(action)]
    if not actions:
        yield from described(name, parser)

    for action in actions:
        summaries = {choice.dest: choice.help for choice in action._get_subactions()}
        for word, sub in action.choices.items():
            sub.description = sub.description or summaries.get(word)
            yield from described(f"{name} {word}", sub)


def parser_of(function: str) -> argparse.ArgumentParser:
    """The parser of the module in which a command is."""
    module = importlib.import_module(function.partition(":")[0])
    parser: argparse.ArgumentParser = module.PARSER
    return parser


def is_choice_of_commands(action: argparse.Action) -> bool:
    return isinstance(action, argparse._SubParsersAction)


def described(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    """A heading, the usage, what it does, and a table of its arguments."""
    arguments = [action for action in parser._actions if action.dest != "help"]
    words = " ".join(usage(action) for action in arguments)
    yield f"### `{name}`"
    yield f"```text\npython -m memeval {name} {words}".rstrip() + "\n```"

    if parser.description:
        yield sentence(parser.description)
    if any(action.help for action in arguments):
        yield "| argument | is |\n|---|---|\n" + "\n".join(map(row, arguments))


def usage(action: argparse.Action) -> str:
    """An argument as a usage line shows it."""
    if not action.option_strings:
        return usage_of_positional(action)

    word = f"{action.option_strings[-1]} {value(action)}".strip()
    return word if action.required else f"[{word}]"


def usage_of_positional(action: argparse.Action) -> str:
    """A positional argument as a usage line shows it."""
    name = value(action)
    return {"*": f"[{name} ...]", "+": f"{name} [{name} ...]", "?": f"[{name}]"}.get(
        str(action.nargs), name
    )


def value(action: argparse.Action) -> str:
    """What stands for the value; nothing for a switch."""
    if action.nargs == 0:
        return ""
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"

    if action.metavar is None:
        return action.dest.upper()

    return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)


def row(action: argparse.Action) -> str:
    """A row of the table."""
    name = ", ".join(action.option_strings) or value(action)
    if action.option_strings and value(action):
        name += f" {value(action)}"

    text = (action.help or "") % {"default": action.default, "prog": "", "metavar": name}
    return f"| `{escaped(name)}` | {escaped(text).replace('<', '&lt;')} |"


def escaped(text: str) -> str:
    """A text as a cell of a table may hold it."""
    return text.replace("|", "\\|")


def sentence(text: str) -> str:
    """A description as a sentence."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
