"""The folder of a project: its data, its results and its prices."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def project_root() -> Path:
    """The folder of data/ and outputs/: MEMEVAL_HOME, or the checkout or current folder."""
    home = os.environ.get("MEMEVAL_HOME")
    if home:
        return Path(home).resolve()

    checkout = PACKAGE.parent
    return checkout if (checkout / "conf" / "config.yaml").is_file() else Path.cwd()
