"""The folder of a project: its data, its results and its prices."""

import os
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


def project_root() -> Path:
    """The folder of data/ and outputs/: MEMEVAL_HOME, or the checkout or current folder."""
    home = os.environ.get("MEMEVAL_HOME")
    if home:
        return Path(home).expanduser().resolve()

    return _checkout() or Path.cwd()


@cache
def _checkout() -> Path | None:
    """The checkout that this package is in; None if it was installed."""
    folder = PACKAGE.parent
    return folder if (folder / "conf" / "config.yaml").is_file() else None
