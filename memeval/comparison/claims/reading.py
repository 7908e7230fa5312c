"""Reads the claims that ship: a YAML file per source, in this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memeval.comparison.claims.records import Claim, Figure, Protocol
from memeval.report.differences import as_yaml

FOLDER = Path(__file__).parent


def load_claims(folder: Path = FOLDER) -> list[Claim]:
    """All claims, by name."""
    return [claim for path in sorted(folder.glob("*.yaml")) for claim in read_claims(path)]


def read_claims(path: Path) -> list[Claim]:
    """The claims of a file. Raises `ValueError` naming file and claim for what is not a claim."""
    import yaml  # type: ignore[import-untyped]

    content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    claims = []
    for name, members in content.items():
        try:
            claims.append(_claim(str(name), members))
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ValueError(f"{path}, claim {name}: {error}") from error

    return claims


def _claim(name: str, members: dict[str, Any]) -> Claim:
    protocol = dict(members["protocol"])
    for member in ("settings", "reader_settings"):
        if protocol.get(member) is not None:
            protocol[member] = _texts(protocol[member])

    if protocol.get("categories") is not None:
        protocol["categories"] = tuple(protocol["categories"])

    return Claim(
        name=name,
        title=members["title"],
        source=members["source"],
        dataset=members["dataset"],
        protocol=Protocol(**protocol),
        figures=tuple(_figure(figure) for figure in members["figures"]),
        caveats=tuple(members.get("caveats", ())),
    )


def _figure(members: dict[str, Any]) -> Figure:
    for name in ("by_category", "settings"):
        if name in members:
            members[name] = {str(key): value for key, value in members[name].items()}

    if "settings" in members:
        members["settings"] = _texts(members["settings"])

    return Figure(**members)


def _texts(settings: dict[str, Any]) -> dict[str, str]:
    """Settings as YAML writes their values."""
    return {str(name): as_yaml(value) for name, value in settings.items()}
