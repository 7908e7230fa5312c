"""The worked example through run folders, and what is never compared in silence."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from made_runs import example, made_record, made_run

from memeval.compare import Comparison, FinishedRun, compare_runs, metric_named
from memeval.compare.files import comparison_markdown, comparison_tex, differences_csv
from memeval.compare.metric import POINTS
from memeval.compare.scores import ScoreReader
from memeval.compare.tables import WIDTH, comparison_text, short_text
from memeval.compare.words import could_show, refusal_lines
from memeval.errors import UserError
from memeval.llm.prices import total_cost_usd
from memeval.records import Role, Usage
from memeval.results import RECORDS_FILE, StepTimes


@pytest.fixture
def cells(tmp_path: Path) -> list[FinishedRun]:
    """B, the baseline, A and C."""
    return [made_run(tmp_path, name, example(name)) for name in ("B", "A", "C")]


def compared(runs: list[FinishedRun], metric: str = "accuracy", **options: Any) -> Comparison:
    return compare_runs(runs, metric_named(metric), **options)


def test_the_worked_example(cells: list[FinishedRun]) -> None:
    comparison = compared(cells)
    a_b, c_b = comparison.differences
    assert (a_b.result.mean, a_b.result.se, a_b.p) == (0.25, 0.0, 0.0625)
    assert a_b.result.independent_se == pytest.approx(0.09933992677987827)
    assert a_b.result.half_width is None and a_b.result.mde_from_independent
    assert (a_b.first_alone, a_b.second_alone, a_b.mcnemar_p) == (5, 0, 0.0625)
    assert c_b.result.low == pytest.approx(-0.059712658420891906)
    assert (c_b.first_alone, c_b.second_alone, c_b.mcnemar_p) == (5, 1, 0.21875)
    assert (c_b.p, c_b.adjusted_p) == (0.25, 0.25)
    assert [case.mean for case in c_b.cases] == [0.25, 0.0, 0.0, 0.25, 0.5]
    assert {run.letters for run in comparison.runs} == {"a"}
    assert not comparison.refusals and not comparison.forced


def test_all_pairs_share_their_flips(cells: list[FinishedRun]) -> None:
    comparison = compared([cells[1], cells[0], cells[2]], all_pairs=True)
    pairs = {(pair.first, pair.second): pair for pair in comparison.differences}
    assert len(pairs) == 3 and comparison.baseline is None
    a_c = pairs[cells[1].key, cells[2].key]
    assert a_c.result.mean == pytest.approx(0.05)
    assert (a_c.p, a_c.adjusted_p) == (1.0, 1.0)
    assert "A − B" in comparison_text(comparison)


def test_repeats_are_averaged_before_questions_are_paired(tmp_path: Path) -> None:
    first = made_run(tmp_path, "A", {"c0/q0": [1, 0], "c0/q1": [1, 1], "c1/q0": [0, None]})
    second = made_run(tmp_path, "B", {"c0/q0": [0, 0], "c0/q1": [1, 0], "c1/q0": [0, 1]})
    (difference,) = compared([second, first]).differences
    assert difference.result.mean == pytest.approx((0.5 + 0.5 - 0.5) / 3)
    assert difference.first_alone is None and difference.mcnemar_p is None
    run = compared([second, first]).run(first.key)
    assert run.repeats == 2 and run.rerun_std == pytest.approx(abs(2 / 3 - 1 / 2) / 2**0.5)


def test_only_common_questions_count_and_the_others_are_named(tmp_path: Path) -> None:
    first = made_run(tmp_path, "A", {"c0/q0": [1], "c0/q1": [1], "c1/q0": [1], "c1/q1": [None]})
    second = made_run(tmp_path, "B", {"c0/q0": [0], "c0/q1": [None], "c1/q0": [1], "c1/q1": [1]})
    comparison = compared([second, first])
    (difference,) = comparison.differences
    assert (difference.result.count, difference.only_first, difference.only_second) == (2, 1, 1)
    assert "2 questions in common, 1 only in A, 1 only in B" in comparison_text(comparison)


REFUSED = [
    ({"tags": {"data_sha256": "0badf00d"}}, "data", "other data: sha256 0badf00d, 79fa87e9"),
    ({"params": {"dataset.labels": "corrected"}}, "labels", "other labels: corrected, original"),
    ({"of_records": {"gold": ("9 May",)}}, "labels", "20 questions have another gold answer"),
    ({"params": {"judge": "contains"}}, "judge", "other judge: contains, keyword"),
    (
        {"params": {"judge.scoring": "v1"}},
        "judge",
        "other judge: keyword (scoring=v1), keyword",
    ),
    ({"params": {"judge.threshold": 0.7}}, "judge", "keyword (threshold=0.7)"),
    (
        {"tags": {"judge_prompt_sha256": "ab" * 32}, "params": {"llm.judge.model": "gpt-4o"}},
        "judge",
        "keyword (gpt-4o, prompt abababab)",
    ),
    ({"metrics": {"coverage": 0.98}}, "coverage", "coverage of A"),
    ({"metrics": {}}, "coverage", "is not known, below 99.0 %"),
    ({"dataset": "demo"}, "dataset", "other data set: demo, locomo"),
]


@pytest.mark.parametrize(("judge", "hinted"), [({}, True), ({"llm.judge.model": "small"}, False)])
def test_answers_that_their_own_model_judged_name_the_way_out(
    tmp_path: Path, judge: dict[str, Any], hinted: bool
) -> None:
    tags = {"judge_prompt_sha256": "ab" * 32}
    runs = [
        made_run(tmp_path, "A", example("A"), tags=tags, params={"llm.model": "small"}),
        made_run(tmp_path, "B", example("B"), tags=tags, params={"llm.model": "large", **judge}),
    ]
    comparison = compared(runs)
    told = " ".join(refusal_lines(comparison))
    assert ("set llm.judge.model for both" in told) is hinted


@pytest.mark.parametrize(("changes", "kind", "text"), REFUSED)
def test_never_compared_in_silence(
    tmp_path: Path, changes: dict[str, Any], kind: str, text: str
) -> None:
    runs = [
        made_run(tmp_path, "B", example("B")),
        made_run(tmp_path, "A", example("A"), **changes),
    ]
    comparison = compared(runs)
    assert not comparison.differences
    (refusal,) = comparison.refusals
    assert refusal.kinds == (kind,)
    assert text in " ".join(refusal_lines(comparison))

    forced = compared(runs, force=True)
    assert len(forced.differences) == 1 and not forced.refusals
    shown = [
        comparison_text(forced),
        comparison_markdown(forced),
        comparison_tex(forced),
        differences_csv([forced]),
    ]
    for table in shown:
        assert "FORCED, not comparable" in table or text.split(":", maxsplit=1)[0] in table
    assert json.dumps(forced.to_json()["forced"]).count(kind if kind != "dataset" else "data set")


def test_other_questions_are_refused_and_forced_on_those_in_common(tmp_path: Path) -> None:
    fewer = {name: value for name, value in example("A").items() if "conv-0" not in name}
    runs = [made_run(tmp_path, "B", example("B")), made_run(tmp_path, "A", fewer)]
    comparison = compared(runs)
    assert comparison.refusals[0].reasons == ("other questions: 16 and 20, 16 in common",)
    (difference,) = compared(runs, force=True).differences
    assert difference.result.groups == 4


def test_another_judge_does_not_matter_to_a_metric_that_is_not_the_judges(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "B", example("B")),
        made_run(tmp_path, "A", example("A"), params={"judge": "contains"}),
    ]
    (difference,) = compared(runs, "f1").differences
    assert difference.result.mean == 0.25


def test_one_question_in_common_is_refused_whatever_is_forced(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "A", {"c0/q0": [1]}), made_run(tmp_path, "B", {"c0/q0": [0]})]
    comparison = compared(runs, force=True)
    assert not comparison.differences
    assert comparison.refusals[0].reasons == ("one question in common has a value in both",)


def test_one_conversation_has_no_interval_and_says_so(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "A", {"c0/q0": [1], "c0/q1": [0]}),
        made_run(tmp_path, "B", {"c0/q0": [0], "c0/q1": [0]}),
    ]
    comparison = compared(runs)
    (difference,) = comparison.differences
    assert difference.p is difference.adjusted_p is difference.result.half_width is None
    text = " ".join(comparison_text(comparison).split())
    assert "without an interval or a p: all 2 questions are of one conversation" in text
    assert "± 0" not in text


def strong(cases: int, right: int) -> dict[str, list[float]]:
    """`right` of 8 questions right in each conversation, one more in every second one."""
    scores = {}
    for case in range(cases):
        for question in range(8):
            scores[f"c{case}/q{question}"] = [float(question < right + case % 2)]

    return scores


def test_no_data_could_have_shown_more_than_a_hundred_points() -> None:
    assert could_show(0.435, POINTS) == "could have shown 43.5"
    assert could_show(1.94, POINTS) == "can't show any difference"
    assert could_show(194, "ms") == "could have shown 194"


def test_the_words(tmp_path: Path, cells: list[FinishedRun]) -> None:
    runs = [
        made_run(tmp_path, "weak", strong(10, 2)),
        made_run(tmp_path, "good", {**strong(10, 4), "c0/q7": [1.0]}),
        made_run(tmp_path, "same", strong(10, 2)),
    ]
    text = " ".join(comparison_text(compared(runs)).split())
    assert "good is higher than weak by 26.2 ± 2.8 points (p .002, adjusted .002)." in text
    assert "same and weak have the same value on every question." in text

    text = " ".join(comparison_text(compared(cells)).split())
    assert "C and B can't be told apart: +20.0 ± 26.0 (p .250, adjusted .250);" in text
    assert "this data could have shown 43.5." in text
    few = "With 5 conversations no p is below .062: nothing can be shown."
    assert few in text and few in short_text(compared(cells), 1)
    assert "A and B can't be told apart: +25.0 (p .062, adjusted .062)" in text
    assert "± 0.0" not in text
    assert "few conversations that agree do not prove certainty" in text


def test_letters_tell_good_from_weak(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "weak", strong(10, 2)), made_run(tmp_path, "good", strong(10, 4))]
    assert [run.letters for run in compared(runs).runs] == ["b", "a"]


def test_everything_fits_into_80_columns(tmp_path: Path) -> None:
    names = ["a_system_with_a_very_long_name_that_goes_on", "another_one", "x" * 70]
    runs = [made_run(tmp_path, name, strong(10, 2 + rank)) for rank, name in enumerate(names)]
    for comparison in (compared(runs), compared(runs, all_pairs=True)):
        for text in (comparison_text(comparison), short_text(comparison, 1)):
            assert max(map(len, text.split("\n"))) <= WIDTH, text


def test_a_run_that_was_not_judged_has_no_judge(tmp_path: Path) -> None:
    unjudged = made_run(tmp_path, "B", example("B"), params={"judge": ""})
    (line,) = refusal_lines(compared([unjudged, made_run(tmp_path, "A", example("A"))]))
    assert "other judge: keyword, none" in line


def test_what_another_program_spent_is_not_known(tmp_path: Path) -> None:
    usage = Usage(Role.JUDGE, "gpt-4o-mini", "openai", 100, 10)
    tags = {"imported": "true"}
    scores = strong(10, 2)
    runs = [
        made_run(tmp_path, name, scores, tags=tags, of_records={"usage": (usage,)})
        for name in ("one", "other")
    ]
    for word in ("cost", "tokens"):
        with pytest.raises(UserError, match="no question of these runs has a value of"):
            compare_runs(runs, metric_named(word))


def test_metrics_of_any_kind(tmp_path: Path) -> None:
    usage = Usage(Role.ANSWER, "gpt-4o-mini", "openai", 1000, 100)
    members = {"usage": (usage, usage), "times": StepTimes(answer_ms=250.0)}
    runs = [
        made_run(tmp_path, "B", example("B"), of_records=members),
        made_run(tmp_path, "A", example("A")),
    ]
    price = total_cost_usd([usage, usage], billed=False)
    values = {
        name: dict(compared(runs, name).values[runs[0].key]).get("conv-0/q0")
        for name in ("accuracy", "f1", "score", "recall@5", "cost", "latency", "context", "tokens")
    }
    assert values == {
        "accuracy": 1.0,
        "f1": 1.0,
        "score": 1.0,
        "recall@5": 0.5,
        "cost": price,
        "latency": 250.0,
        "context": 100.0,
        "tokens": 2200.0,
    }
    assert price is not None and price > 0
    with pytest.raises(UserError, match=r"unknown metric 'tokenf1'. Did you mean: token_f1"):
        compared(runs, "tokenf1")


def test_lines_are_read_in_part_as_they_are_read_whole(tmp_path: Path) -> None:
    """The short way and the long way agree, whatever stands in the texts and the facets."""
    odd = {
        "question": 'a "b", "answerable": c, "status": "ok", "metrics": {}',
        "facets": {"status": "ok", "metrics": "x", "answerable": "y", "retrieved": "z"},
        "hypothesis": 'x", "status": "answer_failed", "verdict": null, "metrics": {',
    }
    run = made_run(tmp_path, "A", {**example("A"), "conv-0/q0": [None]}, of_records=odd)
    plain = made_run(tmp_path, "B", {**example("A"), "conv-0/q0": [None]})
    for name in ("accuracy", "token_f1"):
        metric = metric_named(name)
        assert ScoreReader(metric).read(run).values == ScoreReader(metric).read(plain).values
        assert "conv-0/q0" not in ScoreReader(metric).read(run).values


def test_rows_of_an_older_version(tmp_path: Path) -> None:
    """Version 0.1 wrote other members, in another order."""
    runs = [made_run(tmp_path, name, example(name)) for name in ("B", "A")]
    path = runs[1].folder / RECORDS_FILE
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    old = [
        {
            name: row[name]
            for name in ("metrics", "verdict", "status", "category", "gold", "case_id")
        }
        | {"question_id": row["question_id"], "category_name": row["category_name"]}
        for row in rows
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in old), encoding="utf-8")
    (difference,) = compared(runs).differences
    assert (difference.result.mean, difference.p) == (0.25, 0.0625)


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"question_id": 3}', '{"question_id": "a", "gold": 1}']
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    runs = [made_run(tmp_path, name, example(name)) for name in ("B", "A")]
    with (runs[1].folder / RECORDS_FILE).open("a", encoding="utf-8") as file:
        file.write(line + "\n")

    with pytest.raises(UserError, match=r"records\.jsonl, line 21: "):
        compared(runs)


def test_the_json_can_be_embedded(cells: list[FinishedRun]) -> None:
    content = json.loads(json.dumps(compared(cells).to_json(), allow_nan=False))
    assert content["version"] == 1 and content["unit"] == "points"
    questions = content["questions"]
    assert len(questions["id"]) == len(questions["case"]) == len(questions["category"]) == 20
    assert questions["values"][cells[1].key] == [float(digit) for digit in "11101101101111110110"]
    assert content["differences"][0]["result"]["mean"] == 0.25
    assert content["differences"][0]["is_shown"] is False


def test_the_csv_has_a_row_per_difference_and_category(cells: list[FinishedRun]) -> None:
    rows = list(csv.DictReader(io.StringIO(differences_csv([compared(cells)]))))
    assert [row["scope"] for row in rows] == ["all", "multi_hop", "temporal"] * 2
    assert (rows[0]["delta"], rows[0]["p"], rows[0]["low"]) == ("0.25", "0.0625", "")


HOSTILE = "=cmd|' /C calc'!A0 <img src=x> $\\input{/etc/passwd}$ \x1b[31m _x_ % & #"


def test_names_from_outside_do_nothing(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "B", strong(10, 2)),
        made_run(tmp_path, "A", strong(10, 4), params={"system": HOSTILE}),
    ]
    comparison = compared(runs)
    assert "\x1b" not in comparison_text(comparison)
    markdown = comparison_markdown(comparison)
    assert "<img" not in markdown and "\x1b" not in markdown
    table = comparison_tex(comparison).partition(r"\begin{tabular}")[2]
    assert r"\input" not in table and r"\textbackslash{}input" in table
    (row, *_) = csv.DictReader(io.StringIO(differences_csv([comparison])))
    assert row["first"].startswith("'=")


def test_ten_cells_of_1540_questions_take_no_time(tmp_path: Path) -> None:
    """0.14 s of CPU where it was measured; the bound allows for a slower machine."""
    runs = []
    for rank in range(10):
        scores = {
            f"c{number % 10}/q{number}": [float(number % (rank + 2) == 0)] for number in range(1540)
        }
        runs.append(made_run(tmp_path, f"s{rank}", scores))

    compared(runs[:2])  # imports numpy
    started = time.process_time()
    assert len(compared(runs).differences) == 9
    assert time.process_time() - started < 0.6


def test_a_record_for_each_state() -> None:
    """The maker of this module's runs writes what `Record.score` reads."""
    assert [made_record("c/q0", score, 0).score for score in (1.0, 0.0, None)] == [1.0, 0.0, None]
