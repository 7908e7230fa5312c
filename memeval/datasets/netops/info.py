"""Registry entry of `netops`: a file of one's own in the generic schema."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

NETOPS = DatasetInfo(
    name="netops",
    title="Your own cases of network operations: chunks and questions in the generic JSON schema",
    file="netops/netops.json",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="that of your file",
    citation="none: the file is your own",
    by_hand=(
        "it is a file of your own: dataset.path=FILE, in the schema of docs/datasets/netops.md; "
        "a small one that ships: dataset=demo_netops"
    ),
)

INFOS = (NETOPS,)
"""What `data list` shows of this package."""
