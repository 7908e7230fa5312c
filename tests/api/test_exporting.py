"""Runs exported to the formats of other tools, and read back by these tools if they are installed
(extras).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from forking import Done, run_command_line
from made_runs import made_run

import memeval
from memeval.errors import UserError
from memeval.packages.export.inspect_log import inspect_log, write_inspect
from memeval.packages.export.rows import clean_row, export_rows
from memeval.packages.export.terms import terms_of
from memeval.records import Status

SMALL = ("dataset.limit_questions=3", "tracking=none")
HOSTILE = "</script>\n---\nlicense: mit\n![x](https://e.vil/x.png) \x1b[31m"
INSPECT = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log
(found,) = list_eval_logs(sys.argv[1])
log = read_eval_log(found)
print(json.dumps({
    "task": found.task, "status": log.status, "epochs": log.eval.config.epochs,
    "metrics": {name: own.value for name, own in log.results.scores[0].metrics.items()},
    "samples": [
        [sample.id, sample.epoch, sample.input, sample.output.completion,
         {name: own.value for name, own in sample.scores.items()},
         sample.error.message if sample.error else None]
        for sample in log.samples
    ],
}))
"""
HF = """
import json, sys
from datasets import load_dataset
print(json.dumps(load_dataset(sys.argv[1])["test"].to_list()))
"""
# The file's framing: a header, then 32 KiB blocks with whole or partial records.
WANDB = """
import json, struct, sys
from wandb.proto.wandb_internal_pb2 import Record
with open(sys.argv[1], "rb") as file:
    data = file.read()
at, part, kinds, config, summary = 7, b"", [], {}, {}
while at + 7 <= len(data):
    left = 32768 - at % 32768
    if left < 7:
        at += left
        continue
    _, size, kind = struct.unpack("<IHB", data[at : at + 7])
    part += data[at + 7 : at + 7 + size]
    at += 7 + size
    if kind in (1, 4):
        record = Record()
        record.ParseFromString(part)
        kinds.append(record.WhichOneof("record_type"))
        if kinds[-1] == "run":
            config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        for item in record.summary.update:
            summary[item.key or ".".join(item.nested_key)] = json.loads(item.value_json)
        part = b""
print(json.dumps({"kinds": kinds, "config": config, "summary": summary}))
"""


@pytest.fixture(scope="module")
def run(home: Path) -> memeval.FinishedRun:
    return memeval.run(*SMALL, "num_runs=2", system="bm25", progress=False)


@pytest.fixture
def hostile(tmp_path: Path) -> memeval.Run:
    """A run over a user's own data with hostile texts and one failed judgement."""
    texts = {"question": HOSTILE, "gold": (HOSTILE,), "hypothesis": HOSTILE}
    return made_run(
        tmp_path / "outputs" / "runs",
        "bm25",
        {"a/q0": [1.0], "a/q1": [None]},
        of_records=texts,
        name=HOSTILE,
        dataset="../../etc",
        params={"dataset": "mine"},
    )


def skip_without(tool: str) -> None:
    try:
        version(tool)
    except PackageNotFoundError:
        pytest.skip(f"needs {tool}, an extra")


def read(code: str, *arguments: object, tool: str, home: Path) -> Any:
    """What a tool reads, in its own process; skips if the tool is not installed."""
    skip_without(tool)
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_lone_surrogate_becomes_the_replacement_character() -> None:
    assert clean_row({"text": "a\ud800"}) == {"text": "a\ufffd"}


def only_json(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


@pytest.mark.slow
def test_inspect_reads_the_log(run: memeval.FinishedRun, tmp_path: Path) -> None:
    made = memeval.export(run, "inspect")
    log = read(INSPECT, made.folder, tool="inspect_ai", home=tmp_path)
    assert (log["task"], log["status"], log["epochs"]) == ("demo", "success", 2)
    assert log["metrics"]["accuracy"] == run.metrics["accuracy"]
    records = run.records()
    assert [sample[:2] for sample in log["samples"]] == [
        [name, repeat + 1]
        for name, repeat in zip(records["question_id"], records["repeat"], strict=True)
    ]
    assert [sample[3] for sample in log["samples"]] == list(records["hypothesis"])
    letters = {"correct": "C", "wrong": "I", "abstained": "N"}
    assert [sample[4]["keyword"] for sample in log["samples"]] == [
        letters[label] for label in records["verdict.label"]
    ]


def test_the_score_of_a_log_is_that_of_the_run_even_if_a_refusal_comes_first(
    home: Path, tmp_path: Path
) -> None:
    asked = "dataset.question_ids=[demo-1/q19,demo-2/q0]"
    run = memeval.run(asked, "tracking=none", system="no_memory", progress=False)
    assert [record.category_name for record in run.read_records()] == ["adversarial", "temporal"]
    (path,) = memeval.export(run, "inspect", output=tmp_path / "log").folder.glob("*.json")
    assert json.loads(path.read_text())["results"]["scores"][0]["name"] == "keyword"


def test_a_log_has_the_results_of_tools(hostile: memeval.Run) -> None:
    roles = ("system", "user", "assistant", "tool")
    (row, *_) = export_rows(hostile, with_texts=True)
    row["prompt"] = [{"role": role, "content": role} for role in (*roles, "odd")]
    (sample,) = inspect_log(hostile, [row], terms_of(hostile.summary))["samples"]
    assert [message["content"] for message in sample["messages"]] == [*roles, HOSTILE]


def test_a_log_is_written_in_pieces(hostile: memeval.Run, tmp_path: Path) -> None:
    """The text of a large log takes several times the memory of its rows."""
    rows = list(export_rows(hostile, with_texts=True))
    for row in rows:
        row |= {"prompt": [], "context": "x" * 20_000}

    tracemalloc.start()
    try:
        write_inspect(hostile, rows * 100, terms_of(hostile.summary), tmp_path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    (path,) = tmp_path.glob("*.json")
    assert most < path.stat().st_size / 2


def test_inspect_reads_hostile_texts_and_failures(hostile: memeval.Run, tmp_path: Path) -> None:
    made = memeval.export(hostile, "inspect", output=tmp_path / "log", with_texts=True)
    right, failed = read(INSPECT, made.folder, tool="inspect_ai", home=tmp_path)["samples"]
    assert right[2] == HOSTILE
    assert right[4] == {"keyword": "C"} and right[5] is None
    assert failed[4] == {} and failed[5] == Status.JUDGE_FAILED


def test_datasets_reads_the_folder(run: memeval.FinishedRun, tmp_path: Path) -> None:
    made = memeval.export(run, "hf")
    rows = read(HF, made.folder, tool="datasets", home=tmp_path)
    records = run.records()
    assert [row["hypothesis"] for row in rows] == list(records["hypothesis"])
    assert [row["metrics.token_f1"] for row in rows] == list(records["metrics.token_f1"])


def test_the_folder_has_all_records_and_a_card(run: memeval.FinishedRun) -> None:
    made = memeval.export(run, "hf")
    rows = pq.read_table(made.folder / "data" / "records.parquet").to_pylist()
    records, retrieved = run.records(), run.retrieved()
    assert [row["question"] for row in rows] == list(records["question"])
    passages = [passage["text"] for row in rows for passage in row["retrieved"]]
    assert passages == list(retrieved["text"])
    assert rows[0]["context"] == run.context(rows[0]["question_id"])

    assert made.folder.stat().st_mode & 0o077 == 0
    head, page = card(made.folder)
    assert head["license"] == "cc0-1.0"
    assert head["configs"][0]["data_files"] == [{"split": "test", "path": "data/records.parquet"}]
    assert "python -m memeval " in page and "| accuracy [95%] |" in page


def card(folder: Path) -> tuple[dict[str, Any], str]:
    _, head, page = (folder / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    return yaml.safe_load(head), page


def test_a_card_of_hostile_names_has_one_licence_and_no_link(
    hostile: memeval.Run, tmp_path: Path
) -> None:
    made = memeval.export(hostile, "hf", output=tmp_path / "folder", with_texts=True)
    head, page = card(made.folder)
    assert (head["license"], head["license_name"]) == ("other", "not known")
    assert "![x](" not in page and "\x1b" not in page
    assert "The person who exported them chose" in page


@pytest.mark.parametrize("tool", ["inspect", "hf"])
def test_texts_of_unknown_licence_are_left_out(
    hostile: memeval.Run, tmp_path: Path, tool: str
) -> None:
    made = memeval.export(hostile, tool, output=tmp_path / "folder")
    assert not made.has_texts
    if tool == "inspect":
        samples = only_json(made.folder)["samples"]
        assert [sample["input"] for sample in samples] == ["", ""]
        assert samples[0]["scores"]["keyword"] == {
            "value": "C",
            "answer": None,
            "explanation": None,
        }
        assert [path.parent for path in made.folder.iterdir()] == [tmp_path / "folder"]
    else:
        rows = pq.read_table(made.folder / "data" / "records.parquet").to_pylist()
        assert [(row["question"], row["gold"], row["label"]) for row in rows] == [
            (None, [], "correct"),
            (None, [], None),
        ]
        assert "are left out" in card(made.folder)[1]


def test_licence_is_known_only_for_pinned_registered_data(run: memeval.FinishedRun) -> None:
    assert terms_of(run.summary).identifier == "cc0-1.0"
    assert terms_of(run.summary).allows_texts
    tags = {"data_pinned": "true"}
    locomo = terms_of(replace(run.summary, tags=tags, params={"dataset": "locomo"}))
    assert not locomo.allows_texts  # CC BY-NC does not allow every purpose
    for tags, params, expected in (
        ({"data_pinned": "true"}, {"dataset": "locomo"}, "cc-by-nc-4.0"),
        ({"data_pinned": "false"}, {"dataset": "locomo"}, None),
        ({"data_pinned": "true"}, {"dataset": "incidents"}, None),
        ({"data_pinned": "true"}, {"dataset": "alert_storm"}, None),
        ({"data_pinned": "true"}, {"dataset": "locomo", "dataset.class": "mine:Mine"}, None),
        ({"data_pinned": "true"}, {"dataset": "mine"}, None),
    ):
        assert terms_of(replace(run.summary, tags=tags, params=params)).identifier == expected


def test_wandb_reads_the_offline_run(run: memeval.FinishedRun, tmp_path: Path) -> None:
    skip_without("wandb")
    made = memeval.export(run, "wandb", output=tmp_path / "run")
    (folder,) = (made.folder / "wandb").glob("offline-run-*")
    (file,) = folder.glob("*.wandb")
    content = read(WANDB, file, tool="wandb", home=tmp_path)
    assert {"header", "run", "summary", "history", "exit"} <= set(content["kinds"])
    assert content["config"]["system"] == "bm25"
    assert content["summary"]["accuracy"] == run.metrics["accuracy"]
    (table,) = folder.rglob("*.table.json")
    answers = json.loads(table.read_text(encoding="utf-8"))
    at = answers["columns"].index("hypothesis")
    assert [row[at] for row in answers["data"]] == list(run.records()["hypothesis"])

    done = subprocess.run(
        [sys.executable, "-m", "wandb", "sync", "--dry-run", str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Would sync 1 run(s)" in done.stdout + done.stderr
    assert not list(folder.rglob("*.log"))


def test_wandb_export_without_its_library_is_refused(
    run: memeval.FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_a_folder = ModuleSpec("wandb", loader=None)
    monkeypatch.setattr("memeval.errors.find_spec", lambda name: of_a_folder)
    with pytest.raises(UserError, match="needs the wandb library, which is not installed") as error:
        memeval.export(run, "wandb")

    assert error.value.hints == ("install it:  pip install 'memeval-bench[wandb]'",)


def test_export_refuses_invalid_targets(run: memeval.FinishedRun, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(UserError, match="not an empty folder"):
        memeval.export(run, "hf", output=tmp_path)
    with pytest.raises(UserError, match="unknown tool 'mlflow'"):
        memeval.export(run, "mlflow")

    assert (tmp_path / "README.md").read_text() == "mine"


def test_export_command_overwrites_and_prints_how_to_open(
    run: memeval.FinishedRun, home: Path
) -> None:
    def export(*words: str) -> Done:
        return run_command_line(["export", run.key[:8], *words], env={"MEMEVAL_HOME": str(home)})

    for _ in range(2):
        done = export("--to", "inspect")
        folder = home / "outputs" / "exports" / run.key / "inspect"
        assert done.stdout.splitlines() == [
            f"folder: {folder}",
            f"open:   inspect view --log-dir {folder}",
        ]
        assert len(list(folder.iterdir())) == 1

    assert export("--to", "inspect", "-o", str(home / "log")).returncode == 0
    assert len(list((home / "log").iterdir())) == 1
    assert export("--to", "excel").returncode == 2
    assert export().returncode == 2
