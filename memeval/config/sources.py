"""The code behind a result: a digest of its sources, or in a release, the version."""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import memeval
from memeval import __version__

_PACKAGE = Path(memeval.__file__).resolve().parent
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<package>memeval[\w.]*)[ \t]+import[ \t]+"
    r"(?:\((?P<listed>[^)]*)\)|(?P<named>[^\n#]*))|import[ \t]+(?P<module>memeval[\w.]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_DATA_FILE = re.compile(r'"([\w-]+\.(?:toml|tsv|yaml))"')
"""The name of a data file, as written in a module."""


def is_checkout() -> bool:
    """Whether the package runs from sources that may be edited."""
    return (_PACKAGE.parent / "pyproject.toml").is_file()


def code_identity(
    roots: Iterable[str], *, within: Iterable[str] = (), outside: Iterable[str] = ()
) -> str:
    """The part of a key that identifies the code of `roots`.

    In a checkout: a digest of the sources of these modules, of the data files next to them, and of
    their direct and indirect imports from the packages `within`, without the modules `outside`. In
    a release: the version. Roots that are not memeval's own are left out: the caller identifies
    them.
    """
    if not is_checkout():
        return __version__

    return _digest(_sort(roots), _sort(within), _sort(outside))


def _sort(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


@cache
def _digest(roots: tuple[str, ...], within: tuple[str, ...], outside: tuple[str, ...]) -> str:
    sha = hashlib.sha256()
    for module in sorted(reachable(roots, within, outside)):
        file, source = _file(module), _source(module)
        assert file is not None, f"{module} is not a module of memeval"
        # Includes the name, because a moved module is a different one. NUL separates the parts.
        sha.update(f"{module}\0{source}\0".encode())
        # The data files next to a module that its source names, such as its word lists.
        names = sorted(set(_DATA_FILE.findall(source)))
        for path in filter(Path.is_file, map(file.with_name, names)):
            sha.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")

    return sha.hexdigest()[:16]


def reachable(
    roots: Iterable[str], within: tuple[str, ...], outside: tuple[str, ...] = ()
) -> set[str]:
    """The roots and the modules they import, directly or not, in `within` but not in `outside`."""
    seen: set[str] = set()
    waiting = list(filter(_file, roots))

    while waiting:
        module = waiting.pop()
        if module in seen:
            continue

        seen.add(module)
        imported = [name for name in _imports(module) if _is_within(name, within)]
        waiting += [name for name in imported if not _is_within(name, outside)]

    return seen


def _is_within(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


@cache
def _imports(module: str) -> frozenset[str]:
    """The modules of memeval that a module imports, also inside of functions."""
    imported: set[str] = set()
    for match in _IMPORT.finditer(_source(module)):
        package = match["package"] or match["module"]
        imported.add(package)
        names = match["listed"] or match["named"] or ""
        # A name may be a module itself; others have no file, and are left out below.
        imported |= {f"{package}.{name}" for name in _NAME.findall(names)}

    return frozenset(filter(_file, imported))


@cache
def _source(module: str) -> str:
    path = _file(module)
    assert path is not None, f"{module} is not a module of memeval"
    return path.read_text(encoding="utf-8")


@cache
def _file(module: str) -> Path | None:
    """The source file of a module of memeval; None if the name is not one."""
    first, *parts = module.split(".")
    if first != _PACKAGE.name:
        return None

    path = _PACKAGE.joinpath(*parts)
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate

    return None
