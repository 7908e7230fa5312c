"""`system.class=my.module:Class` on the command line chooses an option: the class with its own
settings, and without the fields of the option that it replaces.

Such an option is called by the path, or by the option that was chosen beside it and the path:
`system='rag:my.module:Class'` runs the class under the name `rag`. `served.py` serves it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

GROUPS = ("system", "dataset", "judge", "embedder", "reranker")
"""Groups that take `class`."""

_PATH = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"
_WORD = re.compile(
    rf"\+{{0,2}}(?P<group>{'|'.join(GROUPS)})\.class="
    rf"(?P<paths>['\"]?{_PATH}['\"]?(?:,['\"]?{_PATH}['\"]?)*)"
)
_ONE_OPTION = re.compile(r"[\w.-]+")
CLASS_OPTION = re.compile(rf"(?:(?P<name>[^:]+):)?(?P<path>{_PATH})")
"""The name of an option that is a class."""


def choose_classes(words: Sequence[str]) -> list[str]:
    """Overrides with `system.class=PATH` as the choice of an option.

    A class of memeval's own stays a field, as does one beside several options.
    """
    chosen = list(words)
    for word in words:
        match = _WORD.fullmatch(word)
        if match is None or "memeval." in match["paths"]:
            continue

        group = match["group"]
        options = [other for other in chosen if other.lstrip("+").startswith(f"{group}=")]
        names = [option.partition("=")[2] for option in options]
        if len(options) > 1 or not all(map(_ONE_OPTION.fullmatch, names)):
            continue

        name = f"{names[0]}:" if names else ""
        paths = [path.strip("'\"") for path in match["paths"].split(",")]
        choices = ",".join(f"'{name}{path}'" for path in paths)
        chosen[chosen.index(word)] = f"{group}={choices}"
        # A field that the option did not have was added, by a `+`; now the class may have it.
        chosen = [
            f"+{other}" if other.startswith(f"+{group}.") else other
            for other in chosen
            if other not in options
        ]

    return chosen


def as_typed(word: str) -> list[str]:
    """An override as a user types it: a class as `system.class=PATH`, beside its name."""
    group, _, value = word.partition("=")
    match = CLASS_OPTION.fullmatch(value.strip("'\""))
    if group not in GROUPS or match is None:
        return [word]

    option = [f"{group}={match['name']}"] if match["name"] else []
    return [*option, f"{group}.class={match['path']}"]
