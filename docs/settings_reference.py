"""Writes docs/settings_reference.md from conf/: `python docs/settings_reference.py`.

An option's file says what it is (its first comment), which fields it has, and what each is (the
comment behind it); the code says which stage another value makes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
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
from memeval.systems.registry import built_in, settings_of

CONF = Path(__file__).parents[1] / "conf"
PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Settings

Made from `conf/` by `python docs/settings_reference.py`: every group with its options, and every field. [configuration.md](configuration.md) says how a run is composed of them.

- `group=option` chooses an option, `group.field=value` changes a field. `*` marks the default option.
- A *stage* says what another value makes again ([stages](configuration.md#stages)).
- `null` is YAML's word for "none".
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
LINE = re.compile(r"(?P<indent> *)(?P<name>\w+):(?P<value>.*?)(?: +# ?(?P<comment>.*))?")


@dataclass(frozen=True)
class Field:
    """A field as one file of conf/ has it."""

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

    fields = {field: [""] for field in fields_of(CONF / "config.yaml", "")}
    parts += ["## Without a group", table(fields, ())]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def group_entry(group: str, title: str) -> Iterator[str]:
    """A group: a table of its options, and one of the fields that they have."""
    default = defaults().get(group)
    yield f"## {title} (`{group}=`)"
    paths = sorted((CONF / group).glob("*.yaml"))
    variants = [path for path in paths if "defaults" in loaded(path)]
    # A value of a variant is said beside it: what its field is, the option behind it says.
    is_short = bool(variants) or group in OF_ONE_FIELD
    lines = (
        ["| option | is | sets |", "|---|---|---|"]
        if is_short
        else ["| option | is |", "|---|---|"]
    )
    for path in paths:
        mark = " *" if path.stem == default else ""
        cells = [f"`{group}={path.stem}`{mark}", escaped(summary(path))]
        if is_short:
            sets = path in variants or group in OF_ONE_FIELD
            cells.append("<br>".join(f"`{escaped(value)}`" for value in set_values(path) if sets))

        lines.append(f"| {' | '.join(cells)} |")

    yield "\n".join(lines)
    if group in OF_ONE_FIELD:
        return

    having: dict[Field, list[str]] = {}
    whole = [path for path in paths if path not in variants]
    for path in whole:
        for field in fields_of(path, group):
            having.setdefault(field, []).append(path.stem)

    for field in fields_of(CONF / "common.yaml", ""):
        if field.name.startswith(f"{group}."):
            having[field] = [path.stem for path in whole]

    yield table(having, [path.stem for path in whole])


def table(having: Mapping[Field, list[str]], options: Iterable[str]) -> str:
    """Fields with the options that have them; no column of options where there are none."""
    every = list(options)
    heads = ["field", *(["options"] if every else []), "default", "stage", "is"]
    rows = [heads, ["---"] * len(heads)]
    for field, names in sorted(having.items(), key=lambda pair: order(pair[0].name)):
        shown = [named(names, every)] if every else []
        default = f"`{escaped(field.default)}`"
        rows.append([f"`{field.name}`", *shown, default, field.stage, escaped(field.comment)])

    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def named(names: list[str], every: list[str]) -> str:
    """The options that have a field, as short as can be."""
    others = [name for name in every if name not in names]
    if not others:
        return "all"

    return f"all but {', '.join(others)}" if len(others) < len(names) / 2 else ", ".join(names)


def order(name: str) -> tuple[int, str]:
    """By name; but the fields of a role stay in the order of the file, behind the others."""
    if name.startswith("llm."):
        return next((place for place, role in enumerate(ROLES, 1) if name.startswith(role)), 0), ""

    return 0, name if name.startswith(("dataset.", "system.")) else ""


def fields_of(path: Path, group: str) -> Iterator[Field]:
    """The fields of a file, but for the names of option and class."""
    comments = comments_of(path)
    values: Any = {
        name: value for name, value in loaded(path).items() if name not in ("defaults", "hydra")
    }
    for name, value in flatten(values).items():
        if name in ("name", "class"):
            continue

        whole = f"{group}.{name}" if group else name
        comment = comments.get(name, "")
        if not comment and whole.startswith(ROLES):
            comment = f"as `llm.{name.partition('.')[2]}`"

        stage = stages(path.stem if group == "dataset" else "").get(whole) or "prepare"
        yield Field(whole, spoken(value), comment, stage)


@cache
def comments_of(path: Path) -> dict[str, str]:
    """What stands behind each field, by its dotted name."""
    comments: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in lines_of(path):
        found = LINE.fullmatch(line)
        if found is None:
            continue

        depth = len(found["indent"])
        above = [(own, name) for own, name in above if own < depth]
        above.append((depth, found["name"]))
        comments[".".join(name for _, name in above)] = (found["comment"] or "").strip()

    return comments


@cache
def stages(dataset: str = "") -> dict[str, str | None]:
    """The stage of each field, of a data set's option those of its own fields."""
    known = dict(field_stages(RunConfig))
    for name in (
        [dataset] if dataset in built_in_classes("dataset") else built_in_classes("dataset")
    ):
        known |= field_stages(adapter_class(name).settings_type, "dataset.")

    for name in built_in():
        known |= field_stages(settings_of(name), "system.")

    return known


def summary(path: Path) -> str:
    """What an option is: the first comment of its file."""
    comments = (line[1:].strip() for line in lines_of(path) if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@")), "")


def set_values(path: Path) -> Iterator[str]:
    """`field=value` for each value of an option's file but its name and class."""
    prefix = "" if path.parent.name in OF_ONE_FIELD else f"{path.parent.name}."
    for name, value in flatten(loaded(path)).items():
        if name not in ("name", "class") and not name.startswith("defaults"):
            yield f"{prefix}{name}={spoken(value)}"


@cache
def loaded(path: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(path), resolve=False) or {}


def spoken(value: Any) -> str:
    """A value as YAML writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(spoken, value))}]"

    return str(value)


def defaults() -> dict[str, str]:
    """The default option of each group."""
    pairs = [line for line in loaded(CONF / "config.yaml")["defaults"] if isinstance(line, dict)]
    return {group: str(option) for pair in pairs for group, option in pair.items()}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def escaped(text: str) -> str:
    """A text as a cell of a table may hold it."""
    return re.sub(r"\|", r"\\|", text)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
