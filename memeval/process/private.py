"""Makes files that this process creates readable only by their owner."""

import os


def private_umask() -> None:
    """From here on, only their owner may read the files that this process and its children create.

    This includes files of other libraries: databases with their journals, artifacts, locks, plots.
    """
    os.umask(0o077)
