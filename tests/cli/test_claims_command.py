"""`python -m memeval claims`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import completed, memeval

from memeval.comparison.tables import WIDTH
from memeval.testing.endpoint import ScriptedEndpoint


def test_without_a_run_the_claims_are_listed(tmp_path: Path) -> None:
    done = completed(tmp_path, "claims")
    assert "arXiv 2601.00821" in done.out and "accuracy 32.4" in done.out
    assert max(map(len, done.out.split("\n"))) <= WIDTH
    assert json.loads(completed(tmp_path, "claims", "--json").out)[0]["name"]


def test_mistakes(tmp_path: Path) -> None:
    done = memeval(tmp_path, "claims", "--dataset", "locomoo")
    assert done.status == 2 and "Did you mean: locomo?" in done.told
    done = memeval(tmp_path, "claims", "nothing")
    assert done.status == 2 and "unknown run" in done.told


def test_a_run_on_models_discloses_judge_and_reader(tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        completed(
            tmp_path,
            *("system=bm25", "dataset=demo", "llm=openai", "llm.model=small", "judge=mem0"),
            *("dataset.limit_questions=1", "tracking=none", f"llm.base_url={endpoint.base_url}"),
            OPENAI_API_KEY="sk-test-0123456789abcdef",
        )

    done = completed(tmp_path, "claims", "system=bm25")
    text = " ".join(done.out.split())
    assert "judge: mem0, small, prompt sha256" in text
    assert "reader: small, temperature 0.0, prompt auto sha256" in text
    assert "claims: none are known about demo" in text and "sk-test" not in text


@pytest.mark.real_data
@pytest.mark.slow
def test_our_bm25_repeats_the_reference(tmp_path: Path, data_dir: Path) -> None:
    words = ("dataset=locomo", "dataset.categories=null", "dataset.images=none", "tracking=none")
    completed(tmp_path, "system=bm25", *words, MEMEVAL_DATA_DIR=str(data_dir))
    (content,) = json.loads(completed(tmp_path, "claims", "system=bm25", "--json").out)
    rows = [row for row in content["claims"] if row["claim"] == "bm25_turns"]
    assert {row["verdict"] for row in rows} == {"comparable"}
    for row in rows:
        assert row["own"] == pytest.approx(row["figure"]["value"], abs=1e-3)
