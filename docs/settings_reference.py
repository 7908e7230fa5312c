"""Writes docs/settings_reference.md from conf/ and the schema: `python docs/settings_reference.py`.

An option's file says what it is (its first comment) and which values it sets; the schema says what
a field is (the docstring below it), its type and its stage.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from memeval.config import schema
from memeval.config.schema import RunConfig

CONF = Path(__file__).parents[1] / "conf"
PAGE = Path(__file__).with_suffix(".md")
HEAD = """# Settings by option

Made from `conf/` and `memeval/config/schema.py` by `python docs/settings_reference.py`. [configuration.md](configuration.md) explains the settings by subject; this page is for looking up a name: every group, every option with the values that it sets, and every field that the schema knows.

- `group=option` chooses an option, `group.field=value` changes a field. `*` marks the default option.
- A *stage* says what another value makes again ([stages](configuration.md#stages)).
- The fields of `dataset` and `system` are those of the option's class; [configuration.md](configuration.md#system) and [the pages of the data sets](datasets/README.md) give their stages.
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
    "tracking": "Tracking",
}
"""The groups of conf/, in the order of the page."""

OF_ONE_FIELD = ("top_k", "compression_turn")
"""Groups whose options are values of a field of the same name."""


def reference() -> str:
    """The whole page."""
    parts = [HEAD, "## Groups and their options"]
    for group, title in TITLES.items():
        parts += group_entry(group, title)

    parts.append("## Fields of the schema")
    parts += schema_entry(RunConfig, "")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def group_entry(group: str, title: str) -> Iterator[str]:
    """A group: a table of its options, and the values that each sets."""
    default = defaults().get(group)
    yield f"### {title} (`{group}=`)"
    prefix = "" if group in OF_ONE_FIELD else f"{group}."

    lines = ["| option | is | sets |", "|---|---|---|"]
    for path in sorted((CONF / group).glob("*.yaml")):
        mark = " *" if path.stem == default else ""
        values = "<br>".join(f"`{prefix}{escaped(value)}`" for value in set_values(path))
        lines.append(f"| `{group}={path.stem}`{mark} | {escaped(summary(path))} | {values} |")

    yield "\n".join(lines)


def schema_entry(kind: type[Any], prefix: str) -> Iterator[str]:
    """The fields of a schema class, then those of the groups within it."""
    docs = field_docs(kind)
    rows = []
    groups = []
    for field in dataclasses.fields(kind):
        name = prefix + field.name.rstrip("_")
        inner = getattr(schema, str(field.type), None)
        if dataclasses.is_dataclass(inner):
            groups.append((inner, f"{name}."))
        else:
            rows.append(field_row(name, field, docs.get(field.name, "")))

    title = prefix.rstrip(".")
    text = " ".join((inspect.getdoc(kind) or "").split())
    yield f"### `{title}`" if title else "### At the top"
    yield text
    yield "\n".join(["| field | type | default | stage | is |", "|---|---|---|---|---|", *rows])

    for inner, inner_prefix in groups:
        yield from schema_entry(inner, inner_prefix)


def field_row(name: str, field: dataclasses.Field[Any], text: str) -> str:
    """A field as a row of its table."""
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    else:
        default = field.default

    stage = field.metadata.get("stage", "")
    of_type = f"`{escaped(str(field.type))}`"
    cells = [f"`{name}`", of_type, f"`{spoken(default)}`", stage, escaped(text)]
    return "| " + " | ".join(cells) + " |"


@cache
def field_docs(kind: type[Any]) -> dict[str, str]:
    """The docstring below each field of a class."""
    tree = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(tree, ast.ClassDef)
    docs: dict[str, str] = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            docs[field.target.id] = " ".join(str(below.value.value).split())

    return docs


def summary(path: Path) -> str:
    """What an option is: the first comment of its file."""
    comments = (line[1:].strip() for line in lines_of(path) if line.startswith("#"))
    return next((comment for comment in comments if not comment.startswith("@")), "")


def set_values(path: Path) -> Iterator[str]:
    """`field=value` for each value of an option's file but its name and class."""
    loaded: Any = OmegaConf.to_container(OmegaConf.load(path), resolve=False)
    for name, value in flat(loaded or {}):
        if name not in ("name", "class") and not name.startswith("defaults"):
            yield f"{name}={spoken(value)}"


def flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a tree with their dotted names."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


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
    top: Any = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"), resolve=False)
    pairs = [line for line in top["defaults"] if isinstance(line, dict)]
    return {group: str(option) for pair in pairs for group, option in pair.items()}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def escaped(text: str) -> str:
    """A text as a cell of a table may hold it."""
    return re.sub(r"\|", r"\\|", text)


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
