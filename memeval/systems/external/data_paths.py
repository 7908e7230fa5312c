"""The variables that set the location of a program's data, found in its script.

By default, most servers keep all data in one file next to their code or in the working directory.
"""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from memeval.systems.external.served import files_of

_VARIABLE = re.compile(
    r"""(?:process\.env(?:\.|\[["'])|os\.environ(?:\.get\(|\[)["']|getenv\(["'])([A-Z][A-Z0-9_]*)
    (?:["'\])]*\s*(?:\|\||\?\?|,|\bor\b)\s*["'`](file:|sqlite:///))?""",
    re.VERBOSE,
)
"""A variable that a script reads, and its default's URL scheme, if that is the URL of a file."""
_OF_DATA = re.compile(r"(?:MEMOR|DATA|DB|STOR|NOTES|KNOWLEDGE|GRAPH).*?(FILE|PATH|DIR|FOLDER)$")
"""Names of variables that set where a server keeps its data."""
_IMPORT = re.compile(r"#!.*python.*\n(?:.*\n){0,5}?from (\w+)[\w.]* import ")
"""The start of a command of a Python package, up to the name of the package."""
LARGEST = 4 * 2**20
"""Maximum bytes that are read of a script."""


def data_paths_of(words: Sequence[str]) -> dict[str, str]:
    """A path in the case's folder for each variable that sets where a command keeps data."""
    paths: dict[str, str] = {}
    modules = list(_modules_of(Path(shutil.which(next(iter(words), "")) or "").resolve()))
    for script in (*files_of(words), *_scripts_of(words), *modules):
        with suppress(OSError), script.open(encoding="utf-8", errors="replace") as file:
            for name, scheme in _VARIABLE.findall(file.read(LARGEST)):
                if scheme:
                    paths[name] = f"{scheme}{{case_dir}}/memory.db"
                elif name not in paths and (match := _OF_DATA.search(name)):
                    taken = "{case_dir}/memory" in paths.values()
                    path = "{case_dir}/" + (name.lower() if taken else "memory")
                    paths[name] = "{case_dir}" if match[1] in ("DIR", "FOLDER") else path

    if modules and paths:
        # The variables found may not move the data, which may be below HOME.
        paths["HOME"] = "{case_dir}"

    return paths


def _scripts_of(words: Sequence[str]) -> Iterator[Path]:
    """The scripts of an npm package that a command runs by its name, if it is installed."""
    program = next(iter(words), "")
    if Path(program).name != "npx":
        # The links to scripts in node_modules/.bin have no suffix.
        for path in (shutil.which(program) or "", *words[1:]):
            script = Path(path).resolve()
            if script.suffix in (".js", ".mjs", ".cjs"):
                yield script

        return

    # An option may have a value, so each of the words may be the package.
    for word in words[1:]:
        if word.startswith("-"):
            continue

        package = re.sub(r"(?<=.)@[^/]*$", "", word)
        for modules in (Path("node_modules"), *Path.home().glob(".npm/_npx/*/node_modules")):
            yield from _scripts_in(modules / package)
            yield from filter(Path.is_file, [(modules / ".bin" / package).resolve()])


def _modules_of(command: Path) -> Iterator[Path]:
    """The modules of a Python package, if `command` is a script that pip installed with it."""
    with suppress(OSError), command.open(encoding="utf-8", errors="replace") as file:
        named = _IMPORT.match(file.read(1000))
        if named:
            for installed in command.parent.parent.glob("lib/python*/site-packages"):
                yield from sorted((installed / named[1]).rglob("*.py"))


def _scripts_in(package: Path) -> Iterator[Path]:
    """The scripts that a package's `bin` names."""
    try:
        content: Any = json.loads((package / "package.json").read_bytes())
    except (OSError, ValueError):
        return

    if not isinstance(content, dict):
        return

    named = content.get("bin")
    paths = named.values() if isinstance(named, dict) else [named]
    for path in paths:
        if isinstance(path, str):
            yield package / path
