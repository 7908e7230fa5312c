"""The data set of a run, as MLflow's input of a run: name, digest, source."""

from __future__ import annotations

import json

from mlflow.entities import Dataset, DatasetInput, InputTag

from memeval.datasets.registry import DATASETS
from memeval.redaction import redacted
from memeval.results import RunSummary

DIGEST_LENGTH = 36
"""Characters of a digest that MLflow keeps; the whole is in the tag `memeval.data_sha256`."""


def dataset_input(summary: RunSummary) -> DatasetInput:
    """The data set that a run's questions are from."""
    source_type, source = dataset_source(summary)
    profile = {"n_questions": summary.metrics.get("n_questions")}
    # MLflow refuses a longer one.
    digest = summary.tags.get("data_sha256", "")[:DIGEST_LENGTH]
    dataset = Dataset(
        name=redacted(summary.dataset)[:500] or "unnamed",
        digest=digest or "unknown",
        source_type=source_type,
        source=json.dumps(source),
        profile=json.dumps(profile),
    )
    return DatasetInput(dataset, [InputTag("mlflow.data.context", "eval")])


def dataset_source(summary: RunSummary) -> tuple[str, dict[str, object]]:
    """Where a data set comes from, in one of the forms that MLflow knows."""
    path = summary.params.get("dataset.path")
    if path:
        return "local", {"uri": redacted(str(path))}

    info = DATASETS.get(summary.dataset)
    url = info.url if info else None
    if info is not None and url is None and info.files:
        url = info.files[0].url
    if url:
        return "http", {"url": url}

    # It ships with memeval, is generated, or is read by a class of the user's own.
    return "code", {"tags": {"mlflow.source.name": redacted(summary.command)}}
