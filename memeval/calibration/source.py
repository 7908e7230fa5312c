"""Data shared by all calibrations of a run, whatever its labels are."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from memeval.results import RECORDS_FILE
from memeval.results.calibration import Calibration, KindRange
from memeval.results.files import file_digest
from memeval.results.run import Run


class LabelSource(Struct, frozen=True):
    """Fields shared by all calibrations: the run and the file."""

    run: Run
    path: Path
    raw: float
    rows_without_label: int

    def calibration(
        self,
        method: str,
        labels: int,
        *,
        accuracy: float | None,
        bounds: tuple[float | None, float | None],
        se: float | None = None,
        power: float | None = None,
        groups: int | None = None,
        right: tuple[int, int] | None = None,
        kinds: tuple[KindRange, ...] = (),
        flips: tuple[int, int] | None = None,
    ) -> Calibration:
        """The calibration as a record; shares are clipped to [0, 1]."""
        low, high = bounds
        return Calibration(
            run_key=self.run.key,
            records=file_digest(self.run.folder / RECORDS_FILE),
            method=method,
            raw=self.raw,
            accuracy=_clip(accuracy),
            low=_clip(low),
            high=_clip(high),
            labels=labels,
            rows_without_label=self.rows_without_label,
            file=self.path.name,
            sha256=file_digest(self.path),
            se=se,
            power=power,
            groups=groups,
            right_kept=right[0] if right else None,
            right_labels=right[1] if right else None,
            kinds=kinds,
            flipped=flips[0] if flips else None,
            attacks=flips[1] if flips else None,
        )


def _clip(share: float | None) -> float | None:
    return None if share is None else min(max(share, 0.0), 1.0)
