"""The groups and fields in conf/, and the error for an unknown name."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from memeval.config.overrides import INTEGER_GROUPS
from memeval.config.paths import conf_dir
from memeval.config.served import chosen_options, package_fields
from memeval.errors import UserError
from memeval.text.shown import some_of
from memeval.text.yaml_files import load_yaml

BY_SLASH = "use a slash:  hydra/launcher=ray"
_OUTPUTS_HINT = "results go to outputs/ of the home; to set it:  export MEMEVAL_HOME=FOLDER"
_RATES_HINT = "to limit how many requests are open at a time:  llm.max_concurrency=4"
_HINTS = {
    "grids": "grids work in sweeps/ and in packages; in your own folder, use hydra.sweeper.params",
    "launcher": BY_SLASH,
    "sweeper": BY_SLASH,
    **dict.fromkeys(("output", "outputs", "output_dir", "out", "out_dir"), _OUTPUTS_HINT),
    **dict.fromkeys(("rpm", "tpm", "requests_per_minute", "rate_limit"), _RATES_HINT),
}
"""Replacements for some names of other tools, by the last part of the name."""
HELP = "python -m memeval --help lists groups, options and fields"


@cache
def known_names() -> Mapping[str, list[str]]:
    """Every group and field, with the options (`llm=openai`) that have it."""
    names: dict[str, list[str]] = {path.name: [] for path in conf_dir().iterdir() if path.is_dir()}
    paths = sorted(conf_dir().rglob("*.yaml"))
    # OmegaConf would take twenty times as long, and only the names matter here.
    files = [(path, load_yaml(path) or {}) for path in paths]

    # An option comes before the options that build on it.
    files.sort(key=lambda entry: "defaults" in entry[1])
    for path, loaded in files:
        group = path.parent.relative_to(conf_dir()).as_posix()
        prefix = f"{group.replace('/', '.')}."
        if path.parent == conf_dir() or group in INTEGER_GROUPS:
            group = prefix = ""

        for name in _paths(loaded):
            if name.partition(".")[0] not in ("defaults", "hydra"):
                names.setdefault(f"{prefix}{name}", []).append(f"{group}={path.stem}")

    return names


def options_with_field(
    name: str, words: Iterable[str], folders: tuple[Path, ...] = ()
) -> Sequence[str]:
    """The options that have the field `name`: memeval's own, by their files alone, and those that
    the words choose, by the files that these extend as well. `folders` are the user's.
    """
    choices = frozenset(without_marks(word) for word in words if "=" in word)
    return [*known_names().get(name, ()), *chosen_options(name, choices, folders)]


def without_marks(word: str) -> str:
    """A choice of an option, without `+` and quotes."""
    return word.lstrip("+").replace("'", "").replace('"', "")


def _paths(values: Mapping[str, Any]) -> Iterator[str]:
    """Dotted paths of a file's fields, including groups of fields."""
    for name, value in values.items():
        yield str(name)
        if isinstance(value, Mapping):
            for inner in _paths(value):
                yield f"{name}.{inner}"


def unknown_name(key: str) -> UserError:
    """The error for an unknown group or field, with options that have it or the nearest names."""
    known = known_names()
    package_names = package_fields(key.partition(".")[0])
    if owners := known.get(key) or package_names.get(key):
        listed = some_of(owners, 3)
        return UserError(
            f"'{key}' is a field of {listed} only", f"for example:  {owners[0]} {key}=...", HELP
        )

    # A field within its own group, such as system.working_memory.template, comes first.
    first, dot, last = key.partition(".")
    if dot:
        begin, end = f"{first}.", f".{last}"
        deeper = [name for name in known if name.startswith(begin) and name.endswith(end)]
    else:
        deeper = fields_called(key)

    message = f"unknown field or group '{key}'."
    alike = get_close_matches(key, [*known, *package_names], n=3, cutoff=0.6)
    if near := list(dict.fromkeys([*deeper[:2], *alike]))[:3]:
        message += f" Did you mean: {', '.join(near)}?"

    return UserError(message, *filter(None, [_HINTS.get(last or key)]), HELP)


def fields_called(name: str) -> list[str]:
    """Groups and fields called `name`, then those whose last part begins or ends with it."""
    exact: list[str] = []
    parts: list[str] = []
    for known in known_names():
        last_part = known.rpartition(".")[2]
        if last_part == name:
            exact.append(known)
        elif last_part.startswith(f"{name}_") or last_part.endswith(f"_{name}"):
            parts.append(known)

    # A group before a field, and a group's field before one that is nested deeper; the reader's
    # before other roles', as most mean that model.
    exact.sort(key=lambda name: (_depth(name), not name.startswith("llm.")))
    return [*exact, *sorted(parts, key=_depth)]


def _depth(name: str) -> int:
    return name.count(".")
