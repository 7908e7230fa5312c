"""Which code files a report is stamped with."""

from __future__ import annotations

from pathlib import Path

import memeval.report
from memeval.report.stamp import code_files


def test_stamp_covers_templates_and_code_that_write_a_report() -> None:
    """A page is written again if its code changed, even if its run did not."""
    report = Path(memeval.report.__file__).parent
    parts = {"markdown.py", "page/build.py", "page/files/page.html.j2", "plots/draw.py"}
    assert parts <= {path.relative_to(report).as_posix() for path in code_files(report)}
