"""The data set of a run as an input of an MLflow run: name, digest, source."""

from __future__ import annotations

import json
from hashlib import sha256

from mlflow.entities import Dataset, DatasetInput, InputTag

from memeval.datasets.registry import DATASETS
from memeval.results import RunSummary
from memeval.text.redaction import redacted

DATA_DIGITS, DIGEST_LENGTH = 8, 17
"""Characters of the data's part of the digest, and of the whole digest. MLflow accepts 36 at most,
and its page shows all; the data's full digest is in the tag `memeval.data_sha256`.
"""


def dataset_input(summary: RunSummary) -> DatasetInput:
    """The data set that a run's questions are from."""
    source_type, source = dataset_source(summary)
    profile = json.dumps({"n_questions": summary.metrics.get("n_questions")})
    dataset = Dataset(
        name=redacted(summary.dataset)[:500] or "unnamed",
        digest=input_digest(summary, source_type, json.dumps(source), profile),
        source_type=source_type,
        source=json.dumps(source),
        profile=profile,
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])


def input_digest(summary: RunSummary, *described: str) -> str:
    """The data's own digest, cut, and a digest of the rest that describes this run's input.

    MLflow keeps the first data with a name and a digest, and would show every later run with the
    number of questions and the source of the first one.
    """
    data = summary.data_sha256[:DATA_DIGITS] or "unknown"
    rest = sha256("\0".join(described).encode()).hexdigest()

    return f"{data}-{rest}"[:DIGEST_LENGTH]


def dataset_source(summary: RunSummary) -> tuple[str, dict[str, object]]:
    """Source of a data set, in one of the forms that MLflow knows."""
    path = summary.params.get("dataset.path")
    if path:
        return "local", {"uri": redacted(str(path))}

    info = DATASETS.get(summary.dataset)
    url = info.url if info else None
    if info is not None and url is None and info.files:
        url = info.files[0].url
    if url:
        return "http", {"url": url}

    # It ships with memeval, is generated, or is read by a custom class.
    return "code", {"tags": {"mlflow.source.name": redacted(summary.command)}}
