"""The group `reranker` on the command line: selection, identity, error messages, and runs against a
double of a reranking service.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.rerank import RerankDouble

from memeval.__main__ import main
from memeval.config.resolve import read_config
from memeval.pipeline.measure.provenance import config_yaml, params
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.opening import open_cell
from memeval.runs.compose.config import compose_config

SMALL = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none", "plots=false")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    for variable in ("MEMEVAL_INVOCATION", "RERANK_API_KEY"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)

    return tmp_path


@pytest.fixture
def server() -> Iterator[RerankDouble]:
    with RerankDouble() as double:
        yield double


def opened(*words: str) -> Cell:
    return open_cell(compose_config(list(words)), "")


def key_of(*words: str) -> str:
    return opened(*words).run_key


def at(server: RerankDouble) -> tuple[str, ...]:
    return ("reranker=endpoint", f"reranker.base_url={server.base_url}", "reranker.model=m")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("system=rag",), "none"),
        (("system=bm25",), "none"),
        (("system=bm25", "reranker=none"), "none"),
        (("system=rag", "reranker=lexical"), "lexical"),
        (("system=rag", "system.reranker=lexical"), "lexical"),
        (("system=cogcanvas", "llm=mock"), "lexical"),
        (("system=cogcanvas_norerank", "llm=mock"), "none"),
        (("system=cogcanvas_norerank", "llm=mock", "reranker=lexical"), "lexical"),
    ],
)
def test_chosen_reranker_overrides_the_one_of_the_system(words: tuple[str, ...], name: str) -> None:
    cell = opened(*words)
    assert cell.config.reranker.name == name
    assert params(cell)["reranker"] == name
    assert "system.reranker" not in params(cell)


@pytest.mark.slow
def test_ablation_equals_choosing_no_reranker() -> None:
    chosen = opened("system=cogcanvas", "llm=mock", "reranker=none")
    named = opened("system=cogcanvas_norerank", "llm=mock")
    assert chosen.keys(0) == named.keys(0)
    assert key_of("system=rag") == key_of("system=rag", "reranker=none")


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("system=bm25", "reranker=lexical"),
            "reranker=lexical has no effect: system=bm25 does not rerank",
        ),
        (("system=rag", "reranker=lexicol"), "unknown reranker 'lexicol'. Did you mean: lexical?"),
        (("system=rag", "reranker=endpoint"), "reranker=endpoint needs reranker.base_url"),
        (
            ("system=rag", "reranker=endpoint", "reranker.base_url=https://x.test"),
            "reranker=endpoint needs reranker.model",
        ),
        (
            ("reranker=endpoint", "reranker.base_url=nowhere"),
            "reranker.base_url must be a URL that begins with http:// or https://",
        ),
        (("reranker=endpoint", "reranker.patience_s=-1"), "reranker.patience_s must be at least 0"),
        (("reranker=endpoint", "reranker.timeout_s=0"), "reranker.timeout_s must be above 0"),
        (("reranker=lexical", "reranker.model=m"), "'reranker.model' is a field of reranker=endp"),
        (("system=rag", "reranker.class=nowhere:Thing"), "reranker 'Thing': no module named 'now"),
        (("system=rag", "reranker=[lexical]"), "reranker=[lexical] is a list"),
    ],
)
def test_mistake_is_reported_in_one_line(
    words: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *SMALL]) == 2
    error = capfd.readouterr().err
    assert f"memeval: {message}" in error
    assert "Traceback" not in error


@pytest.mark.slow
def test_different_forms_of_a_base_url_have_one_key() -> None:
    words = ("system=rag", "reranker=endpoint", "reranker.model=m")
    keys = {
        key_of(*words, f"reranker.base_url=http://localhost:1/v1{end}")
        for end in ("", "/", "/rerank", "/rerank/")
    }
    assert len(keys) == 1


def test_config_of_a_run_folder_is_read_without_a_warning(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = opened("system=rag", "reranker=lexical")
    text = config_yaml(cell)
    path = home / "config.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_config(path).reranker == cell.config.reranker
    assert capsys.readouterr().err == ""


def test_grid_over_rerankers_has_one_run_each(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "system=rag", "reranker=none,lexical", *SMALL]) == 0
    assert len(list((home / "outputs" / "runs").iterdir())) == 2
    assert "lexical" in capfd.readouterr().out
