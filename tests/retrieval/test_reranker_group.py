"""The group `reranker` from the command line: what is chosen, its identity, its refusals, and runs
against a double of a reranking service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memeval.__main__ import main
from memeval.config.resolve import read_config
from memeval.errors import UserError
from memeval.pipeline.cell import Cell
from memeval.pipeline.opening import open_cell
from memeval.pipeline.provenance import config_yaml, params
from memeval.runs.compose.config import compose_config
from memeval.testing.rerank_double import RerankDouble

SMALL = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none", "plots=false")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    for variable in ("MEMEVAL_SESSION", "MEMEVAL_WARNED", "MEMEVAL_OUTPUTS", "RERANK_API_KEY"):
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
def test_a_cell_reranks_by_what_is_chosen_else_by_what_its_system_is_set_to(
    words: tuple[str, ...], name: str
) -> None:
    cell = opened(*words)
    assert cell.config.reranker.name == name
    assert params(cell)["reranker"] == name
    assert "system.reranker" not in params(cell)


def test_an_ablation_is_the_choice_of_no_reranker() -> None:
    chosen = opened("system=cogcanvas", "llm=mock", "reranker=none")
    named = opened("system=cogcanvas_norerank", "llm=mock")
    assert chosen.keys(0) == named.keys(0)
    assert key_of("system=rag") == key_of("system=rag", "reranker=none")


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
            "reranker.base_url must be an address that begins with http:// or https://",
        ),
        (("reranker=endpoint", "reranker.patience_s=-1"), "reranker.patience_s must be at least 0"),
        (("reranker=endpoint", "reranker.timeout_s=0"), "reranker.timeout_s must be above 0"),
        (("reranker=lexical", "reranker.model=m"), "'reranker.model' is a field of reranker=endp"),
        (("system=rag", "reranker.class=nowhere:Thing"), "reranker 'Thing': no module named 'now"),
        (("system=rag", "reranker=[lexical]"), "reranker=[lexical] is a list"),
    ],
)
def test_a_mistake_is_one_line(
    words: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *SMALL]) == 2
    error = capfd.readouterr().err
    assert f"memeval: {message}" in error
    assert "Traceback" not in error


def test_two_forms_of_an_address_are_one_key() -> None:
    words = ("system=rag", "reranker=endpoint", "reranker.model=m")
    keys = {
        key_of(*words, f"reranker.base_url=http://localhost:1/v1{end}")
        for end in ("", "/", "/rerank", "/rerank/")
    }
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("system.rerank=lexical",), ("reranker=lexical",)),
        (
            (
                "system.rerank=endpoint",
                "system.rerank_url=http://localhost:1/v1",
                "system.rerank_model=m",
                "system.rerank_key_env=MY_KEY",
            ),
            (
                "reranker=endpoint",
                "reranker.base_url=http://localhost:1/v1",
                "reranker.model=m",
                "reranker.api_key_env=MY_KEY",
            ),
        ),
    ],
)
def test_the_old_settings_lead_to_the_same_run(
    old: tuple[str, ...], new: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert key_of("system=rag", *old) == key_of("system=rag", *new)
    assert key_of("system=rag", *old) == key_of("system=rag", *new)
    warnings = [line for line in capsys.readouterr().err.splitlines() if "is now called" in line]
    assert len(warnings) == len(old)
    first = "memeval: system.rerank is now called reranker; the old name works until 0.3"
    assert warnings[0] == first


def test_a_system_of_ones_own_may_still_say_rerank(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = home / "conf" / "system"
    folder.mkdir(parents=True)
    text = "name: mine\nclass: memeval.systems.retrieval.rag:Rag\nrerank: lexical\n"
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    cell = opened("system=mine", "--config-dir", str(folder.parent))
    assert cell.config.reranker.name == "lexical"
    assert capsys.readouterr().err.count("is now called") == 1


def test_a_run_folder_is_read_without_a_warning(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = opened("system=rag", "reranker=lexical")
    text = config_yaml(cell)
    path = home / "config.yaml"
    path.write_text(text, encoding="utf-8")
    assert read_config(path).reranker == cell.config.reranker

    old = text.partition("reranker:")[0].replace("system:\n", "system:\n  rerank: lexical\n")
    path.write_text(old, encoding="utf-8")
    assert read_config(path).system["reranker"] == "lexical"
    assert capsys.readouterr().err == ""


def test_a_grid_over_rerankers(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "system=rag", "reranker=none,lexical", *SMALL]) == 0
    assert len(list((home / "outputs" / "runs").iterdir())) == 2
    assert "lexical" in capfd.readouterr().out


SWEEP = """# @package _global_
sweep_name: mine
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "hydra: {sweeper: {params: {system: rag, system.rerank: 'none,lexical', top_k: '2,3'}}}",
        "grids: ['system=rag system.rerank=none,lexical top_k=2,3']",
    ],
)
def test_a_sweep_of_ones_own_may_still_say_rerank(
    body: str, home: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweeps = home / "sweeps"
    sweeps.mkdir()
    (sweeps / "mine.yaml").write_text(SWEEP.format(body=body), encoding="utf-8")
    for module in ("memeval.config.grids", "memeval.config.integers"):
        monkeypatch.setattr(f"{module}.sweeps_dir", lambda: sweeps)

    assert main(["-m", "+sweep=mine", *SMALL]) == 0
    assert capfd.readouterr().err.count("is now called") == 1
    assert len(list((home / "outputs" / "runs").iterdir())) == 4


def records(home: Path) -> list[Any]:
    [path] = (home / "outputs" / "runs").glob("*/records.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_run_at_an_endpoint(home: Path, server: RerankDouble) -> None:
    server.failures = [("POST", "/rerank", 503)]
    assert main(["system=rag", *at(server), *SMALL]) == 0
    assert {record["status"] for record in records(home)} == {"ok"}
    assert len(server.requests) == 3

    assert main(["system=rag", *at(server), *SMALL]) == 0
    assert len(server.requests) == 3


def test_in_a_sweep_the_endpoints_fields_are_the_endpoints_alone(
    home: Path, server: RerankDouble
) -> None:
    _, *fields = at(server)
    assert main(["-m", "system=rag", "reranker=none,endpoint", *fields, *SMALL]) == 0
    assert len(server.requests) == 2
    found = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (home / "outputs" / "runs").glob("*/run.json")
    ]
    by_reranker = {run["params"]["reranker"]: run for run in found}
    assert by_reranker["endpoint"]["params"]["reranker.base_url"] == server.base_url
    assert "reranker.base_url" not in by_reranker["none"]["params"]
    # What repeats the cell names no field that its option does not have.
    assert "reranker.model" not in by_reranker["none"]["command"]


def test_a_refused_key_ends_the_run_at_once(
    home: Path,
    server: RerankDouble,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["system=rag", *at(server), *SMALL]
    server.failures = [("POST", "/rerank", 401)] * 2
    assert main(words) == 2
    told = capfd.readouterr().err
    assert f"memeval: reranker.base_url={server.address}/v1: HTTP 401, the key was refused" in told
    assert "reranker.api_key_env" in told and "Traceback" not in told

    # The next command has a list of its own of what failed, as it has in a process of its own.
    monkeypatch.delenv("MEMEVAL_SESSION")
    server.failures = []
    assert main(words) == 0
    assert {record["status"] for record in records(home)} == {"ok"}


def test_a_fault_of_the_endpoint_is_a_status(
    home: Path, server: RerankDouble, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["system=rag", *at(server), "reranker.patience_s=0", *SMALL]
    server.reply = {"results": [{"index": 0, "relevance_score": 0.5}]}
    assert main(words) == 1
    assert {record["status"] for record in records(home)} == {"answer_failed"}
    assert "Traceback" not in capfd.readouterr().err

    server.failures, server.reply = [], None
    assert main(words) == 0
    assert {record["status"] for record in records(home)} == {"ok"}


def test_outside_of_the_command_line_it_is_refused_as_well() -> None:
    with pytest.raises(UserError, match="does not rerank"):
        opened("system=no_memory", "reranker=lexical")
