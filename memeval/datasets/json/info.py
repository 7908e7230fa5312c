"""Registry entry of `json`: a user's own file."""

from __future__ import annotations

from memeval.datasets.contract import DatasetInfo

JSON = DatasetInfo(
    name="json",
    title="Your own data: cases, sessions, turns and questions in one JSON schema",
    file="json/own.json",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="that of your file",
    citation="none: the file is your own",
    by_hand=(
        "it is a file of your own: dataset.path=FILE, in the schema of docs/datasets/json.md; "
        "a small one that ships: dataset=json dataset.path=data/demo/own.json"
    ),
)

INFOS = (JSON,)
"""What `data list` shows of this package."""
