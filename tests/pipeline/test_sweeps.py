"""Every sweep that ships runs on the demo set."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, records, summary
from doubles.endpoint import ScriptedEndpoint
from omegaconf import OmegaConf

from memeval.config.grids import cells
from memeval.config.options import built_in_classes, options
from memeval.datasets.locate import adapter_class
from memeval.errors import UserError
from memeval.judges.registry import applicable_judges, usual_judge
from memeval.runs.compose.config import compose_config
from memeval.systems.registry import built_in

SWEEPS = Path(__file__).parents[2] / "sweeps"
OWN_DATA = {
    "haystack_scale": ("dataset.tokens=300,600", "dataset.n_cases=2"),
    "lifecycle": ("dataset.tokens=60", "dataset.later_tokens=60"),
}
"""Sweeps with their own data sets, and overrides that keep them small; all others run on the demo
set.
"""
SMOKE = "smoke"
SMOKE_SHARES = 12
"""Number of shares that the sweep is split into; `make test` runs one."""
SERVED = {"letta", "http", "mcp", "command"}
"""Systems that need a server."""
TWIN = "smoke_endpoint"
"""The sweep that needs an endpoint."""
TWIN_SHARES = 70
"""Number of shares that the sweep is split into; `make test` runs one."""
SWEEPS_OF_DATA = sorted({path.stem for path in SWEEPS.glob("*.yaml")} - {SMOKE, TWIN})
EXPLAINED = (
    "A biased cut: dataset.limit_questions=",
    "correct is not supported by this system",
    "forget is not supported by this system",
    "compression_turn=middle is past the end",
    "evidence: ",
    "haystacks too small for all of their questions",
    "mem0",
    "prompt mismatch: ",
    "root causes: ",
    "rows: ",
    "time: ",
)
"""Prefixes of the notes that are expected: about the data, how it was cut, the installed parts of
mem0, or a system that answers all questions in its own style.
"""


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS_OF_DATA)
def test_a_sweep_runs_and_ends_with_one_table(memeval: Command, tmp_path: Path, sweep: str) -> None:
    words = OWN_DATA.get(sweep, ("dataset=demo",))
    check_table(memeval, tmp_path, sweep, *words, "dataset.limit_questions=4")


@pytest.mark.sampled(kept=6)
@pytest.mark.parametrize("sweep", SWEEPS_OF_DATA)
def test_one_run_of_a_sweep_composes_and_the_whole_is_refused(sweep: str) -> None:
    assert compose_config([f"+sweep={sweep}", *first_run(sweep)]).sweep_name == sweep
    with pytest.raises(UserError, match="the sweep makes several runs"):
        compose_config([f"+sweep={sweep}"])


def test_a_setting_of_the_cells_chooses_one_run() -> None:
    config = compose_config(["+sweep=cogcanvas_ablation", "system=rag"])
    assert (config.system["name"], config.top_k) == ("rag", 15)


@pytest.mark.parametrize("word", ["+tags.x=a", "tags.x=a", "++tags.x=a"])
def test_a_chosen_setting_of_a_sweep_may_have_any_prefix(tmp_path: Path, word: str) -> None:
    varied = "hydra: {sweeper: {params: {+tags.x: 'a,b'}}}"
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "own.yaml").write_text(f"# @package _global_\n{varied}\n")
    words = ["--config-dir", str(tmp_path), "+sweep=own"]
    assert compose_config([*words, word]).tags == {"x": "a"}
    with pytest.raises(UserError, match=r"one for each tags\.x"):
        compose_config(words)


def first_run(sweep: str) -> list[str]:
    """The settings of the sweep's first run."""
    options: Any = OmegaConf.load(SWEEPS / f"{sweep}.yaml")
    if "grids" in options:
        return [f"+cell={sweep}-1"]

    params = options.hydra.sweeper.params
    return [f"{name}={str(choices).partition(',')[0]}" for name, choices in params.items()]


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("share", range(SMOKE_SHARES))
def test_every_cell_of_smoke_runs_offline(memeval: Command, tmp_path: Path, share: int) -> None:
    numbers = range(1 + share, 1 + len(cells_of(SMOKE)), SMOKE_SHARES)
    chosen = ",".join(f"{SMOKE}-{number}" for number in numbers)
    check_table(memeval, tmp_path, SMOKE, f"+cell={chosen}")
    assert len(list((tmp_path / "outputs" / "runs").iterdir())) == len(numbers)


def check_table(memeval: Command, tmp_path: Path, sweep: str, *words: str) -> None:
    """Runs a sweep, or some of its cells, on one conversation, and checks the table at the end."""
    done = memeval("-m", f"+sweep={sweep}", *words, "dataset.limit_cases=1", "tracking=none")
    (table,) = (tmp_path / "outputs" / "sweeps").glob("*/comparison.csv")
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    runs = list((tmp_path / "outputs" / "runs").iterdir())
    assert len(rows) == len(runs) > 1
    # One conversation has no interval, and its accuracy none to show.
    assert "acc" in done.stdout and "±" not in done.stdout
    assert summary(tmp_path)["sweep"] == sweep


def cells_of(sweep: str) -> list[dict[str, str]]:
    """The overrides of each cell of a sweep, by name."""
    grids = OmegaConf.load(SWEEPS / f"{sweep}.yaml").grids
    return [dict(word.split("=", 1) for word in cell) for cell in cells(tuple(grids))]


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("share", range(TWIN_SHARES))
def test_every_cell_of_smoke_endpoint_runs_against_an_endpoint(
    memeval: Command, tmp_path: Path, share: int
) -> None:
    numbers = range(1 + share, 1 + len(cells_of(TWIN)), TWIN_SHARES)
    chosen = ",".join(f"{TWIN}-{number}" for number in numbers)

    with ScriptedEndpoint() as endpoint:
        memeval(
            "-m",
            f"+sweep={TWIN}",
            f"+cell={chosen}",
            "tracking=none",
            # The command fails if nothing was found, e.g. oracle on data that names no evidence.
            check=False,
            OPENAI_BASE_URL=endpoint.base_url,
        )

    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "outputs" / "runs").glob("*/run.json")
    ]
    assert len(runs) == len(numbers)
    assert endpoint.count("/chat/completions") > 0
    assert endpoint.count("/embeddings") > 0
    for run in runs:
        assert run["metrics"]["coverage"] == 1.0, run["name"]
        assert not run["metrics"].get("ingest_lost"), run["name"]
        unexplained = [
            note
            for note in (own["text"] for own in run["notes"])
            if not note.startswith(EXPLAINED)
            and "holds half of the questions" not in note
            and not note.startswith("No question got any context from the memory")
        ]
        assert not unexplained, (run["name"], unexplained)


def test_smoke_endpoint_covers_every_system_data_set_and_judge() -> None:
    chosen = cells_of(TWIN)
    datasets = {cell["dataset"] for cell in chosen}
    assert datasets == {cell["dataset"] for cell in cells_of("smoke")}

    for dataset in datasets:
        own = [cell for cell in chosen if cell["dataset"] == dataset]
        assert {cell["system"] for cell in own} == set(built_in()) - SERVED
        judges = {cell["judge"] for cell in own if "judge" in cell}
        adapter = adapter_class(dataset)
        assert judges == set(applicable_judges(adapter.answers[0], adapter.benchmark))

    assert {(cell["llm"], cell["embedder"]) for cell in chosen} == {("openai", "openai")}


def usual_offline(dataset: str) -> str:
    adapter = adapter_class(dataset)
    return usual_judge(adapter.answers[0], adapter.benchmark, has_model=False)


def test_smoke_covers_every_system_adapter_judge_and_granularity() -> None:
    chosen = cells_of("smoke")
    assert {cell["system"] for cell in chosen} == set(built_in()) - SERVED
    classes = built_in_classes("dataset")
    used = {classes[cell["dataset"]] for cell in chosen}
    # A custom data set has no file to run on: tests/cli/test_own_json_cli.py has one. ForgetEval's
    # cases do not ship because their text belongs to their authors.
    assert used | {classes["json"], classes["forgeteval"]} == set(classes.values())
    asked = {cell.get("judge") or usual_offline(cell["dataset"]) for cell in chosen}
    # `auto` is resolved to one of the others; `recorded` reads verdicts of another run's file.
    assert asked | {"auto", "recorded"} == set(options("judge"))
    cut = {cell.get("granularity", "turn") for cell in chosen}
    # No data set that ships has observations; the published LoCoMo file does.
    assert cut | {"observation"} == set(options("granularity"))


@pytest.mark.slow
@pytest.mark.real_data
def test_bm25_on_the_command_line_reproduces_the_reference_ranks(
    memeval: Command, tmp_path: Path, data_dir: Path
) -> None:
    memeval(
        "dataset=locomo",
        "dataset.limit_cases=1",
        "dataset.categories=[1,2,3,4,5]",
        "dataset.images=none",
        "top_k=20",
        "tracking=none",
        MEMEVAL_DATA_DIR=str(data_dir),
    )
    reference = (
        (data_dir.parent / "reference" / "locomo_bm25_conv26.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    expected = {
        row["question_id"]: row
        for row in map(json.loads, reference)
        if row["granularity"] == "turn"
    }
    rows = records(tmp_path)
    assert len(rows) == len(expected) == 199
    for row in rows:
        wanted = expected[row["question_id"]]
        shown = [turn for chunk in row["retrieved"] for turn in chunk["turn_ids"]]
        assert shown == wanted["top20"]
        if row["evidence"]:
            found = [rank is not None and rank <= 5 for rank in row["evidence_ranks"]]
            assert sum(found) / len(found) == pytest.approx(wanted["recall@5"], abs=1e-6)
