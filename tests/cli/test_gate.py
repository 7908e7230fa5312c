"""`python -m memeval gate`, from the baseline run to the exit status."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from command_line import ROOT, completed, memeval

RETRIEVE = ("dataset=demo", "stages=retrieve", "tracking=none", "plots=false")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a retrieval-only baseline of rag."""
    folder = tmp_path_factory.mktemp("home")
    baseline = str(folder / "baseline.json")
    done = completed(folder, "gate", "--baseline", baseline, "--bless", "system=rag", *RETRIEVE)
    assert " values of recall_at_10, from rag turn k=10 retrieve" in done.out
    return folder


@pytest.mark.slow
def test_the_same_system_passes_and_a_worse_one_fails(home: Path) -> None:
    baseline, summary = str(home / "baseline.json"), home / "summary.md"
    same = completed(home, "gate", "--baseline", baseline, "system=rag", *RETRIEVE)
    assert "Unchanged: recall" in same.out

    worse = memeval(
        home,
        "gate",
        "--baseline",
        baseline,
        "--out",
        str(home / "out"),
        "system=bm25",
        *RETRIEVE,
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert worse.status == 1
    assert "Worse than the baseline: −" in worse.out
    assert summary.read_text(encoding="utf-8").startswith("## memeval gate: FAIL")
    content = json.loads((home / "out" / "gate.json").read_text(encoding="utf-8"))
    assert (content["outcome"], content["status"]) == ("worse", 1)
    assert content["difference"]["high"] < 0
    suite = ElementTree.fromstring((home / "out" / "junit.xml").read_text(encoding="utf-8"))
    assert int(suite.get("failures", "0")) >= 2
    # The newest run is the default; a run can also be named by its key.
    assert memeval(home, "gate", "--baseline", baseline).status == 1
    assert memeval(home, "gate", "--baseline", baseline, content["run"]["key"]).status == 1


def test_recall_of_a_run_is_the_same_in_table_gate_and_compare(home: Path) -> None:
    completed(home, "system=bm25", *RETRIEVE)
    runs = {
        summary["params"]["system"]: summary
        for path in home.glob("outputs/runs/*/run.json")
        if (summary := json.loads(path.read_text(encoding="utf-8")))["params"]["top_k"] == 10
    }
    rag, bm25 = (runs[system]["run_key"] for system in ("rag", "bm25"))
    in_table = runs["rag"]["metrics"]["recall_at_10"]

    out = ("--baseline", str(home / "baseline.json"), "--out", str(home / "one"))
    completed(home, "gate", rag, *out)
    in_gate = json.loads((home / "one" / "gate.json").read_text(encoding="utf-8"))["run"]
    compared = completed(home, "compare", rag, bm25, "--metric", "recall@10", "--json")
    in_comparison = json.loads(compared.out)["runs"][0]["result"]["mean"]
    assert in_gate["value"] == pytest.approx(in_table, abs=1e-12)
    assert in_comparison == pytest.approx(in_table, abs=1e-12)


def test_a_run_is_named_as_list_prints_it(tmp_path: Path) -> None:
    completed(tmp_path, "-m", "system=bm25,rag", "top_k=3,5", *RETRIEVE, "dataset.limit_cases=1")
    assert "bm25 k=3 " in completed(tmp_path, "list").out
    baseline = str(tmp_path / "baseline.json")
    done = completed(tmp_path, "gate", "--baseline", baseline, "--bless", "bm25 k=3")
    assert "from bm25 turn k=3 retrieve" in done.out


@pytest.mark.slow
def test_smaller_top_k_does_not_pass(home: Path) -> None:
    baseline = str(home / "baseline.json")
    cut = memeval(home, "gate", "--baseline", baseline, "system=rag", "top_k=3", *RETRIEVE)
    assert cut.status == 3
    assert "no question has a value for recall_at_10 now (top_k=3)" in cut.out

    shown = str(home / "shown.json")
    bless = ("gate", "--baseline", shown, "--metric", "recall_shown")
    completed(home, *bless, "--bless", "system=rag", *RETRIEVE)
    fewer = memeval(home, *bless, "system=rag", "top_k=1", *RETRIEVE)
    assert fewer.status == 1 and "Worse than the baseline" in fewer.out
    # A failing gate names the changed settings, and nothing else.
    settings = fewer.out.partition("setting")[2].partition("- now:")[0]
    _, _, *rows = [line.replace("|", " ").split() for line in settings.splitlines() if line]
    assert rows == [["top_k", "10", "1"]]


def test_run_with_another_sample_is_broken(home: Path) -> None:
    baseline = str(home / "baseline.json")
    other = memeval(home, "gate", "--baseline", baseline, "system=rag", "sample=40", *RETRIEVE)
    assert other.status == 3
    assert "in the baseline, 40 now" in other.out


@pytest.mark.slow
def test_gate_works_with_answers_on_a_sample(tmp_path: Path) -> None:
    words = ("dataset=demo", "sample=40", "tracking=none", "plots=false")
    baseline = str(tmp_path / "baseline.json")
    gate = ("gate", "--baseline", baseline)
    completed(tmp_path, *gate, "--bless", "system=oracle", *words)
    content = json.loads(Path(baseline).read_text(encoding="utf-8"))
    assert content["metric"] == "accuracy" and content["judge"]["name"] == "keyword"
    assert "sample=40 seed=0" in content["protocol"]
    right = next(name for name, row in content["questions"].items() if row["value"] == 1)

    must_pass = ("--must-pass", right)
    assert memeval(tmp_path, *gate, *must_pass, "system=oracle", *words).status == 0
    worse = memeval(tmp_path, *gate, "system=no_memory", *words)
    assert worse.status == 1, worse.out
    judged = memeval(tmp_path, *gate, "system=oracle", "judge=contains", *words)
    assert judged.status == 3 and "different judges: keyword" in judged.out
    # Blessing again keeps the questions that must pass.
    completed(tmp_path, *gate, "--bless", *must_pass, "system=oracle", *words)
    completed(tmp_path, *gate, "--bless", "system=oracle", *words)
    assert json.loads(Path(baseline).read_text(encoding="utf-8"))["must_pass"] == [right]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--baseline", "nowhere.json"], "the baseline nowhere.json is missing"),
        ([], "gate: the following arguments are required: --baseline"),
        (["--baseline", "BASELINE", "--margin", "-1"], "memeval: margin must be between 0 and 100"),
        (
            ["--baseline", "BASELINE", "--non-inferior", "0"],
            "memeval: non-inferior must be above 0",
        ),
        (["--baseline", "BASELINE", "abc"], "unknown run 'abc'"),
        (["--baseline", "BASELINE", "a", "b"], "gate takes one run, not 2"),
        (
            ["--baseline", "BASELINE", "a", "top_k=3"],
            "gate takes either a run or the settings of one",
        ),
        (["--baseline", "BASELINE", "--config-dir", "conf"], "--config-dir needs settings"),
        (["--baseline", "BASELINE", "--metric", "f1"], "metric is recall_at_10, not f1"),
        (["--baseline", "BASELINE", "--must-pass", "demo-1/q999"], "did not ask 'demo-1/q999'"),
        (["--baseline", "BASELINE", "--output", "BASELINE"], "baseline.json is a file, not a"),
        (["--baseline", "NEW", "--bless", "--metric", "cost"], "gate compares shares"),
        (["--baseline", "NEW", "--bless", "--metric", "nosuch"], "unknown metric 'nosuch'"),
        (["--baseline", "NEW", "--bless", "--margin", "3"], "gate --bless compares nothing"),
        (["--baseline", "NEW", "--bless", "--must-pass", "x"], "did not ask 'x'"),
    ],
)
def test_invalid_arguments_are_refused(home: Path, words: list[str], message: str) -> None:
    names = {"BASELINE": str(home / "baseline.json"), "NEW": str(home / "new.json")}
    done = memeval(home, "gate", *(names.get(word, word) for word in words))
    assert done.status == 2
    assert message in done.err and "Traceback" not in done.err


ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Runs a step of the action as GitHub does: its script in bash, its inputs in `env`.

    `python` is this interpreter, but its pip prints what it would install.
    """
    (step,) = (step for step in ACTION["runs"]["steps"] if step["name"] == name)
    given = {key: value.get("default", "") for key, value in ACTION["inputs"].items()} | inputs
    env = {
        variable: re.sub(
            r"\$\{\{ (?:inputs|github)\.(\w+) \}\}", lambda m: given.get(m[1], "HERE"), text
        )
        for variable, text in step["env"].items()
    }
    shim = folder / "bin" / "python"
    shim.parent.mkdir(exist_ok=True)
    shim.write_text(
        f'#!/bin/sh\n[ "$2" = pip ] && echo "$@" && exit\nexec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    shim.chmod(0o700)
    path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **env, "PATH": path, "MEMEVAL_HOME": str(folder / "home")}
        | {"PYTHONPATH": str(ROOT), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_steps_of_the_github_action_run(home: Path, tmp_path: Path) -> None:
    installed = run_step("Install memeval", tmp_path).stdout.splitlines()
    quiet = "-m pip install --quiet"
    assert installed == [
        f"{quiet} --require-hashes -r HERE/requirements/run.txt",
        f"{quiet} --require-hashes -r HERE/requirements/build.txt",
        f"{quiet} --no-deps --no-build-isolation HERE",
    ]
    for name in ("run", "build"):
        lock = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
        assert lock.count("--hash=sha256:") >= lock.count("==") > 0

    asked = run_step("Install what was asked for", tmp_path, install="memeval==1")
    assert asked.stdout.split() == [*quiet.split(), "memeval==1"]

    inputs = {"baseline": str(home / "baseline.json"), "options": "--margin 1"}
    settings = "system=bm25 dataset=demo stages=retrieve"
    worse = run_step("Gate", tmp_path, run=settings, **inputs)
    assert worse.returncode == 1, worse.stderr
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## memeval gate: FAIL")
    assert {path.name for path in (tmp_path / "memeval-gate").iterdir()} == {
        "gate.md",
        "gate.json",
        "junit.xml",
    }
    # The contents of an input are never executed.
    hostile = run_step("Gate", tmp_path, run="$(touch hit) `touch hit`; touch hit", **inputs)
    assert hostile.returncode == 2 and not (tmp_path / "hit").exists()


def test_unwritable_output_is_broken_and_not_worse(home: Path, tmp_path: Path) -> None:
    out = tmp_path / "file"
    out.write_text("", encoding="utf-8")
    baseline = str(home / "baseline.json")
    done = memeval(
        home, "gate", "--baseline", baseline, "--out", str(out / "x"), "system=rag", *RETRIEVE
    )
    assert done.status == 3 and "can't be written" in done.err


@pytest.mark.slow
def test_gate_fails_a_run_with_a_higher_leak_rate(tmp_path: Path) -> None:
    """A memory that begins to keep what it should forget does not pass."""
    data = ("dataset=demo_lifecycle", "dataset.n_cases=6", "dataset.languages=[en]")
    words = (*data, "dataset.later_tokens=0", "tracking=none", "plots=false")
    gate = ("gate", "--baseline", str(tmp_path / "baseline.json"))
    bless = ("--bless", "--metric", "leak_rate/probe", "system=oracle")
    made = completed(tmp_path, *gate, *bless, *words)
    assert "42 values of leak_rate/probe" in made.out

    worse = memeval(tmp_path, *gate, "--out", str(tmp_path / "out"), "system=bm25", *words)
    assert worse.status == 1, worse.out
    assert "Worse than the baseline: +" in worse.out
    content = json.loads((tmp_path / "out" / "gate.json").read_text(encoding="utf-8"))
    assert content["difference"]["low"] > 0
