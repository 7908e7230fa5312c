"""The groups and fields that conf/ knows, and the error for a name that it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from memeval.config.integers import INTEGER_GROUPS
from memeval.config.paths import conf_dir
from memeval.errors import UserError

HELP = "python -m memeval --help lists groups, options and fields"


@cache
def known_names() -> Mapping[str, list[str]]:
    """Every group and field, with the options (`llm=openai`) of whose files a field is one.

    Read once: a mistake may be in each cell of a sweep.
    """
    from omegaconf import OmegaConf

    names: dict[str, list[str]] = {path.name: [] for path in conf_dir().iterdir() if path.is_dir()}
    for path in sorted(conf_dir().rglob("*.yaml")):
        loaded: Any = OmegaConf.to_container(OmegaConf.load(path)) or {}
        group = (
            ""
            if path.parent == conf_dir() or path.parent.name in INTEGER_GROUPS
            else path.parent.name
        )

        for name in _paths(loaded):
            if name.partition(".")[0] not in ("defaults", "hydra"):
                names.setdefault(f"{group}.{name}" if group else name, []).append(
                    f"{group}={path.stem}"
                )

    return names


def _paths(values: Mapping[str, Any]) -> Iterator[str]:
    """Dotted paths of a file's fields, groups of fields among them."""
    for name, value in values.items():
        yield str(name)
        if isinstance(value, Mapping):
            for inner in _paths(value):
                yield f"{name}.{inner}"


def unknown_name(key: str) -> UserError:
    """The error for a group or field that a composition does not have: where it belongs, else the
    nearest ones.
    """
    known = known_names()
    if homes := known.get(key):
        listed = ", ".join(homes[:3]) + (f" and {len(homes) - 3} more" if len(homes) > 3 else "")
        return UserError(
            f"'{key}' is a field of {listed} only", f"for example:  {homes[0]} {key}=...", HELP
        )

    # A field within a group of its own, such as system.working_memory.template, comes first.
    first, dot, last = key.partition(".")
    deeper = [name for name in known if name.startswith(first + dot) and name.endswith(dot + last)]
    alike = get_close_matches(key, known, n=3, cutoff=0.6)
    near = list(dict.fromkeys([*deeper[:2], *alike]))[:3] if dot else alike
    guess = f" Did you mean: {', '.join(near)}?" if near else ""

    return UserError(f"unknown field or group '{key}'.{guess}", HELP)
