"""`python -m memeval table`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from command_line import completed, memeval

CELLS = ("-m", "system=bm25,rag", "dataset.limit_questions=4", "tracking=none", "plots=false")


@pytest.mark.slow
def test_table_of_a_sweep_has_its_metrics(tmp_path: Path) -> None:
    completed(tmp_path, *CELLS)
    done = completed(tmp_path, "table", "dataset=demo", "--rows", "system")
    assert "| system | accuracy (%) | accuracy by category (%): " in done.out
    assert "turn recall@10 (%)" in done.out and "| rag | " in done.out

    words = ("table", "dataset=demo", "--columns", "accuracy,recall@5", "--format", "csv")
    done = completed(tmp_path, *words, "--output", str(tmp_path / "paper.csv"))
    assert done.out == f"file: {tmp_path / 'paper.csv'}\n"
    shown = completed(tmp_path, *words, "--output", "/dev/stdout")
    assert shown.out == (tmp_path / "paper.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader((tmp_path / "paper.csv").read_text(encoding="utf-8").splitlines()))
    by_system = {
        run["params"]["system"]: run["metrics"]
        for run in map(json.loads, (path.read_text() for path in tmp_path.glob("**/run.json")))
    }
    for row in rows:
        own = by_system[row["run"]]
        assert float(row["accuracy"]) == pytest.approx(own["accuracy"])
        assert float(row["recall_at_5"]) == pytest.approx(own["recall_at_5"])


@pytest.mark.slow
def test_session_recall_is_flagged_in_every_table(tmp_path: Path) -> None:
    words = ("system=bm25", "granularity=session", "dataset.limit_questions=4")
    done = completed(tmp_path, *words, "tracking=none", "plots=false")
    # The smallest demonstration conversation has five sessions.
    assert "R@5 of 5 sessions" in done.out and "turn" in done.out
    (report,) = tmp_path.glob("outputs/runs/*/report.md")
    assert "conversations have as few as 5: @5, @10" in report.read_text(encoding="utf-8")

    table = completed(tmp_path, "table", "system=bm25", "--columns", "recall@5,recall@1").out
    assert "turn recall@5 (%)" in table and "@5 can't miss anything" in table.replace("\\", "")


@pytest.mark.slow
@pytest.mark.real_data
def test_recorded_answers_have_their_recorded_figures(tmp_path: Path, data_dir: Path) -> None:
    """Official F1, mem0's F1, BLEU-1 and keywords, as computed independently of memeval."""
    outputs = data_dir.parent / "outputs/locomo"
    names = ("mem0_2025", "full_context_gpt_4o_mini")
    for name in names:
        words = ("dataset=locomo", "judge=keyword", "tracking=none", "plots=false")
        answers = str(outputs / f"{name}.jsonl")
        completed(tmp_path, "evaluate", answers, *words, MEMEVAL_DATA_DIR=str(data_dir))

    columns = "accuracy,f1,mem0_f1,bleu1"
    words = ("table", "dataset=locomo", "--columns", columns, "--format", "csv")
    rows = list(csv.DictReader(completed(tmp_path, *words).out.splitlines()))
    by_name = {row["run"]: row for row in rows}
    for name in names:
        lines = (outputs / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        recorded = [json.loads(line)["reference"] for line in lines]
        for column, own in (
            ("accuracy", "cog_kw_passed"),
            ("token_f1", "locomo_f1"),
            ("mem0_f1", "mem0_f1"),
            ("bleu1", "mem0_bleu1"),
        ):
            mean = sum(row[own] for row in recorded) / len(recorded)
            assert float(by_name[name][column]) == pytest.approx(mean, abs=1e-6), (name, column)

    full = by_name["full_context_gpt_4o_mini"]
    assert (full["accuracy_best"], full["accuracy_letters"]) == ("True", "a")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "table needs runs"),
        (("dataset=demo",), "no finished runs in"),
        (("--format", "word"), "unknown --format of table 'word'. Available: csv"),
        (("--format", "csv", "--label", "tab:a"), "--format csv has no place for --label"),
        (("--format", "csv", "--caption", "A"), "--format csv has no place for --caption"),
        (("--label", "tab:a"), "--format markdown has no place for --label"),
    ],
)
def test_invalid_arguments_are_refused(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = memeval(tmp_path, "table", *words)
    assert done.status == 2 and message in done.message
