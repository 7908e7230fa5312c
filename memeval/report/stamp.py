"""Checks whether the report of a run folder is up to date."""

import hashlib
from functools import cache
from pathlib import Path

from memeval.results import RUN_FILE, write_atomically
from memeval.results.calibration import CALIBRATION_FILE

STAMP_FILE = ".report"
REPORT_FILE, PAGE_FILE = "report.md", "report.html"


def stamp_report(folder: Path, *, plots: bool) -> None:
    """Records the inputs of a report. Raises `OSError`."""
    write_atomically(folder / STAMP_FILE, _stamp(folder, plots=plots))


def has_report(folder: Path, *, plots: bool) -> bool:
    """Whether the folder's report was made from these results by this code, and is unchanged."""
    try:
        return (folder / STAMP_FILE).read_text(encoding="utf-8") == _stamp(folder, plots=plots)
    except (OSError, UnicodeDecodeError):
        return False


def _stamp(folder: Path, *, plots: bool) -> str:
    lines = []
    # Labels change what a report shows, and nothing in `run.json`. Only the first two must exist.
    for name in (RUN_FILE, REPORT_FILE, PAGE_FILE, CALIBRATION_FILE):
        path = folder / name
        if path.exists() or name in (RUN_FILE, REPORT_FILE):
            lines.append(hashlib.sha256(path.read_bytes()).hexdigest())
        else:
            lines.append(f"no {name}")

    lines += [report_code(), f"plots={plots}"]
    if plots:
        lines += sorted(path.name for path in (folder / "plots").glob("*.??g"))

    return "\n".join([*lines, ""])


@cache
def report_code() -> str:
    """Digest of the code that writes reports and pages."""
    digest = hashlib.sha256()
    for path in code_files(Path(__file__).parent):
        digest.update(path.read_bytes())

    return digest.hexdigest()


def code_files(report: Path) -> list[Path]:
    """The files of the code that makes reports, pages and plots."""
    # Sorted: folders list their files in any order.
    return sorted([*report.rglob("*.py"), *report.glob("page/files/*")])
