"""Texts for MLflow at the end of a sweep. Nothing here loads MLflow."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from memeval.text.redaction import redacted
from memeval.tracking.view import LONGEST_NAME, param_column

COMPARED = "mlflow.memeval.compared"
"""Tag of an experiment: the digest of the sweep end that it shows. It begins with `mlflow.`,
because MLflow's page hides such tags, and a digest tells a reader nothing.
"""
PAGE = "comparison.html"
"""The page of a comparison, in the sweep's folder and among its artifacts."""
HEADING = "**Last comparison:**"
"""Begins memeval's part of an experiment's description; the text above it is the user's. MLflow
shows only the first line of a folded description, so the first sentence is on the same line.
"""


class SweepEnd(Struct, frozen=True):
    """The end of a sweep, as MLflow shows it."""

    sweep_id: str
    """Name and digest of the invocation, as in the tag `memeval.sweep_id`."""
    names: Mapping[Path, str]
    """Unique name of each cell, by run folder: the system, then the settings that differ."""
    settings: Sequence[str]
    """The settings that differ, by dotted path, in the order of their columns."""
    sentences: Sequence[str]
    """Sentences of the comparison; any Markdown in them is escaped."""

    @property
    def columns(self) -> list[str]:
        """The columns of the settings in MLflow's table; the system is always included."""
        return list(map(param_column, dict.fromkeys(["system", *self.settings])))

    @property
    def digest(self) -> str:
        """Distinguishes two ends, so that one already shown is not logged again."""
        fields = {
            "sweep_id": self.sweep_id,
            "names": {str(run): name for run, name in self.names.items()},
            "settings": list(self.settings),
            "sentences": list(self.sentences),
        }
        return hashlib.sha256(json.dumps(fields).encode()).hexdigest()

    def text(self, page: str | None) -> str:
        """The sentences as a list in Markdown, with a link to the comparison's page if any."""
        first, *others = map(_escape, self.sentences or [f"{len(self.names)} runs"])
        lines = [first, "", *(f"- {sentence}" for sentence in others)]
        lines += ["", f"{len(self.names)} runs of `{self.sweep_id}`."]
        if page is not None:
            lines[-1] += f" [{PAGE}]({page}) shows their differences and every question."

        return "\n".join(lines)


def short_names(labels: Sequence[str]) -> list[str]:
    """Unique names of runs that MLflow's table shows in full.

    The middle of a longer name is left out, since names of models often differ at their end.
    """
    names: list[str] = []
    for label in map(redacted, labels):
        name = label
        if len(name) > LONGEST_NAME:
            head = (LONGEST_NAME - 1) // 2
            name = f"{label[:head]}…{label[head + 1 - LONGEST_NAME :]}"

        number = 2
        while name in names:
            mark = f" #{number}"
            name = label[: LONGEST_NAME - len(mark)] + mark
            number += 1

        names.append(name)

    return names


def replace_own_part(old: str, text: str, view: str, limit: int) -> str:
    """A description with memeval's part replaced; the user's text above it stays.

    `view`, the link to the table, is never cut.
    """
    above = old.partition(HEADING)[0].rstrip()
    before = f"{above}\n\n" if above else ""
    room = limit - len(before) - len(HEADING) - len(view) - 4
    lines = text.splitlines()
    while lines and len("\n".join(lines)) > room:
        # Whole lines are dropped, because a sentence that is cut says something else.
        last = -3 if len(lines) > 3 else -1
        lines.pop(last)

    return f"{before}{HEADING} " + "\n".join(lines) + view


def _escape(sentence: str) -> str:
    return re.sub(r"[\\`*_\[\]<>]", r"\\\g<0>", sentence)
