"""The data set of a run as an input of an MLflow run: name, digest, source."""

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
    source_type, fields = dataset_source(summary)
    source = json.dumps(fields)
    profile = json.dumps({"n_questions": summary.asked})

    # MLflow keeps the first data with a name and a digest. With the data's own digest alone, it
    # would show every later run with the number of questions and the source of the first one.
    data = summary.data_sha256[:DATA_DIGITS] or "unknown"
    rest = sha256("\0".join((source_type, source, profile)).encode()).hexdigest()
    dataset = Dataset(
        name=redacted(summary.dataset)[:500] or "unnamed",
        digest=f"{data}-{rest}"[:DIGEST_LENGTH],
        source_type=source_type,
        source=source,
        profile=profile,
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])


def dataset_source(summary: RunSummary) -> tuple[str, dict[str, object]]:
    """Source of a data set, in one of the forms that MLflow knows."""
    path = summary.params.get("dataset.path")
    if path:
        return "local", {"uri": redacted(str(path))}

    if info := DATASETS.get(summary.dataset):
        url = info.url
        if url is None and info.files:
            url = info.files[0].url
        if url:
            return "http", {"url": url}

    # It ships with memeval, is generated, or is read by a custom class.
    return "code", {"tags": {"mlflow.source.name": redacted(summary.command)}}
