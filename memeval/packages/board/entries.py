"""The runs of all packages, grouped by protocol: only runs of one protocol are compared."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from memeval.comparison.scores import RunScores
from memeval.packages.read import Package
from memeval.packages.unpack import imported_key
from memeval.report.differences import IMPORTED_FILE, system_of
from memeval.results import RunSummary, is_imported
from memeval.results.run import Run
from memeval.text.names import text_digest

BASELINES = ("full_history", "files", "bm25", "no_memory")
ORACLE = "oracle"


class BoardEntry(Struct, frozen=True):
    """A run of a package, under a key that no run of another package has."""

    package: Package
    run: Run
    """Its unpacked files have been removed: to read its records, open the package again."""
    scores: RunScores
    """Accuracy of each question."""
    protocol: Mapping[str, Any]

    @property
    def has_texts(self) -> bool:
        """Whether the package contains the texts of the data."""
        summary = self.run.summary
        for data in self.package.manifest.data:
            if data.texts and (data.name, data.sha256) == (summary.dataset, summary.data_sha256):
                return True

        return False


def name_of(summary: RunSummary) -> str:
    """The system of a run; for answers of another program, their label or the name of the file."""
    if not is_imported(summary):
        return system_of(summary)

    file = PurePath(str(summary.params.get(IMPORTED_FILE) or summary.name)).stem
    return str(summary.params.get("label") or file)


def kind_of(summary: RunSummary) -> str:
    """`baseline` or `oracle` for memeval's own systems of these names, else `system`."""
    name = summary.params.get("system")
    is_own = not is_imported(summary) and not summary.params.get("system.class")
    if is_own and name in BASELINES:
        return "baseline"

    return "oracle" if is_own and name == ORACLE else "system"


def entries_of(
    packages: Iterable[tuple[Package, Mapping[str, RunScores]]],
) -> dict[str, list[BoardEntry]]:
    """The runs by the id of their protocol: by data set, those with most runs first."""
    groups: dict[str, list[BoardEntry]] = {}
    for package, scores in packages:
        for run in package.runs:
            # Two packages may contain a run of the same key.
            key = imported_key(package.id, run.key)
            copy = Run(run.folder, replace(run.summary, run_key=key))
            entry = BoardEntry(package, copy, scores[run.key], package.manifest.protocols[run.key])
            groups.setdefault(protocol_id(package, run.key), []).append(entry)

    def order(group: tuple[str, list[BoardEntry]]) -> tuple[str, int, str]:
        name, entries = group
        return entries[0].run.summary.dataset, -len(entries), name

    return dict(sorted(groups.items(), key=order))


def protocol_id(package: Package, key: str) -> str:
    """Twelve hex digits of a run's protocol."""
    text = json.dumps(package.manifest.protocols[key], sort_keys=True)
    return text_digest(text)[:12]
