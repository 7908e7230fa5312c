"""A package that is installed: its code, and the metadata that pip writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    site: Path,
    name: str,
    parts: Mapping[str, Mapping[str, str]],
    files: Mapping[str, str] | None = None,
    version: str = "1.0",
) -> None:
    """Puts a package into a folder of the search path.

    `parts` are its entry points by group and name; `files` its files by path.
    """
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, points in parts.items():
        lines.append(f"[{group}]")
        lines += [f"{point} = {value}" for point, value in points.items()]

    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for path, text in (files or {}).items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text, encoding="utf-8")
