"""Locations of files that ship with memeval and of pages of its documentation, for messages."""

import re
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
PLACES = (_PACKAGE, _PACKAGE.parent)
"""Folders that contain the shipped files: in a release, and in a checkout."""
DISTRIBUTION = "memeval-bench"
_NAMED = re.compile(r"\b(?:docs|data/demo)/[\w/.]*\w")


def shipped_path(name: str) -> Path:
    """Path of a file, such as `data/demo/own.json`, whether or not it exists."""
    for place in PLACES:
        if (place / name).exists():
            return place / name

    return PLACES[-1] / name


def location_of(name: str) -> str:
    """Location of a file or a page, such as `docs/glossary.md`: its path, or the URL of a page that
    is not on this machine, since a release does not include the pages.
    """
    path, here = shipped_path(name), Path.cwd()
    if path.exists():
        if path.is_relative_to(here):
            path = path.relative_to(here)

        return str(path)

    if name.startswith("docs/"):
        return f"{_documentation()}/{name.removeprefix('docs/')}"

    return name


def with_locations(text: str) -> str:
    """Text with each file name in it replaced by the file's location (`location_of`)."""
    return _NAMED.sub(lambda match: location_of(match[0]), text)


def _documentation() -> str:
    """URL of the documentation, from the package's metadata; `docs` if memeval is not installed."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        addresses = metadata(DISTRIBUTION).get_all("Project-URL") or []
    except PackageNotFoundError:
        return "docs"

    named = dict(address.split(", ", 1) for address in addresses)
    return str(named.get("Documentation", "docs"))
