"""`compare`, `list`, `show`, the end of a sweep and recorded verdicts on the command line."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import Ended, completed, memeval
from sample_records import record

from memeval.cli.show import spending_lines
from memeval.comparison.tables import WIDTH
from memeval.results.rows import StepTimes

DEMO = ("dataset=demo", "tracking=none", "plots=false")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a finished sweep of two systems under two judges."""
    folder = tmp_path_factory.mktemp("home")
    completed(folder, "-m", "system=no_memory,oracle", "judge=keyword,contains", *DEMO)
    return folder


@pytest.fixture
def keys(home: Path) -> dict[str, str]:
    """Run keys by system and judge."""
    found = {}
    for path in home.glob("outputs/runs/*/run.json"):
        params = json.loads(path.read_text(encoding="utf-8"))["params"]
        found[f"{params['system']} {params['judge']}"] = path.parent.name

    return found


def fits(text: str) -> bool:
    """Whether every line of a table fits into 80 columns."""
    return max(len(line) for line in text.split("\n") if "files: " not in line) <= WIDTH


def test_sweep_compares_its_runs_with_the_first(home: Path) -> None:
    (folder,) = (home / "outputs" / "sweeps").glob("*/comparison.json")
    content = json.loads(folder.read_text(encoding="utf-8"))
    assert len(content["differences"]) == 1 and len(content["refusals"]) == 2
    assert "different judges: contains, keyword" in (folder.parent / "comparison.md").read_text()
    for name in ("comparison.csv", "comparison.tex", "comparison.html", "differences.csv"):
        assert (folder.parent / name).is_file()


def test_compare_reports_fewer_runs_than_last_asks_for(home: Path) -> None:
    few = completed(home, "compare", "judge=keyword", "--last", "3")
    assert "only 2 runs match, not 3 (--last)\n" in few.err
    assert "runs match" not in completed(home, "compare", "judge=keyword", "--last", "2").err


@pytest.mark.slow
def test_sweep_prints_a_sentence_and_then_its_table(tmp_path: Path) -> None:
    done = completed(tmp_path, "-m", "system=no_memory,oracle", *DEMO)
    text = " ".join(done.out.split())
    # Sentences without statistics come first, then the table. The rest is printed only on request.
    assert re.match(r"oracle \d+\.\d % is higher than no_memory \d+\.\d %\. oracle is higher", text)
    assert text.index("is higher than") < text.index("[95%]") < text.index("docs/glossary.md")
    assert "MDE" not in text
    again = completed(tmp_path, "-m", "system=no_memory,oracle", *DEMO, "--stats")
    assert again.out.index("[95%]") < again.out.index("(baseline);") < again.out.index("MDE")


@pytest.mark.slow
def test_a_run_ends_with_a_sentence(tmp_path: Path) -> None:
    done = completed(tmp_path, "system=oracle", *DEMO)
    assert re.match(
        r"\d+\.\d % of 122 questions are answered right, according to the judge keyword\.", done.out
    )


@pytest.mark.parametrize(("options", "shown"), [((), "oracle"), (("--json",), '"differences"')])
def test_comparison_that_cannot_be_written_is_printed(
    home: Path, tmp_path: Path, options: tuple[str, ...], shown: str
) -> None:
    full = shutil.copytree(home, tmp_path / "full")
    shutil.rmtree(full / "outputs" / "comparisons", ignore_errors=True)
    (full / "outputs" / "comparisons").write_text("")
    done = memeval(full, "compare", "judge=keyword", *options)
    assert done.status == 1 and "can't be written" in done.err
    assert shown in done.out


@pytest.mark.slow
def test_compare_selects_runs_by_filter_and_by_key(home: Path, keys: dict[str, str]) -> None:
    done = completed(home, "compare", "judge=keyword", "--baseline", "no_memory")
    assert "is higher than no_memory" in done.out and "(baseline)" not in done.out
    output = completed(home, "compare", "judge=keyword", "--baseline", "no_memory", "--stats").out
    assert "against no_memory (baseline)" in output and "MDE" in output
    (line,) = (line for line in done.out.split("\n") if line.startswith("files: "))
    files = {path.name for path in Path(line.removeprefix("files: ")).iterdir()}
    assert files == {
        "comparison.md",
        "comparison.csv",
        "comparison.json",
        "comparison.tex",
        "comparison.html",
        "differences.csv",
    }
    page = (Path(line.removeprefix("files: ")) / "comparison.html").read_text(encoding="utf-8")
    assert "Difference from no_memory" in page

    pair = [keys["oracle keyword"][:8], keys["no_memory keyword"]]
    content = json.loads(completed(home, "compare", *pair, "--json").out)
    assert content["baseline"] == keys["oracle keyword"]
    assert content["differences"][0]["result"]["mean"] < 0
    everything = completed(
        home, "compare", "dataset=demo", "--all-pairs", "--metric", "f1", "--stats"
    )
    assert len([row for row in everything.out.split("\n") if " − " in row]) >= 6


def test_different_judges_are_compared_only_if_forced(home: Path, keys: dict[str, str]) -> None:
    pair = [keys["oracle keyword"], keys["oracle contains"]]
    done = memeval(home, "compare", *pair)
    assert done.status == 2 and done.out == ""
    assert "different judges: contains, keyword" in done.message
    assert "--force (in Python: force=True" in done.err
    forced = completed(home, "compare", *pair, "--force")
    assert forced.out.count("FORCED, not comparable: different judges: contains, keyword") >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare"], "compare needs two runs, or a filter"),
        (["compare", "nothing"], "unknown run 'nothing'."),
        (["compare", "dataset=demo", "--baseline", "orakle"], "unknown run 'orakle'. Did you mean"),
        (["compare", "dataset=locomo"], "no finished run matches dataset=locomo"),
        (["compare", "dataset=demo", "--metric", "acuracy"], "unknown metric 'acuracy'. Did you"),
        (
            ["compare", "--last", "2", "--all-pairs", "--baseline", "x"],
            "without a baseline: leave it out",
        ),
        (["compare", "--last", "1"], "only one run: "),
        (["compare", "--last", "0"], "memeval: last must be at least 1, not 0"),
        (["compare", "--last", "x"], "compare: argument --last: invalid int value: 'x'"),
        (["compare", "--metric", "f1,", "tokens"], "'f1,' has a comma too many: write the"),
        (["compare", "--metric", ",f1"], "',f1' has a comma too many: write the names without"),
        (["compare", "system=oracle", "--al-pairs"], "compare: unrecognized arguments: --al-pairs"),
        (["list", "sistem=oracle"], "unknown filter 'sistem'. Did you mean: system"),
        (["show"], "show: the following arguments are required: RUN"),
        (["show", "orakle"], "unknown run 'orakle'. Did you mean: "),
    ],
)
def test_invalid_arguments_are_refused(home: Path, arguments: list[str], message: str) -> None:
    done = memeval(home, *arguments)
    assert done.status == 2 and message in done.message, done.err
    assert "Traceback" not in done.err


def test_filter_without_a_match_lists_the_available_values(home: Path) -> None:
    done = memeval(home, "compare", "dataset=locomo")
    assert "dataset in this home: demo" in done.err


def test_list_without_runs_is_refused(tmp_path: Path) -> None:
    done = memeval(tmp_path, "list")
    assert done.status == 2 and "no finished runs in" in done.message


def test_a_damaged_run_is_named(home: Path, keys: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    file = copy / "outputs" / "runs" / keys["oracle keyword"] / "run.json"
    file.write_text("{")
    for words in (["list"], ["compare", "judge=keyword"]):
        done = memeval(copy, *words)
        assert f"memeval: {file} is damaged: " in done.err
        assert done.err.count("repeat its command, which recreates it") == 1


def test_edited_records_are_refused(home: Path, keys: dict[str, str], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    records = copy / "outputs" / "runs" / keys["oracle keyword"] / "records.jsonl"
    records.write_text(records.read_text(encoding="utf-8").replace("wrong", "correct"))
    done = memeval(copy, "compare", "judge=keyword")
    assert done.status == 2 and "is damaged or was edited" in done.message

    # The hint also works from another home.
    pair = (keys["oracle keyword"], keys["no_memory keyword"])
    done = memeval(tmp_path, "compare", *(str(copy / "outputs" / "runs" / key) for key in pair))
    _, _, command = done.err.partition("to see more:  python -m memeval ")
    assert memeval(tmp_path, *command.split()).out.startswith(pair[0])


def test_runs_are_compared_when_their_data_are_gone(
    home: Path, keys: dict[str, str], tmp_path: Path
) -> None:
    gone = {"MEMEVAL_DATA_DIR": str(tmp_path / "gone")}
    config = home / "outputs" / "runs" / keys["oracle keyword"] / "config.yaml"
    assert config.is_file()
    done = completed(home, "compare", "judge=keyword", **gone)
    assert "oracle" in done.out


def test_list_shows_the_runs_that_match(home: Path, keys: dict[str, str]) -> None:
    done = completed(home, "list")
    assert fits(done.out) and len(done.out.strip().split("\n")) == 5
    assert all(key[:8] in done.out for key in keys.values())
    one = completed(home, "list", "system=oracle", "judge=keyword")
    assert [key[:8] in one.out for key in keys.values()].count(True) == 1
    assert keys["oracle keyword"][:8] in one.out


def test_show_prints_a_run_and_a_question(home: Path, keys: dict[str, str]) -> None:
    key = keys["oracle keyword"]
    done = completed(home, "show", key[:6])
    for text in (key, "accuracy [95 %]", "multi_hop", "  judge: keyword", "command:"):
        assert text in done.out

    records = home / "outputs" / "runs" / key / "records.jsonl"
    first = json.loads(records.read_text(encoding="utf-8").split("\n")[0])
    question = completed(home, "show", key, first["question_id"])
    for text in (
        f"gold: {first['gold'][0]}",
        f"evidence {first['evidence'][0]}: ",
        "*retrieved 1",
        "(evidence)",
        f"verdict: {first['verdict']['label']} by {first['verdict']['judge']}",
        "context that the reader saw",
        "tokens sent",
    ):
        assert text in question.out, question.out
    assert "not on this machine" not in question.out

    done = memeval(home, "show", key, first["question_id"] + "9")
    assert done.status == 2 and first["question_id"] in done.err


def test_spending_names_the_wait_for_a_slot() -> None:
    lines = list(spending_lines(record(times=StepTimes(answer_ms=5.0, place_ms=2.0))))
    assert any("waiting for a slot 2.0 ms" in line for line in lines)


def recorded(folder: Path, home: Path, name: str, key: str, **members: object) -> Path:
    """The answers of a finished run as another program's file, with its verdicts."""
    path = folder / f"{name}.jsonl"
    rows = []
    for line in (home / "outputs" / "runs" / key / "records.jsonl").read_text().splitlines():
        row = json.loads(line)
        right = row["verdict"]["label"] == "correct"
        rows.append(
            {"question_id": row["question_id"], "hypothesis": row["hypothesis"] or "-"}
            | {name: value if value != "?" else right for name, value in members.items()}
        )

    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def evaluate(home: Path, file: Path, *arguments: str) -> Ended:
    return memeval(home, "evaluate", str(file), "judge=recorded", *DEMO, *arguments)


@pytest.mark.slow
def test_recorded_verdicts_are_compared_like_our_own(
    home: Path, keys: dict[str, str], tmp_path: Path
) -> None:
    members = {"label": "?", "judge": "gpt-4o-mini"}
    for system in ("oracle", "no_memory"):
        file = recorded(tmp_path, home, system, keys[f"{system} keyword"], **members)
        done = evaluate(tmp_path, file)
        assert done.status == 0, done.err
        assert "judge: recorded (gpt-4o-mini)" in done.out and "imported, recorded" in done.out

    theirs = json.loads(completed(tmp_path, "compare", "dataset=demo", "--json").out)
    ours = json.loads(
        completed(home, "compare", keys["oracle keyword"], keys["no_memory keyword"], "--json").out
    )
    assert theirs["runs"][0]["judge"] == "recorded (gpt-4o-mini)"
    means = [content["differences"][0]["result"]["mean"] for content in (theirs, ours)]
    assert means[0] == pytest.approx(means[1])


@pytest.mark.slow
def test_unnamed_recorded_judges_are_compared_only_once_named(
    home: Path, keys: dict[str, str], tmp_path: Path
) -> None:
    files = [
        recorded(tmp_path, home, system, keys[f"{system} keyword"], label="?")
        for system in ("oracle", "no_memory")
    ]
    for file in files:
        assert "judge: recorded (unnamed)" in evaluate(tmp_path, file).out

    refused = memeval(tmp_path, "compare", "dataset=demo")
    assert refused.status == 2 and "an unnamed judge never equals another" in refused.message
    assert "evaluate --judged-by=NAME names it" in refused.message

    for file in files:
        evaluate(tmp_path, file, "--judged-by", "a person", "label=named")
    done = completed(tmp_path, "compare", "dataset=demo", "label=named")
    assert "judge: recorded (a person)" in done.out


def test_one_of_several_recorded_judges_is_chosen(
    home: Path, keys: dict[str, str], tmp_path: Path
) -> None:
    key = keys["oracle keyword"]
    file = recorded(tmp_path, home, "both", key, labels={"person": True, "model": False})
    done = evaluate(tmp_path, file)
    assert done.status == 2 and "verdicts of 2 judges: model, person" in done.message
    assert "--judged-by=NAME" in done.err

    for judge, accuracy in (("person", "100.0"), ("model", "0.0")):
        done = evaluate(tmp_path, file, f"--judged-by={judge}")
        assert done.status == 0 and accuracy in done.out, done.err

    pair = memeval(tmp_path, "compare", "dataset=demo")
    assert (
        pair.status == 2 and "different judges: recorded (model), recorded (person)" in pair.message
    )
    wrong = evaluate(tmp_path, file, "--judged-by=persn")
    assert wrong.status == 2 and "unknown judge 'persn'. Did you mean: person" in wrong.message


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "records no verdicts"),
        ({"label": "maybe"}, "line 1: label must be true, false, correct, wrong or abstained"),
        ({"label": 3}, "line 1: label must be"),
        ({"label": "?", "judge": True}, "line 1: the judge's name must be a string"),
        ({"labels": [True]}, "line 1: labels must be an object of judges"),
    ],
)
def test_invalid_recorded_verdicts_are_refused(
    home: Path, keys: dict[str, str], tmp_path: Path, members: dict[str, object], message: str
) -> None:
    done = evaluate(tmp_path, recorded(tmp_path, home, "odd", keys["oracle keyword"], **members))
    assert done.status == 2 and message in done.message, done.err


@pytest.mark.slow
def test_recorded_votes_and_longmemeval_labels_are_read(
    home: Path, keys: dict[str, str], tmp_path: Path
) -> None:
    key = keys["oracle keyword"]
    votes = recorded(tmp_path, home, "votes", key, label=["yes", "no", True])
    assert " 100.0 " in evaluate(tmp_path, votes).out
    tie = recorded(tmp_path, home, "tie", key, label=[True, False])
    done = evaluate(tmp_path, tie)
    assert done.status == 1 and "2 recorded verdicts are a tie" in done.out
    official = recorded(
        tmp_path, home, "official", key, autoeval_label={"model": "gpt-4o", "label": True}
    )
    assert "judge: recorded (gpt-4o)" in evaluate(tmp_path, official).out

    # The recorded verdict on a blank answer counts.
    blank = recorded(tmp_path, home, "blank", key, label=True, hypothesis=" ")
    done = evaluate(tmp_path, blank)
    assert " 100.0 " in done.out and "whose recorded verdicts count" in done.out


def test_recorded_judge_is_refused_outside_evaluate(tmp_path: Path) -> None:
    done = memeval(tmp_path, *DEMO, "judge=recorded")
    assert done.status == 2 and "judge=recorded" in done.message


@pytest.mark.slow
def test_compare_draws_plots_on_request(home: Path) -> None:
    done = completed(home, "compare", "judge=keyword", "--baseline", "no_memory", "--plots")
    (line,) = (line for line in done.out.split("\n") if line.startswith("files: "))
    folder = Path(line.removeprefix("files: "))
    for name in ("differences", "conversations"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text(encoding="utf-8")
