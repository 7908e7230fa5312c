"""LoCoMo's own metrics on the command line."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest
from command_line import ROOT, completed, memeval, records, runs

from memeval.datasets.io.fields import parse_json
from memeval.datasets.locomo.metrics import official_evidence_recall
from memeval.datasets.registry import DATASETS

DEMO = DATASETS["demo"]

FREE = (
    "token_f1",
    "mem0_f1",
    "bleu1",
    "keyword_overlap",
    "keyword_pass",
    "exact_match",
    "contains",
)


@pytest.mark.slow
def test_official_recall_and_metrics_by_category_are_reported(tmp_path: Path) -> None:
    words = (
        "dataset=demo",
        "system=bm25",
        "top_k=3",
        "tracking=none",
        "dataset.category_names=mem0_paper",
    )
    completed(tmp_path, *words, "dataset.evidence_recall=official")
    (run,) = runs(tmp_path)
    path = ROOT / "data" / DEMO.file
    cited = {
        f"{sample['sample_id']}/q{number}": qa["evidence"]
        for sample in parse_json(path.read_bytes(), path)
        for number, qa in enumerate(sample["qa"])
    }
    rows = records(tmp_path)
    wanted = fmean(
        official_evidence_recall(
            [chunk["turn_ids"] for chunk in row["retrieved"]], cited[row["question_id"]]
        )
        for row in rows
    )
    assert run["metrics"]["official/evidence_recall"] == pytest.approx(wanted) and 0 < wanted < 1

    for category, name in {
        1: "single_hop",
        2: "temporal",
        3: "multi_hop",
        4: "open_domain",
    }.items():
        own = [row["metrics"] for row in rows if row["category"] == category]
        for metric in FREE:
            assert run["metrics"][f"{metric}/{name}"] == pytest.approx(
                fmean(values[metric] for values in own)
            )

    completed(tmp_path, *words)
    (other,) = [one for one in runs(tmp_path) if one["run_key"] != run["run_key"]]
    assert "official/evidence_recall" not in other["metrics"]
    assert other["tags"]["protocol"] == run["tags"]["protocol"], (
        "a further metric does not change the protocol"
    )


def test_removed_category_names_are_refused(tmp_path: Path) -> None:
    done = memeval(tmp_path, "dataset=demo", "dataset.category_names=zep", "tracking=none")
    assert done.status == 2
    assert (
        "dataset.category_names=zep was removed" in done.message
        and "dataset.category_names=mirix" in done.err
    )
