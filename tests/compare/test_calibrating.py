"""Golden vectors through the commands: probe, label, calibrate, agree."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_runs import made_run
from msgspec import structs

from memeval.api.judging import ITEMS_FILE
from memeval.calibration.items import read_items
from memeval.calibration.label_file import read_labels
from memeval.calibration.scored import allocate, draw_sample, scored_answers
from memeval.cli.main import run_command
from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS
from memeval.records import Status
from memeval.report.comparison import comparison_csv, comparison_markdown
from memeval.report.markdown import report
from memeval.report.page.build import cell_data, page_data
from memeval.report.page.runs import PageRun
from memeval.report.page.write import render
from memeval.report.stamp import has_report, stamp_report
from memeval.results.calibration import CALIBRATION_FILE, Calibration, read_shown_summary
from memeval.results.files import file_digest
from memeval.results.judge import JudgeIdentity
from memeval.results.run import Run
from memeval.statistics.judge_error import JudgedAnswers, prediction_powered_mean
from memeval.statistics.means import scored_mean
from memeval.text.shipped import shipped_path
from memeval.tracking import payload

DEMO = DATASETS["demo"]

LABELS, JUDGED = "1011010110", "1011110111"
"""Labels by people and verdicts of the judge for the labelled answers of the example."""
NOT_LABELLED = "1" * 30 + "0" * 10


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without runs."""
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    return tmp_path


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(home: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command; returns its status and output."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run_command([str(word) for word in words])
        return status, *capsys.readouterr()

    return run


def independent(home: Path, digits: str, name: str = "own", **changes: Any) -> Run:
    """A run in which each question has its own conversation."""
    scores = {f"c{number}/q0": [float(digit)] for number, digit in enumerate(digits)}
    return made_run(home / "outputs" / "runs", name, scores, **changes)


def own_labels(path: Path, run: Run, labels: Sequence[str], **more: str) -> Path:
    """Writes a JSON-lines file with labels for the first answers of a run."""
    rows = [
        {"run": run.key, "question_id": answer.question_id, "label": label, **more}
        for answer, label in zip(scored_answers(run), labels, strict=False)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def other_labels(path: Path, **counts: tuple[int, int]) -> Path:
    """Writes labels of other answers. For each kind: how many the judge accepted, and how many
    there are.
    """
    rows = []
    for kind, (accepted, count) in counts.items():
        for number in range(count):
            verdict = "right" if number < accepted else "wrong"
            label = "right" if kind == "right" else "wrong"
            rows.append({"kind": kind, "label": label, "verdict": verdict, "judge": "keyword"})

    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_labels_of_the_runs_own_answers_give_ppi(home: Path, command: Command) -> None:
    run = independent(home, JUDGED + NOT_LABELLED)
    file = own_labels(home / "labels.jsonl", run, list(LABELS))
    status, out, err = command("judge", "calibrate", run.key, "--labels", file, "--json")
    assert status == 0, err
    result = json.loads(out)
    assert result["method"] == "ppi" and result["groups"] is None
    assert result["power"] == pytest.approx(0.5157894736842105)
    assert result["accuracy"] == pytest.approx(0.5742105263157895)
    assert result["se"] == pytest.approx(0.1308614913444651)
    assert result["raw"] == pytest.approx(38 / 50)


def test_standard_error_is_clustered_by_conversation(home: Path, command: Command) -> None:
    digits = JUDGED + NOT_LABELLED
    scores = {f"c{number % 5}/q{number}": [float(digit)] for number, digit in enumerate(digits)}
    run = made_run(home / "outputs" / "runs", "own", scores)
    file = own_labels(home / "labels.jsonl", run, list(LABELS))
    assert command("judge", "calibrate", run.key, "--labels", file)[0] == 0
    result = json.loads((run.folder / CALIBRATION_FILE).read_text(encoding="utf-8"))
    assert result["groups"] == 5
    assert result["accuracy"] == pytest.approx(0.5742105263157895)
    assert result["se"] != pytest.approx(0.1308614913444651)
    half = 2.7764451051977987 * result["se"]
    assert result["low"] == pytest.approx(result["accuracy"] - half)


def test_repeats_make_labels_no_more_certain_than_the_accuracy(
    home: Path, command: Command
) -> None:
    """Each answer is labelled as judged, so that both figures are the same."""
    scores = {f"c{number % 8}/q{number}": [float(number < 8)] * 3 for number in range(16)}
    run = made_run(home / "outputs" / "runs", "own", scores)
    path = home / "labels.jsonl"
    rows = [
        {
            "run": run.key,
            "question_id": answer.question_id,
            "repeat": answer.repeat,
            "label": ("wrong", "right")[bool(answer.right)],
        }
        for answer in scored_answers(run)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = json.loads(command("judge", "calibrate", run.key, "--labels", path, "--json")[1])
    accuracy = scored_mean([own[0] for own in scores.values()], [*range(8), *range(8)])
    assert accuracy is not None and result["labels"] == 48
    own = (result["low"], result["high"], result["se"])
    assert own == pytest.approx((accuracy.low, accuracy.high, accuracy.se))


def test_estimated_error_of_zero_gives_no_interval(home: Path, command: Command) -> None:
    scores = {f"c{number % 5}/q{number}": [1.0] for number in range(20)}
    run = made_run(home / "outputs" / "runs", "own", scores)
    file = own_labels(home / "labels.jsonl", run, ["right"] * 10)
    status, out, _ = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 0 and "no interval: the estimated error is 0" in out
    assert "in brackets" not in out


def weighted_run(home: Path, digits: str, weights: Sequence[float]) -> Run:
    """A run over a sample in which questions have unequal weights."""
    run = independent(home, digits)
    path = run.folder / "records.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [
        json.dumps(row | {"weight": weight}) + "\n"
        for row, weight in zip(rows, weights, strict=True)
    ]
    path.write_text("".join(lines), encoding="utf-8")
    files = {**run.summary.files, path.name: file_digest(path)}
    summary = replace(run.summary, files=files)
    summary.write(run.folder)
    return Run(run.folder, summary)


def test_calibration_uses_the_weights_of_a_sample(home: Path, command: Command) -> None:
    """Two thirds of the answers have a weight of three."""
    digits = JUDGED + NOT_LABELLED
    weights = [3.0 if number % 3 else 1.0 for number in range(50)]
    run = weighted_run(home, digits, weights)
    file = own_labels(home / "labels.jsonl", run, list(LABELS))
    status, out, err = command("judge", "calibrate", run.key, "--labels", file, "--json")
    assert status == 0, err
    result = json.loads(out)
    raw = sum(weight * int(digit) for digit, weight in zip(digits, weights, strict=True))
    raw /= sum(weights)
    expected = prediction_powered_mean(
        [float(digit) for digit in LABELS],
        JudgedAnswers([float(digit) for digit in JUDGED], weights[:10], range(10)),
        JudgedAnswers([float(digit) for digit in NOT_LABELLED], weights[10:], range(10, 50)),
    )
    assert result["raw"] == pytest.approx(raw) != pytest.approx(38 / 50)
    assert (result["accuracy"], result["se"]) == pytest.approx((expected.mean, expected.se))

    labels = own_labels(home / "all.jsonl", run, list(digits))
    result = json.loads(command("judge", "calibrate", run.key, "--labels", labels, "--json")[1])
    assert result["method"] == "labels" and result["accuracy"] == pytest.approx(raw)
    other = other_labels(home / "other.jsonl", right=(9, 10), vague=(2, 10))
    result = json.loads(command("judge", "calibrate", run.key, "--labels", other, "--json")[1])
    assert result["raw"] == pytest.approx(raw)


def test_labels_of_other_answers_give_a_range(home: Path, command: Command) -> None:
    run = independent(home, "1" * 400 + "0" * 600)
    file = other_labels(home / "labels.jsonl", right=(180, 200), vague=(60, 200), injected=(3, 50))
    status, out, err = command("judge", "calibrate", run.key, "--labels", file, "--json")
    assert status == 0, err
    result = json.loads(out)
    (kind,) = result["kinds"]
    assert result["method"] == "range" and result["accuracy"] is None
    # Attacks are no kind of answer that a run gives.
    assert (result["labels"], result["flipped"], result["attacks"]) == (400, 3, 50)
    assert kind["share"] == pytest.approx(0.1666666666666668)
    assert result["low"] == pytest.approx(0.05635072484160894)
    assert result["high"] == pytest.approx(0.2627330257859588)


def test_a_range_covers_all_kinds_of_wrong_answer(home: Path, command: Command) -> None:
    run = independent(home, "1" * 40 + "0" * 60)
    kinds = {"right": (90, 100), "specific": (2, 80), "vague": (26, 80), "blind": (79, 80)}
    status, out, _ = command(
        "judge", "calibrate", run.key, "--labels", other_labels(home / "l.jsonl", **kinds)
    )
    assert status == 0 and "not one number" in out
    assert "specific: caught 78 of 80" in out and "vague: caught 54 of 80" in out
    assert "blind: caught 1 of 80; no bound: no better than chance" in out
    assert "corrected:              0.0 to 100.0" in out


def test_rates_that_contradict_the_run_give_no_bound(home: Path, command: Command) -> None:
    """The judge accepted 19 of 43 right answers, but 80 of 100 answers of the run."""
    run = independent(home, "1" * 80 + "0" * 20)
    file = other_labels(home / "labels.jsonl", right=(19, 43), vague=(0, 30))
    status, out, _ = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 0 and "corrected:              0.0 to 100.0" in out
    assert "no bound: no better than chance, or inconsistent" in out


def test_interval_from_few_labels_contains_its_share(home: Path, command: Command) -> None:
    run = independent(home, "1" * 18 + "0" * 104)
    file = other_labels(home / "labels.jsonl", right=(100, 100), vague=(0, 2))
    out = command("judge", "calibrate", run.key, "--labels", file)[1]
    assert "vague: caught 2 of 2; if all were like this, 14.8 ([0.0, 14.8])" in out


def test_the_corrected_accuracy_is_shown_beside_the_raw_one(home: Path, command: Command) -> None:
    run = independent(home, JUDGED + NOT_LABELLED)
    other = independent(home, JUDGED + NOT_LABELLED[::-1], name="other")
    before = (run.folder / "run.json").read_bytes()
    assert "corrected" not in command("list")[1]
    file = own_labels(home / "labels.jsonl", run, list(LABELS))
    (run.folder / "report.md").write_text("made before", encoding="utf-8")
    stamp_report(run.folder, plots=False)
    assert has_report(run.folder, plots=False)
    assert command("judge", "calibrate", run.key, "--labels", file)[0] == 0
    assert not has_report(run.folder, plots=False)

    shown = "57.4 [31.8, 83.1]"
    assert shown in command("list")[1] and shown in command("show", run.key)[1]
    compared = " ".join(command("compare", run.key, other.key, "--stats")[1].split())
    assert f"corrected for its judge's error: {shown} (PPI++, from 10 labels of" in compared

    # Differences are not corrected, and every format says so.
    assert "based on the raw verdicts, not on corrected accuracies" in compared
    (html,) = home.glob("outputs/comparisons/*/comparison.html")
    assert "based on the raw verdicts" in html.read_text(encoding="utf-8")
    content = json.loads(html.with_suffix(".json").read_text(encoding="utf-8"))
    assert content["verdicts"] == "raw" and shown in content["runs"][0]["corrected"]

    summary = read_shown_summary(run.folder)
    assert shown in comparison_markdown([summary, other.summary]) and shown in report(summary)
    assert "accuracy_corrected_low" in comparison_csv([summary])
    assert cell_data([summary, other.summary])[0].corrected == shown
    page = render(page_data([PageRun.read(run.folder)]))
    assert shown in page and "Corrected for the judge’s error" in page
    assert payload.metrics(summary.metrics)["accuracy_corrected"] == pytest.approx(0.574, abs=1e-3)
    assert any("10 labels of labels.jsonl" in note.text for note in summary.notes)
    assert (run.folder / "run.json").read_bytes() == before


def test_a_calibration_of_other_records_is_not_shown(home: Path, command: Command) -> None:
    run = independent(home, JUDGED + NOT_LABELLED)
    file = own_labels(home / "labels.jsonl", run, list(LABELS))
    assert command("judge", "calibrate", run.key, "--labels", file)[0] == 0
    again = independent(home, NOT_LABELLED + JUDGED)
    assert again.folder == run.folder
    summary = read_shown_summary(run.folder)
    assert "accuracy_corrected" not in summary.metrics
    assert any("about earlier records" in note.text for note in summary.notes)

    path = run.folder / CALIBRATION_FILE
    path.write_text(path.read_text(encoding="utf-8").replace("0.57", "0.97"), encoding="utf-8")
    assert any("it was edited" in note.text for note in read_shown_summary(run.folder).notes)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"label": "maybe"}, "labels.jsonl: line 2: label must be right or wrong, not 'maybe'"),
        ({"question_id": "c9\x1b/q0"}, "line 2: the run has no scored answer to 'c9\\x1b/q0'"),
        ({"question_id": "c0/q0"}, "line 2: 'c0/q0' is labelled twice"),
        ({"answer_id": "0" * 16}, "line 2: the run now has a different answer to 'c1/q0'"),
        ({"label": ""}, "is half done: 1 of 3 rows have no label"),
        ({"run": "0123", "verdict": "right"}, "mixes labels of run"),
        ({"repeat": "x"}, "line 2: repeat must be a number from 0"),
    ],
)
def test_labels_that_do_not_fit_the_run_are_refused(
    home: Path, command: Command, change: dict[str, str], line: str
) -> None:
    run = independent(home, "110")
    rows = [
        {"run": run.key, "question_id": f"c{number}/q0", "label": "right"} for number in range(3)
    ]
    rows[1] |= change
    file = home / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    status, _, err = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 2 and line in err and "Traceback" not in err
    assert not (run.folder / CALIBRATION_FILE).exists()


def test_items_of_a_probe_are_no_labels(home: Path, command: Command) -> None:
    file = shipped_path(ITEMS_FILE)
    run = independent(home, "110")
    status, _, err = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 2 and "is not a file of labels: no row has the field label" in err


def test_partial_labels_are_used_on_request(home: Path, command: Command) -> None:
    run = independent(home, "1101")
    file = own_labels(home / "labels.jsonl", run, ["y", "n", ""])
    status, out, _ = command("judge", "calibrate", run.key, "--labels", file, "--partial")
    assert status == 0 and "2 labels of labels.jsonl (1 row has none)" in out
    words = ("judge", "calibrate", run.key, "--labels", file, "--partial", "--json")
    status, out, _ = command(*words)
    content = json.loads(out)
    assert status == 0 and content["rows_without_label"] == 1

    # The field's name in files of earlier versions.
    content["unlabelled"] = content.pop("rows_without_label")
    assert Calibration.from_json(content).rows_without_label == 1


def test_labels_for_another_judge_are_refused(home: Path, command: Command) -> None:
    run = independent(home, "1101", judge=JudgeIdentity("contains"))
    file = other_labels(home / "labels.jsonl", right=(9, 10), vague=(1, 10))
    status, _, err = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 2 and "line 1: judged by keyword, but the run was judged by contains" in err


@pytest.mark.parametrize("member", ["temperature", "top_p"])
def test_labels_with_other_judge_key_are_refused(home: Path, command: Command, member: str) -> None:
    judge = JudgeIdentity("llm", model="small", request={"temperature": 0.0, "top_p": 1.0})
    run = independent(home, "1101", judge=judge)
    file = other_labels(home / "labels.jsonl", right=(9, 10), vague=(1, 10))
    rows = [json.loads(line) | {"judge": judge.shown} for line in file.read_text().splitlines()]
    for other, status in (
        (judge, 0),
        (structs.replace(judge, request={**judge.request, member: 0.7}), 2),
    ):
        lines = [json.dumps(row | {"judge_key": other.digest}) + "\n" for row in rows]
        file.write_text("".join(lines), encoding="utf-8")
        assert command("judge", "calibrate", run.key, "--labels", file)[0] == status


def test_labels_for_an_unnamed_judge_are_refused(home: Path, command: Command) -> None:
    run = independent(home, "1101")
    file = other_labels(home / "labels.jsonl", right=(9, 10), vague=(1, 10))
    text = file.read_text(encoding="utf-8").replace('"judge": "keyword"', '"judge": ""')
    file.write_text(text, encoding="utf-8")
    status, _, err = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 2 and "line 1: judged by an unnamed judge" in err


def test_labels_of_another_run_use_the_verdicts_of_that_run(home: Path, command: Command) -> None:
    other = independent(home, "1100", name="other")
    run = independent(home, "110")
    file = own_labels(home / "labels.jsonl", other, ["right", "wrong", "wrong", "right"])
    status, out, _ = command("judge", "calibrate", run.key, "--labels", file, "--json")
    result = json.loads(out)
    assert status == 0 and result["method"] == "range"
    assert (result["right_kept"], result["right_labels"]) == (1, 2)
    assert (result["kinds"][0]["caught"], result["kinds"][0]["labels"]) == (1, 2)

    file.write_text(file.read_text(encoding="utf-8") * 2, encoding="utf-8")
    status, _, err = command("judge", "calibrate", run.key, "--labels", file)
    assert status == 2 and "line 5: 'c0/q0' is labelled twice" in err


def test_answers_that_do_not_count_for_the_accuracy_are_not_corrected(home: Path) -> None:
    run = made_run(home / "outputs" / "runs", "own", {"c0/q0": [1.0], "c0/q1": [0.0]})
    counting, other = run.summary.categories
    categories = (counting, replace(other, headline=False))
    answers = scored_answers(Run(run.folder, replace(run.summary, categories=categories)))
    assert [answer.question_id for answer in answers] == ["c0/q0"]


def test_scored_repeats_share_the_weight_of_their_question(home: Path) -> None:
    scores = {"c0/q0": [1.0, None], "c1/q0": [0.0, 0.0]}
    answers = scored_answers(made_run(home / "outputs" / "runs", "own", scores))
    weights = [(answer.question_id, answer.weight) for answer in answers]
    assert weights == [("c0/q0", 1.0), ("c1/q0", 0.5), ("c1/q0", 0.5)]


@pytest.mark.parametrize("start", ["", "\ufeff", "\n"])
@pytest.mark.parametrize(("delimiter", "end"), [(",", "\n"), (";", "\r\n")])
def test_tables_of_labels_are_read_as_spreadsheets_write_them(
    tmp_path: Path, start: str, delimiter: str, end: str
) -> None:
    rows_as_text = ["q0,right,,", ",,,", '"q\n1",,,', "'q2,WRONG,,", "'=q3,right,,"]
    text = start + end.join(["question_id,label,,", *rows_as_text, ""]).replace(",", delimiter)
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8", newline="")
    rows = [(row.question_id, row.label) for row in read_labels(path)]
    # Only an apostrophe before what would be a formula is not part of the id.
    assert rows == [("q0", True), ("q\n1", None), ("'q2", False), ("=q3", True)]


def test_labelling_is_saved_and_resumed(home: Path, command: Command, monkeypatch: Any) -> None:
    scores = {f"c{number % 3}/q{number}": [float(number % 2)] for number in range(30)}
    hostile = {"hypothesis": '=1+1 \x1b[31m, "x"\n[link](http://a.b)'}
    run = made_run(home / "outputs" / "runs", "own", scores, of_records=hostile)
    path = home / "outputs" / "labels" / f"{run.key}.csv"
    assert command("label", run.key, "--n", 10)[0] == 0
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert len(rows) == 10 and "verdict" not in rows[0] and {row["label"] for row in rows} == {""}
    assert rows[0]["answer"].startswith("'=1+1 \\x1b[31m")

    # The second label is on disk when the third is interrupted.
    typed = iter(["y\n", "x\n", "n\n"])

    def read_line() -> str:
        line = next(typed, None)
        if line is None:
            raise KeyboardInterrupt
        return line

    monkeypatch.setattr("sys.stdin.readline", read_line, raising=False)
    status, out, _ = command("label", run.key, "--terminal")
    assert status == 130 and "type y, n, s or q" in out and "\x1b" not in out
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert [row["label"] for row in rows] == ["right", "wrong", *[""] * 8]

    assert command("label", run.key, "--n", 20)[0] == 0
    again = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    given = {row["question_id"]: row["label"] for row in again if row["label"]}
    assert len(again) >= 20
    assert given == {rows[0]["question_id"]: "right", rows[1]["question_id"]: "wrong"}

    filled = path.read_text(encoding="utf-8").replace(",\n", ",right\n")
    path.write_text(filled, encoding="utf-8")
    status, out, err = command("judge", "calibrate", run.key, "--labels", path)
    assert status == 0, err

    other = made_run(home / "outputs" / "runs", "other", scores)
    status, _, err = command("label", other.key, "--out", path)
    assert status == 2 and f"for run '{run.key}', not {other.key}" in err


def test_a_sample_is_stratified_and_the_same_again(home: Path) -> None:
    scores = {f"c{number % 4}/q{number}": [1.0] for number in range(40)}
    answers = scored_answers(made_run(home / "runs", "own", scores))
    sample = draw_sample(answers, 10, by="category", seed=1, run_key="k")
    assert sample == draw_sample(answers, 10, by="category", seed=1, run_key="k")
    assert sample != draw_sample(answers, 10, by="category", seed=2, run_key="k")
    categories = [answer.category for answer in sample]
    assert categories.count("temporal") == categories.count("multi_hop") == 5
    assert allocate({"a": 282, "b": 321, "c": 96, "d": 841}, 100) == {
        "a": 18,
        "b": 21,
        "c": 6,
        "d": 55,
    }


def test_agreement_of_judges_that_differ_once(home: Path, command: Command) -> None:
    columns = zip([1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 1], strict=True)
    keys = []
    for number, column in enumerate(columns):
        digits = "".join(map(str, column))
        judge = {"judge": ["keyword", "contains", "recorded"][number]}
        keys.append(independent(home, digits, name=f"j{number}", params=judge).key)

    status, out, _ = command("judge", "agree", *keys, "--json")
    result = json.loads(out)
    assert status == 0 and result["alpha"] == pytest.approx(1 - 132 / 420)
    status, out, _ = command("judge", "agree", *keys, "--list")
    assert "Krippendorff's α: 0.686" in out and "c3/q0: wrong, wrong, right" in out
    row = next(line.split() for line in out.split("\n") if line.startswith("1 and 3"))
    assert row[3:8] == ["4", "2", "0", "1", "1"]


def test_agree_leaves_out_runs_without_a_verdict(home: Path, command: Command) -> None:
    keys = [
        independent(home, "0011", name="a").key,
        independent(home, "1100", name="b", params={"judge": "contains"}).key,
    ]
    retrieved = independent(home, "0011", name="c", of_records={"status": Status.RETRIEVED}).key
    status, out, err = command("judge", "agree", keys[0], retrieved, keys[1])
    assert status == 0, err
    assert f"left out: 1 run without a verdict ({retrieved})\n" in out
    assert "1 and 2" in out and "1 and 3" not in out

    status, _, err = command("judge", "agree", keys[0], retrieved)
    assert status == 2 and f"needs two runs with verdicts, but these have none: {retrieved}" in err


def test_agreement_of_judges_that_always_differ(home: Path, command: Command) -> None:
    first = independent(home, "0011", name="a")
    second = independent(home, "1100", name="b", params={"judge": "contains"})
    status, out, _ = command("judge", "agree", first.key, second.key, "--json")
    result = json.loads(out)
    assert status == 0 and result["alpha"] == pytest.approx(-0.75)
    (pair,) = result["pairs"]
    assert (pair["first_alone"], pair["second_alone"], pair["count"]) == (2, 2, 4)


def test_agree_needs_answers_in_common(home: Path, command: Command) -> None:
    first = independent(home, "0011", name="a")
    second = independent(home, "1100", name="b", of_records={"hypothesis": "9 May"})
    status, _, err = command("judge", "agree", first.key, second.key)
    assert status == 2 and "no answer was judged in more than one" in err
    other = independent(home, "1", name="c", dataset="demo")
    status, _, err = command("judge", "agree", first.key, other.key)
    assert status == 2 and "different data" in err
    status, _, err = command("judge", "agree", first.key)
    assert status == 2 and "two runs" in err


def test_shipped_items_match_the_demonstration_set() -> None:
    items = read_items(shipped_path(ITEMS_FILE))
    demo = Locomo(shipped_path(ITEMS_FILE).parent / "demo.json", info=DEMO)
    gold = {
        question.question_id: question.gold
        for case in demo.cases()
        for question in case.questions
        if question.answerable
    }
    kinds = {kind: [item for item in items if item.kind == kind] for kind in ("right", "specific")}
    assert len(items) >= 60 and {item.kind for item in items} == {"right", "specific", "vague"}
    assert all(item.question_id in gold for item in items)
    assert not any(item.answer in gold[item.question_id] for item in items)
    assert {item.question_id for item in kinds["right"]} == {
        item.question_id for item in kinds["specific"]
    }
