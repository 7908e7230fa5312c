"""The Python API: runs from Python and inside a running event loop, and finished runs as tables."""

from __future__ import annotations

import asyncio
import importlib
import linecache
import subprocess
import sys
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import memeval
import memeval.api
from memeval.api.overrides import as_overrides
from memeval.cli.lint import memories_of
from memeval.errors import UserError
from memeval.pipeline.open.code import class_identity
from memeval.report.flags import session_flags
from memeval.runs.compose.config import compose_config

SMALL = ("dataset.limit_cases=1", "dataset.limit_questions=4", "tracking=none")


@pytest.fixture(scope="module")
def run(home: Path) -> memeval.Run:
    return memeval.run(*SMALL, system="bm25", top_k=3, progress=False)


def test_every_public_name_can_be_imported() -> None:
    assert set(memeval.__all__) <= set(dir(memeval))
    assert dir(memeval.api) == dir(memeval) and memeval.api.__all__ == memeval.__all__
    assert all(getattr(memeval, name) is not None for name in memeval.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ran'"):
        memeval.ran  # noqa: B018 - the access is what is tested

    declared = Path(memeval.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    assert {name for name in memeval.__all__ if f"as {name}\n" not in declared} == {"__version__"}


def test_a_run_has_metrics_and_settings(run: memeval.Run) -> None:
    assert run.valid
    assert run.metrics["coverage"] == 1.0
    assert run.params["top_k"] == 3
    assert run.name.startswith("bm25 turn k=3")


def test_records_are_a_table_with_a_row_per_question(run: memeval.Run) -> None:
    records = run.records()
    assert len(records) == 4
    right = (records["verdict.label"] == "correct").mean()
    assert right == pytest.approx(run.metrics["accuracy"])
    assert {"question_id", "category_name", "hypothesis", "metrics.token_f1"} <= set(
        records.columns
    )


def test_retrieved_is_a_table_with_a_row_per_chunk(run: memeval.Run) -> None:
    retrieved = run.retrieved()
    assert list(retrieved["rank"].unique()) == [1, 2, 3]
    assert len(retrieved) == 12
    assert retrieved["evidence"].any()


def test_a_reused_run_has_the_tags_of_its_latest_request(home: Path) -> None:
    memeval.run(*SMALL, system="no_memory", progress=False)
    again = memeval.run(*SMALL, "tags.paper=draft", system="no_memory", progress=False)
    assert again.summary.tags["tags.paper"] == "draft"


@pytest.mark.parametrize(("system", "expected"), [("bm25", ["R@k of sessions"]), ("rag", [])])
def test_recall_counts_sessions_only_if_the_system_retrieves_sessions(
    home: Path, system: str, expected: list[str]
) -> None:
    """`rag` cuts its own chunks, which outnumber the sessions."""
    cells = (*SMALL, "stages=retrieve", "granularity=session")
    run = memeval.run(*cells, system=system, top_k=5, progress=False)
    assert session_flags(run.summary) == expected


def test_override_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(UserError, match=r"an override is a string .* not \['system=bm25'\]"):
        memeval.run(["system=bm25"])  # type: ignore[arg-type]


def test_options_of_the_command_line_work_or_are_refused(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    memeval.run(*SMALL, system="no_memory", progress=False)
    memeval.run(*SMALL, "--fresh=judge", system="no_memory")
    assert "answer 4/4 (4 reused), judge 4/4\n" in capfd.readouterr().err
    with pytest.raises(UserError, match=r"unknown option '--frehs'\. Did you mean: --fresh"):
        memeval.run(*SMALL, "--frehs", system="bm25")


def test_dump_has_the_memory_of_each_session_that_is_asked_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    finished = memeval.run(
        "tracking=none",
        "plots=false",
        dataset={"name": "demo_lifecycle", "limit_cases": 1},
        system="cogcanvas",
        progress=False,
    )
    dumped = finished.dump()
    assert list(dict.fromkeys(dumped["asked_after"])) == ["s4", "s5", "s6", "end"]
    assert set(dumped["case_id"]) == {"lifecycle-1"}
    # lint searches the same texts for golds.
    assert memories_of(finished) == {"lifecycle-1": list(dumped["text"])}


OWN_SYSTEM = """
import memeval
from memeval.records import Retrieved

class Notes(memeval.RecallSystem):
    def reset(self): self.chunks = []
    def ingest(self, chunk): self.chunks.append(chunk)
    def recall(self, query, depth):
        return [Retrieved(chunk.text, chunk.turn_ids) for chunk in self.chunks[FIRST:][:depth]]
"""


def test_edited_class_is_refused_until_it_is_imported_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, the answers of the old class would be stored under the key of the new one."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_notes.py"

    def recall(first: str) -> float | None:
        file.write_text(OWN_SYSTEM.replace("FIRST", first), encoding="utf-8")
        made = memeval.run(*SMALL, system={"class": "edited_notes:Notes"}, progress=False)
        return made.metrics["recall_at_10"]

    before = recall("0")
    with pytest.raises(UserError, match="edited_notes:Notes was imported before its file was edit"):
        recall("10_000")

    importlib.reload(sys.modules["edited_notes"])
    assert before and recall("10_000") == 0.0


def defined_in(cell: str, filename: str) -> type:
    """The class of a cell, defined as IPython does."""
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, filename, "exec"), names)
    notes: type = names["Notes"]
    return notes


def test_class_in_a_notebook_is_identified_by_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redefined class has another key; one whose source is unknown is refused."""
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    seen = []
    for first in ("0", "10_000"):
        cell, filename = OWN_SYSTEM.replace("FIRST", first), f"ipykernel_1/{first}.py"
        lines = cell.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, filename, (len(cell), None, lines, filename))
        seen.append(class_identity(defined_in(cell, filename)))
        assert seen[-1] == f"__main__:Notes@{sha256(cell.encode()).hexdigest()}"

    assert seen[0] != seen[1]
    with pytest.raises(UserError, match="__main__:Notes has no source"):
        class_identity(defined_in(OWN_SYSTEM.replace("FIRST", "0"), "<stdin>"))


def test_finished_run_is_reused(run: memeval.Run) -> None:
    again = memeval.run(*SMALL, "system=bm25", "top_k=3", progress=False)
    assert (again.key, again.metrics) == (run.key, run.metrics)


def test_progress_is_printed_by_default(
    run: memeval.Run, capfd: pytest.CaptureFixture[str]
) -> None:
    memeval.run(*SMALL, system="bm25", top_k=3)
    assert "already done: reused 4 results" in capfd.readouterr().err


def test_run_works_inside_a_running_event_loop(run: memeval.Run) -> None:
    async def cell() -> memeval.Run:
        return memeval.run(*SMALL, system="bm25", top_k=3, progress=False)

    assert asyncio.run(cell()).key == run.key


@pytest.mark.slow
def test_several_runs_may_be_awaited_at_once(home: Path) -> None:
    async def both() -> list[memeval.Run]:
        runs = (memeval.arun(*SMALL, system="bm25", top_k=k, progress=False) for k in (1, 2))
        return await asyncio.gather(*runs)

    assert [run.params["top_k"] for run in asyncio.run(both())] == [1, 2]


def test_unknown_system_raises_user_error(home: Path) -> None:
    with pytest.raises(UserError, match="Did you mean: bm25"):
        memeval.run(system="bm52", progress=False)


def test_runs_are_found_by_key_and_folder(run: memeval.Run) -> None:
    assert memeval.load_run(run.key).metrics == run.metrics
    assert memeval.load_run(run.key[:10]).key == run.key
    assert memeval.load_run(run.folder).key == run.key
    assert {run, memeval.load_run(run.key)} == {run}  # a set contains the same run once
    with pytest.raises(UserError, match="unknown run 'nothing'"):
        memeval.load_run("nothing")


def test_load_runs_filters_by_dataset_sweep_and_time(run: memeval.Run) -> None:
    keys = [one.key for one in memeval.load_runs()]
    assert run.key in keys
    assert [one.key for one in memeval.load_runs(dataset="demo", since="1h")] == keys
    assert memeval.load_runs(dataset="locomo") == []
    assert memeval.load_runs(sweep="baselines") == []
    assert memeval.load_runs(since=datetime.now() + timedelta(days=1)) == []
    assert [one.key for one in memeval.load_runs(since=timedelta(days=1))] == keys
    with pytest.raises(UserError, match="not a span of time"):
        memeval.load_runs(since="yesterday")


def test_damaged_run_is_skipped_with_a_warning(home: Path) -> None:
    damaged = home / "outputs" / "runs" / "damaged"
    damaged.mkdir(parents=True)
    (damaged / "run.json").write_text("{")
    with pytest.warns(RuntimeWarning, match=r"damaged/run\.json is damaged: .*; the run is left"):
        assert "damaged" not in [run.folder.name for run in memeval.load_runs()]

    with pytest.raises(UserError, match=r"run\.json can't be read"):
        memeval.load_run(damaged)


def test_missing_records_raise_user_error(run: memeval.Run, tmp_path: Path) -> None:
    gone = memeval.Run(tmp_path, run.summary)
    with pytest.raises(
        UserError, match=r"records\.jsonl can't be read: No such file or directory$"
    ):
        gone.records()
    with pytest.raises(UserError, match=r"run\.json can't be read: No such file or directory$"):
        memeval.load_run(tmp_path)


@pytest.mark.parametrize(
    ("settings", "overrides"),
    [
        ({"top_k": 5}, ["top_k=5"]),
        ({"system": "rag", "seed": None}, ["system=rag", "seed=null"]),
        (
            {"llm": {"name": "openai", "model": "gpt-4o-mini"}},
            ["llm=openai", "llm.model=gpt-4o-mini"],
        ),
        ({"dataset": {"categories": [1, 2]}}, ["dataset.categories=[1,2]"]),
        ({"dataset.limit_cases": 1}, ["dataset.limit_cases=1"]),
        ({"llm.send_seed": False}, ["llm.send_seed=false"]),
    ],
)
def test_keyword_arguments_are_overrides(settings: dict[str, object], overrides: list[str]) -> None:
    assert as_overrides(settings) == overrides


def test_nested_dictionaries_reach_the_config_unchanged() -> None:
    body = {
        "chat_template_kwargs": {"enable_thinking": False, "a b": [1, {"x": None}]},
        "x:y,{z}=(\\)": "it's, {x}",
    }
    headers = {"X-Api-Key": "MY_KEY"}
    llm = {"name": "openai", "model": "m", "extra_body": body, "headers": headers}
    config = compose_config(as_overrides({"llm": llm}))
    assert (config.llm.extra_body, config.llm.headers) == (body, headers)


@pytest.mark.parametrize(
    "text", ["a b", "it's", "a,b", "[x]", r"back\slash", "ends\\", r"\'", "{", ""]
)
def test_any_string_reaches_the_config_unchanged(text: str) -> None:
    from hydra.core.override_parser.overrides_parser import OverridesParser

    [override] = as_overrides({"dataset": {"path": text}})
    assert OverridesParser.create().parse_override(override).value() == text


def test_package_is_typed_and_imports_no_heavy_library() -> None:
    assert (Path(memeval.__file__).parent / "py.typed").is_file()
    code = "import memeval, sys; assert not {'pandas', 'hydra', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
