"""The register of published figures: validated strictly, each with a comparable run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from memeval.comparison.claims.reading import find_figure, load_claims, read_claims
from memeval.comparison.claims.reproducing import reproduce
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.runs.compose.config import compose_config

KNOWN = {claim.name: claim for claim in load_claims()}
WHOLE: dict[str, Any] = {
    "title": "Mine",
    "source": "nowhere",
    "dataset": "locomo",
    "protocol": {"categories": [1, 2], "questions": 40},
    "figures": [{"system": "rag", "metric": "accuracy", "value": 55}],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"figures": []}, "length >= 1 - at `$.figures`"),
        ({"figures": [{"system": "rag", "metric": "accuracy", "value": 155}]}, "<= 100.0"),
        ({"figures": [{"system": "rag", "metric": "accuracy"}]}, "missing required field `value`"),
        ({"protocol": {"questons": 40}}, "unknown field `questons` - at `$.protocol`"),
        ({"protocol": {"averaged": "points"}}, "Invalid enum value 'points'"),
        ({"protocol": {"data_sha256": "79fa"}}, "matching regex"),
        ({"protocol": {"judge_model": "gpt-4o"}}, "names a judge model or protocol"),
        ({"disputes": [{"text": "Not so"}]}, "missing required field `source`"),
        ({"figures": WHOLE["figures"] * 2}, "two figures have the same system and metric"),
        (
            {"figures": [{**WHOLE["figures"][0], "by_category": {5: 1.0}}]},
            "categories that the protocol does not ask: {'5'}",
        ),
    ],
)
def test_incomplete_or_invalid_claim_is_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"mine": WHOLE}))
    assert [claim.name for claim in read_claims(path)] == ["mine"]

    path.write_text(yaml.safe_dump({"mine": {**WHOLE, **changes}}))
    with pytest.raises(ValueError, match=r"mine.yaml, claim mine: ") as error:
        read_claims(path)

    assert message in str(error.value)


def test_two_claims_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump({"mine": WHOLE}))
    with pytest.raises(ValueError, match="claim mine is already defined"):
        load_claims(tmp_path)


def test_known_disputed_claims_list_their_disputes() -> None:
    for name in (
        "mem0_platform_2026",
        "mem0_paper",
        "zep_2025_first",
        "mempalace_locomo",
        "mempalace_longmemeval",
        "evermemos_locomo",
        "evermemos_personamem",
        "memmachine_locomo",
        "lightmem_locomo",
        "mentedb_longmemeval",
        "fastmemory_beam",
        "benchd_mem0_locomo",
        "benchd_letta_longmemeval",
        "truememory_beam",
        "perseus_vault_locomo",
        "precisionmembench",
        "agentmemory_longmemeval",
        "emem_locomo",
        "mragent_locomo",
        "hindsight_locomo",
        "byterover_locomo",
    ):
        assert KNOWN[name].disputes, name


def test_a_figure_is_named_by_claim_and_system() -> None:
    claims = list(KNOWN.values())
    assert find_figure("zep_2025_first", claims)[1].value == 84.61
    assert find_figure("cogcanvas_v2/RAG", claims)[1].value == 24.6
    assert find_figure("bm25_turns/ranking_recall_at_5", claims)[1].value == 45.1569
    for word, message in (
        ("zep", "unknown claim 'zep'"),
        ("cogcanvas_v2", "has 4 figures: CogCanvas, RAG"),
        ("cogcanvas_v2/Rag", "unknown figure 'Rag'. Available: CogCanvas"),
    ):
        with pytest.raises(UserError, match=message):
            find_figure(word, claims)


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize("name", KNOWN)
def test_comparable_run_of_each_claim_can_be_composed(name: str) -> None:
    claim = KNOWN[name]
    if claim.dataset not in DATASETS:
        with pytest.raises(UserError, match=f"memeval has no data set {claim.dataset}"):
            reproduce(claim, claim.figures[0])
        return

    made = reproduce(claim, claim.figures[0])
    config = compose_config(made.cost_overrides)
    assert config.dataset["name"] == claim.dataset
    assert shlex.split(made.command)[:3] == ["python", "-m", "memeval"]
    # A source that states no sha256 leaves the data file unmatched.
    assert made.unmatched or claim.protocol.data_sha256


def test_settings_of_a_claim_are_in_the_command() -> None:
    claim = KNOWN["perseus_vault_locomo"]
    made = reproduce(claim, claim.figures[0])
    assert {"dataset.categories=[1,2,3,4]", "top_k=200", "judge=mem0", "system=YOURS"} <= set(
        made.words
    )
    assert "llm.judge.model=gpt-5" in made.words and made.system is None
    assert "the reader's model, which is not disclosed: gpt-4o-mini here" in made.unmatched

    claim = KNOWN["bm25_turns"]
    made = reproduce(claim, claim.figures[0])
    assert made.unmatched == () and "stages=retrieve" in made.words
