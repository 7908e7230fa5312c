"""Writes docs/settings_reference.md from conf/: `python docs/settings_reference.py`.

An option's file describes the option in its first comment, and each field in the comment after it.
The stage that another value repeats is read from the code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from memeval.config.identity import field_stages
from memeval.config.leaves import flatten
from memeval.config.options import built_in_classes
from memeval.config.schema import RunConfig
from memeval.datasets.locate import adapter_class
from memeval.report.tables import table
from memeval.results.summary import as_yaml
from memeval.systems.registry import built_in, settings_of

CONF = Path(__file__).parents[1] / "conf"
PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Settings

Generated from `conf/` by `python docs/settings_reference.py`: every group with its options, and every field. [configuration.md](configuration.md) explains how a run is composed of them.

- `group=option` chooses an option, `group.field=value` changes a field. `*` marks the default option.
- Another value repeats the *stage* of the field and those after it ([stages](configuration.md#stages)).
- `null` means "none".
"""
TITLES = {
    "dataset": "Data set",
    "system": "Memory system",
    "granularity": "Chunks",
    "top_k": "Chunks that the reader sees",
    "compression_turn": "Compression of the window",
    "judge": "Judge",
    "prompt": "Prompt template",
    "llm": "Model",
    "embedder": "Embedder",
    "reranker": "Reranker",
    "reader": "Reader",
    "writer": "Writer",
    "tracking": "Tracking",
}
"""The groups of conf/, in the order of the page."""

OF_ONE_FIELD = ("top_k", "compression_turn")
"""Groups whose options are values of a field of the same name."""
ROLES = ("llm.ingest.", "llm.judge.", "llm.draft.", "llm.draft_check.")
NAMES = ("name", "class")
"""Fields that identify an option, and are not settings."""
LINE = re.compile(r"(?P<indent> *)(?P<name>\w+):(?P<value>.*?)(?: +# ?(?P<comment>.*))?")


@dataclass(frozen=True)
class Field:
    """A field in one file of conf/."""

    name: str
    """Dotted, with its group."""
    default: str
    comment: str
    stage: str


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for group, title in TITLES.items():
        parts += group_entry(group, title)

    fields = dict.fromkeys(fields_of(CONF / "config.yaml", ""), ())
    parts += ["## Without a group", fields_table(fields, ())]
    return "\n\n".join(map(str.strip, parts)) + "\n"


def group_entry(group: str, title: str) -> Iterator[str]:
    """A group: a table of its options, and one of their fields."""
    yield f"## {title} (`{group}=`)"
    paths = sorted((CONF / group).glob("*.yaml"))
    if group in OF_ONE_FIELD:
        yield options_table(paths, paths)
        return

    # Only the values of a variant are listed: its fields are those of the option that it varies.
    variants = [path for path in paths if "defaults" in load(path)]
    yield options_table(paths, variants)

    options: dict[Field, list[str]] = {}
    names = []
    for path in paths:
        if path not in variants:
            names.append(path.stem)
            for field in fields_of(path, group):
                options.setdefault(field, []).append(path.stem)

    for field in fields_of(CONF / "common.yaml", ""):
        if field.name.startswith(f"{group}."):
            options[field] = names

    yield fields_table(options, names)


def options_table(paths: Sequence[Path], variants: Collection[Path]) -> str:
    """A group's options, with the values that the variants among them set."""
    lines = ["| option | description |", "|---|---|"]
    if variants:
        lines = ["| option | description | sets |", "|---|---|---|"]

    for path in paths:
        group = path.parent.name
        mark = " *" if path.stem == default_option(group) else ""
        line = f"| `{group}={path.stem}`{mark} | {escape(summary(path))} |"
        if path in variants:
            line += f" {'<br>'.join(set_values(path))} |"
        elif variants:
            line += "  |"

        lines.append(line)

    return "\n".join(lines)


def fields_table(options: Mapping[Field, Sequence[str]], names: Sequence[str]) -> str:
    """Fields with the options that have them; `names` are all options of the group, if any."""
    header = ["field", "default", "stage", "is"]
    if names:
        header.insert(1, "options")

    rows = []
    for field in sorted(options, key=sort_key):
        default = f"`{escape(field.default)}`"
        cells = [f"`{field.name}`", default, field.stage, escape(field.comment)]
        if names:
            cells.insert(1, some_or_all(options[field], names))

        rows.append(cells)

    return "\n".join(table(header, rows, figures=False))


def some_or_all(having: Sequence[str], names: Sequence[str]) -> str:
    """The options that have a field, in the shorter of two ways."""
    others = [name for name in names if name not in having]
    if not others:
        return "all"

    if len(others) < len(having) / 2:
        return f"all but {', '.join(others)}"

    return ", ".join(having)


def sort_key(field: Field) -> tuple[int, str]:
    """Orders fields of data sets and systems by name, and others as in the file, roles last."""
    if field.name.startswith(("dataset.", "system.")):
        return 0, field.name

    for number, role in enumerate(ROLES, start=1):
        if field.name.startswith(role):
            return number, ""

    return 0, ""


def fields_of(path: Path, group: str) -> Iterator[Field]:
    """The settings in a file."""
    comments = comments_of(path)
    values = dict(load(path))
    values.pop("defaults", None)
    values.pop("hydra", None)
    for name, value in flatten(values).items():
        if name in NAMES:
            continue

        dotted = f"{group}.{name}" if group else name
        comment = comments.get(name, "")
        if not comment and dotted.startswith(ROLES):
            comment = f"as `llm.{name.partition('.')[2]}`"

        stage = stages(path.stem if group == "dataset" else "").get(dotted) or "prepare"
        yield Field(dotted, shown_value(value), comment, stage)


@cache
def comments_of(path: Path) -> dict[str, str]:
    """The comment after each field, by its dotted name."""
    comments: dict[str, str] = {}
    parents: list[tuple[int, str]] = []
    for line in lines_of(path):
        match = LINE.fullmatch(line)
        if match is None:
            continue

        depth = len(match["indent"])
        while parents and parents[-1][0] >= depth:
            parents.pop()

        parents.append((depth, match["name"]))
        dotted = ".".join(name for _, name in parents)
        comments[dotted] = (match["comment"] or "").strip()

    return comments


@cache
def stages(dataset: str = "") -> dict[str, str | None]:
    """The stage of each field; with a data set, only its own fields among those of data sets."""
    known = dict(field_stages(RunConfig))
    datasets = list(built_in_classes("dataset"))
    if dataset in datasets:
        datasets = [dataset]

    for name in datasets:
        known |= field_stages(adapter_class(name).settings_type, "dataset.")

    for name in built_in():
        known |= field_stages(settings_of(name), "system.")

    return known


def summary(path: Path) -> str:
    """The first comment of an option's file, which describes the option."""
    for line in lines_of(path):
        comment = line.removeprefix("#").strip()
        # Hydra's directives, such as `# @package _global_`, are not descriptions.
        if line.startswith("#") and not comment.startswith("@"):
            return comment

    return ""


def set_values(path: Path) -> Iterator[str]:
    """`field=value` for each setting in an option's file."""
    group = path.parent.name
    for name, value in flatten(load(path)).items():
        if name in NAMES or name.startswith("defaults"):
            continue

        field = name if group in OF_ONE_FIELD else f"{group}.{name}"
        yield f"`{escape(f'{field}={shown_value(value)}')}`"


def default_option(group: str) -> str | None:
    for entry in load(CONF / "config.yaml")["defaults"]:
        if isinstance(entry, dict) and group in entry:
            return str(entry[group])

    return None


@cache
def load(path: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(path), resolve=False) or {}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def shown_value(value: Any) -> str:
    """A value as YAML writes it on one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(as_yaml, value))}]"

    return as_yaml(value)


def escape(text: str) -> str:
    """A string as a cell of a table may contain it."""
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
