"""Which code a report is stamped with."""

from __future__ import annotations

from pathlib import Path

import memeval.report
from memeval.report.stamp import code_files


def test_all_that_makes_a_report_is_in_its_stamp() -> None:
    """A page whose code changed is written again, although its run did not change."""
    report = Path(memeval.report.__file__).parent
    parts = {"markdown.py", "page/build.py", "page/files/page.html.j2", "plots/draw.py"}
    assert parts <= {path.relative_to(report).as_posix() for path in code_files(report)}
