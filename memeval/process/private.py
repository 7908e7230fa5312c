"""What this process creates can only be read by its owner."""

from __future__ import annotations

import os


def private_umask() -> None:
    """From here on, only their owner may read what this process, and those that it starts, create.

    This covers what other libraries create: databases with their journals, artifacts, locks, plots.
    """
    os.umask(0o077)
