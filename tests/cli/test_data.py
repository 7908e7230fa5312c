"""`data list | fetch | verify | stats | make` on the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import completed, memeval, runs

from memeval.cli.data import data
from memeval.errors import UserError


def cells_of(table: str) -> list[list[str]]:
    """The cells of a Markdown table, header first, without its separator row."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("|")
    ]
    return [row for row in rows if not set(row[0]) <= {"-", ":"}]


def test_stats_of_few_cases_have_a_row_each(tmp_path: Path) -> None:
    done = completed(tmp_path, "data", "stats", "demo")
    header, *rows = cells_of(done.out)
    assert (
        header
        == "case sessions turns tokens questions c1 c2 c3 c4 c5".split()
        + "evidence answerable first last".split()
    )
    assert rows[0][:3] + rows[0][4:10] == "demo-1 9 121 21 3 5 1 10 2".split()
    assert rows[-1][:3] + rows[-1][4:10] == "all 62 650 142 20 34 10 58 20".split()
    assert (
        "categories: 1 multi_hop, 2 temporal, 3 open_domain, 4 single_hop, 5 adversarial"
        in done.out
    )
    assert not any(line != line.rstrip() for line in done.out.splitlines()), (
        "piped output has no padding"
    )


def test_stats_of_a_demonstration_use_the_settings_of_its_option(tmp_path: Path) -> None:
    for settings, questions in ((), "58"), (("dataset.n_cases=1",), "29"):
        rows = cells_of(completed(tmp_path, "data", "stats", "demo_lifecycle", *settings).out)
        assert rows[-1][4] == questions

    asked = cells_of(completed(tmp_path, "data", "stats", "demo_memory_agent_bench").out)[-1]
    assert asked[:2] + asked[4:5] == ["all", "9", "15"], "with those that need a model to judge"
    read = completed(tmp_path, "data", "verify", "demo_lifecycle").out
    assert "read: 2 cases, 14 sessions, 390 turns, 58 questions" in read


@pytest.mark.real_data
def test_stats_of_locomo_are_the_published_table(tmp_path: Path, data_dir: Path) -> None:
    rows = cells_of(
        completed(tmp_path, "data", "stats", "locomo", MEMEVAL_DATA_DIR=str(data_dir)).out
    )
    assert len(rows) == 12
    assert [row[:3] + row[4:10] for row in (rows[1], rows[2], rows[-2], rows[-1])] == [
        "conv-26 19 419 199 32 37 13 70 47".split(),
        "conv-30 19 369 105 11 26 0 44 24".split(),
        "conv-50 30 568 204 32 32 7 87 46".split(),
        "all 272 5,882 1,986 282 321 96 841 446".split(),
    ]


def test_stats_of_many_cases_have_one_row_per_category(tmp_path: Path) -> None:
    done = completed(
        tmp_path,
        "data",
        "stats",
        "synthetic",
        "dataset.n_cases=41",
        "dataset.tokens=300",
        "questions_per_case=12",
    )
    header, *rows = cells_of(done.out)
    assert header[:6] == ["category", "cases", "sessions", "turns", "tokens", "most tokens"]
    assert rows[-1][:2] == ["all", "41"]
    assert {row[0].split()[0] for row in rows[:-1]} == {"IE", "MR", "TR", "KU", "CR", "ABS"}
    assert sum(int(row[6]) for row in rows[:-1]) == int(rows[-1][6])
    assert "depth of the evidence: 0-20% " in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["stats", "dmo"], "unknown data set 'dmo'. Did you mean: demo"),
        (
            ["stats", "synthetic", "dataset.tokens=9"],
            "dataset.tokens must be at least 10, not 9",
        ),
        (["stats", "synthetic", "dataset.tokens=[1"], "dataset.tokens=[1: "),
        (["stats", "synthetic", "tokens"], "'tokens' is not a setting"),
        (
            ["make", "demo", "x.json"],
            "data set 'demo' can't be written as a file",
        ),
        (
            ["make", "synthetic", "/nowhere/at/all.json", "tokens=10"],
            "/nowhere/at/all.json can't be written: No such file or directory.",
        ),
        (
            ["fetch", "synthetic"],
            "data set 'synthetic' needs no download: nothing to fetch.",
        ),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, words: list[str], message: str) -> None:
    done = memeval(tmp_path, "data", *words)
    assert done.status == 2
    assert done.message.startswith(f"memeval: {message}")
    assert "Traceback" not in done.err


def test_a_made_file_runs_under_both_adapters(tmp_path: Path) -> None:
    path = tmp_path / "made.json"
    done = completed(
        tmp_path, "data", "make", "synthetic", str(path), "dataset.tokens=1000", "dataset.n_cases=2"
    )
    assert f"run it:  python -m memeval dataset=synthetic dataset.path={path}" in done.out
    assert [record["sample_id"] for record in json.loads(path.read_text(encoding="utf-8"))] == [
        "synthetic-1",
        "synthetic-2",
    ]
    assert (
        memeval(tmp_path, "data", "make", "synthetic", str(path)).message
        == f"memeval: {path} already exists."
    )
    for name, category in (("synthetic", "IE"), ("demo", "4")):
        completed(
            tmp_path,
            f"dataset={name}",
            f"dataset.path={path}",
            "tracking=none",
            "dataset.limit_questions=12",
        )
        (run,) = (run for run in runs(tmp_path) if run["dataset"] == name)
        assert category in {row["category"] for row in run["categories"]}


def test_verify_reads_a_generated_and_a_shipped_set(tmp_path: Path) -> None:
    done = completed(tmp_path, "data", "verify", "synthetic")
    assert done.out.splitlines()[0].startswith("generated: sha256 ")
    assert "read: 4 cases, " in done.out and done.out.splitlines()[-1] == "right"
    assert completed(tmp_path, "data", "verify", "demo").out.splitlines()[-1] == "right"


@pytest.mark.real_data
def test_verify_lists_every_repair_of_locomo(tmp_path: Path, data_dir: Path) -> None:
    done = completed(tmp_path, "data", "verify", "locomo", MEMEVAL_DATA_DIR=str(data_dir))
    repaired = [line.strip() for line in done.out.splitlines() if "repaired: " in line]
    assert len(repaired) == 9
    assert "repaired: conv-26 qa[37]: evidence 'D8:6; D9:17' read as D8:6, D9:17" in repaired
    assert "repaired: conv-42 qa[88]: evidence 'D' dropped" in repaired
    assert done.out.splitlines()[-1] == "as registered"


def test_the_list_tells_what_is_generated(tmp_path: Path) -> None:
    output = completed(tmp_path, "data", "list").out
    block = output[output.index("\nsynthetic: ") :].split("\n\n")[0]
    assert "here:     generated: python -m memeval dataset=synthetic" in block
    assert "size:     depends on its settings" in block
    # Its files are large; only what ships is called small.
    convomem = output[output.index("\nconvomem: ") :].split("\n\n")[0]
    assert "size:     not registered" in convomem


@pytest.mark.slow
def test_evidence_depth_is_in_reports_and_plots(tmp_path: Path) -> None:
    done = completed(
        tmp_path,
        "-m",
        "+sweep=haystack_scale",
        "dataset.tokens=300,600",
        "system=bm25",
        "tracking=none",
        "dataset.n_cases=2",
        "plots=true",
    )
    assert "Traceback" not in done.err
    names = {path.name for path in tmp_path.glob("outputs/sweeps/*/*.png")}
    assert names == {
        "comparison.png",
        "comparison_ranked.png",
        "haystack_scale.png",
        "haystack_depth.png",
        "haystack_depth_curves.png",
    }
    reports = list(tmp_path.glob("outputs/runs/*/report.md"))
    assert len(reports) == 2
    assert all(
        "## By depth of the evidence" in report.read_text(encoding="utf-8") for report in reports
    )


def test_superfluous_word_of_an_action_shows_the_usage_of_the_action() -> None:
    with pytest.raises(UserError, match="data power: unrecognized arguments: B") as refused:
        data(["power", "A", "B"])
    assert refused.value.hints == ("usage: python -m memeval data power [-h] FILE",)
