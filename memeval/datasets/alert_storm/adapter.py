"""Alert storms: generated with known root causes, or the alert lines of a real log."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain
from pathlib import Path

from memeval.datasets.alert_storm.generate import (
    HISTORY_VERSION,
    SHAPE,
    VERSION,
    Alert,
    AlertStormSettings,
    Storm,
    generate,
    generate_history,
)
from memeval.datasets.alert_storm.history import history_drafts, join_storms
from memeval.datasets.alert_storm.material import StormMaterial
from memeval.datasets.alert_storm.questions import OVER_STORMS, TEMPLATES
from memeval.datasets.alert_storm.text import HISTORY, show
from memeval.datasets.chance import seeded_random
from memeval.datasets.contract import LoadedDataset
from memeval.datasets.io.fields import Fields
from memeval.datasets.io.tables import read_table
from memeval.datasets.locate import digest_of, read_file
from memeval.datasets.netops.base import NetOps, choose, drafts_of, questions
from memeval.datasets.netops.words import one_word
from memeval.errors import UserError
from memeval.records import EvalCase

LOG_FILE = "aiops/BGL_2k.log_structured.csv"
"""Path below the data folder."""
LOG_COLUMNS = ("LineId", "Label", "Node", "Time", "Level", "Content")
LOG_TIME = "%Y-%m-%d-%H.%M.%S.%f"
NO_ALERT = "-"


class AlertStorm(NetOps):
    """Generates storms, or reads a log in Loghub's structured form."""

    settings_type = AlertStormSettings
    settings: AlertStormSettings

    def open(self) -> LoadedDataset:
        if self.settings.source == "log":
            alerts, lines, digest = self._log
            note = f"log: {len(alerts)} of {lines} lines are alerts; the others are left out"
            return self._loaded(digest, pinned=False, path=self._log_path, notes=(note,))

        return self._loaded(self._identity, pinned=True)

    def read(self) -> Iterator[EvalCase]:
        if self.settings.source == "log":
            yield self._case("log", Storm(self._log[0], {}))
            return

        for number in range(1, self.settings.n_cases + 1):
            name = f"storm-{number}"
            rng = seeded_random("alert_storm", VERSION, self.settings.seed, name)
            if self.settings.storms_per_case == 1:
                yield self._case(name, generate(self.settings, rng))
            else:
                storms = generate_history(self.settings, rng)
                yield self._case(name, join_storms(storms), storms)

    def _case(self, name: str, storm: Storm, history: Sequence[Storm] = ()) -> EvalCase:
        """The case of a storm, or of a history joined into one storm."""
        legend = (HISTORY,) if history else ()
        shown, sessions = show(storm, *legend)
        rng = seeded_random("alert_storm questions", VERSION, self.settings.seed, name)
        material = StormMaterial(rng=rng, storm=storm, shown=shown)
        offered = drafts_of(TEMPLATES, material)
        if history:
            offered = chain(history_drafts(material, history), drafts_of(OVER_STORMS, material))

        chosen = choose(rng, offered, self.settings.questions_per_case)
        return EvalCase(case_id=name, sessions=sessions, questions=questions(name, chosen))

    @property
    def _identity(self) -> str:
        """sha256 of the generator's version and all its inputs."""
        given = {
            **{name: getattr(self.settings, name) for name in SHAPE},
            "n_cases": self.settings.n_cases,
            "seed": self.settings.seed,
            "version": VERSION,
        }
        # Left out for a single storm, to keep its digest from before histories were added.
        if self.settings.storms_per_case > 1:
            given["storms_per_case"] = self.settings.storms_per_case
            given["version"] = HISTORY_VERSION

        return digest_of(json.dumps(given, sort_keys=True).encode())

    @property
    def _log_path(self) -> Path:
        return self.path if self.settings.path else self.path / LOG_FILE

    @cached_property
    def _log(self) -> tuple[tuple[Alert, ...], int, str]:
        """The alerts, the number of lines, and the sha256 of the file."""
        content = read_file(self.info, self._log_path)
        return *read_log(content, self._log_path), digest_of(content)


def read_log(content: bytes, path: Path) -> tuple[tuple[Alert, ...], int]:
    """The alerts (the lines whose label is not `-`) in order of time, and the number of all lines.

    Raises `UserError` naming file, line and column if a row can't be read, or if no line is an
    alert.
    """
    rows = read_table(content, path, LOG_COLUMNS)
    numbers: dict[str, str] = {}
    for row in rows:
        number = row.answer("LineId")
        if number in numbers:
            raise row.wrong("LineId", f"is {number}, as on {numbers[number]}")

        numbers[number] = row.record

    alerts = [_alert(row) for row in rows if row.answer("Label") != NO_ALERT]
    if not alerts:
        raise UserError(f"{path} contains no alerts: every line has the label '{NO_ALERT}'.")

    return tuple(sorted(alerts, key=lambda alert: alert.time)), len(rows)


def _alert(row: Fields) -> Alert:
    """Device and kind are the columns Node and Label, as single words."""
    time = row.time("Time", _parse_time, "2005-06-03-15.42.50.675872", noun="time")
    message = re.sub(r"\s+", " ", row.answer("Content")).strip()
    return Alert(
        time=time,
        device=_word(row, "Node"),
        severity=row.answer("Level").strip().lower(),
        kind=_word(row, "Label"),
        port="",
        message=message,
    )


def _parse_time(text: str) -> datetime:
    return datetime.strptime(text.strip(), LOG_TIME)


def _word(row: Fields, name: str) -> str:
    word = one_word(row.answer(name))
    if not word:
        raise row.wrong(name, "contains neither letters nor digits")

    return word
