"""Makes what this process creates readable only by its owner."""

import os


def private_umask() -> None:
    """From here on, only their owner may read the files that this process and its children create.

    This covers what other libraries create: databases with their journals, artifacts, locks, plots.
    """
    os.umask(0o077)
