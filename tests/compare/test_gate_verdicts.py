"""What a gate says of made-up runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from made_runs import Scores, example, made_run

from memeval.compare import FinishedRun, metric_named
from memeval.compare.scores import ScoreReader
from memeval.errors import UserError
from memeval.gate.baseline import Baseline, baseline_of, read_baseline, write_baseline
from memeval.gate.output import gate_junit, gate_markdown, sentence
from memeval.gate.verdict import GateResult, Outcome, Rules, judge_run

ACCURACY = metric_named("accuracy")
NAMED = "conv-0/q0"


def baseline_from(run: FinishedRun, *must_pass: str) -> Baseline:
    return baseline_of(run, ACCURACY, ScoreReader(ACCURACY).read(run), must_pass)


def judged(
    baseline: Baseline, run: FinishedRun, must_pass: Sequence[str] = (), **rules: float
) -> GateResult:
    scores = ScoreReader(ACCURACY).read(run)
    return judge_run(baseline, run, scores, ACCURACY, rules=Rules(**rules), must_pass=must_pass)


def runs(folder: Path, *names: str) -> list[FinishedRun]:
    return [made_run(folder / name, name, example(name)) for name in names]


def all_wrong(folder: Path) -> FinishedRun:
    return made_run(folder / "none", "none", {name: [0.0] for name in example("A")})


def test_a_loss_beyond_its_interval_is_worse(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    result = judged(baseline_from(good), all_wrong(tmp_path))
    # Sums -3 -3 -3 -4 -2 over 20 questions: SE = sqrt(5/4 · 2) / 20.
    assert (result.outcome, result.status) == (Outcome.WORSE, 1)
    reach = 2.7764451051977987 * (5 / 2) ** 0.5 / 20
    assert result.change is not None and not result.change.from_questions
    assert (result.change.low, result.change.high) == pytest.approx((-0.75 - reach, -0.75 + reach))
    assert (result.before, result.now) == pytest.approx((0.75, 0.0))
    assert result.p == pytest.approx(0.0625)
    assert len(result.lost) == 15 and result.gained == ()
    within = judged(baseline_from(good), all_wrong(tmp_path), margin=0.8)
    assert (within.outcome, within.status) == (Outcome.INCONCLUSIVE, 0)
    told = sentence(within, ACCURACY, Rules(margin=0.8))
    assert "which does not prove equality: the loss is within --margin" in told


def test_conversations_that_agree_are_no_proof_of_certainty(tmp_path: Path) -> None:
    good, bad = runs(tmp_path, "A", "B")
    result = judged(baseline_from(good), bad)
    # B - A: -.25 in each conversation. The clustered error is 0; that of questions is .0993.
    assert (result.outcome, result.status) == (Outcome.INCONCLUSIVE, 0)
    assert result.change is not None and result.change.from_questions
    reach = 2.7764451051977987 * 0.09933992677987827
    assert (result.change.low, result.change.high) == pytest.approx((-0.25 - reach, -0.25 + reach))
    assert "could have shown 36.9 points" in sentence(result, ACCURACY, Rules())


def test_an_interval_around_0_is_inconclusive_and_not_shown_to_be_non_inferior(
    tmp_path: Path,
) -> None:
    a, c = runs(tmp_path, "A", "C")
    baseline = baseline_from(c)
    result = judged(baseline, a)
    # A - C: .05 with the interval of the worked example.
    assert result.change is not None
    assert (result.change.low, result.change.high) == pytest.approx(
        (-0.20971265842089193, 0.3097126584208919)
    )
    assert (result.outcome, result.status) == (Outcome.INCONCLUSIVE, 0)
    assert judged(baseline, a, non_inferior=0.2).outcome is Outcome.INFERIOR
    assert judged(baseline, a, non_inferior=0.2).status == 1
    assert judged(baseline, a, non_inferior=0.21).outcome is Outcome.NON_INFERIOR


def test_the_same_run_is_unchanged_and_a_better_one_better(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    assert judged(baseline_from(good), good).outcome is Outcome.UNCHANGED
    assert judged(baseline_from(all_wrong(tmp_path)), good).outcome is Outcome.BETTER


def test_one_conversation_can_fail_too(tmp_path: Path) -> None:
    right: Scores = {f"conv-0/q{number}": [1.0] for number in range(12)}
    wrong: Scores = {name: [float(name.endswith("q1"))] for name in right}
    good, bad = (made_run(tmp_path / n, n, s) for n, s in (("good", right), ("bad", wrong)))
    result = judged(baseline_from(good), bad)
    assert result.outcome is Outcome.WORSE and result.p is None
    assert result.change is not None and result.change.from_questions


def test_a_named_question_must_pass(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    scores = {**example("A"), NAMED: [0.0]}
    one_less = made_run(tmp_path / "less", "less", scores)
    assert judged(baseline_from(good), one_less).status == 0
    result = judged(baseline_from(good, NAMED), one_less)
    assert (result.outcome, result.status) == (Outcome.MUST_PASS, 1)
    assert judged(baseline_from(good), one_less, [NAMED]).outcome is Outcome.MUST_PASS
    # Named after it was wrong in the baseline, it must be no worse.
    assert judged(baseline_from(one_less, NAMED), one_less).outcome is Outcome.UNCHANGED
    assert judged(baseline_from(good, NAMED), good).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tags": {"data_sha256": "other"}}, "other data: sha256: 79fa87e9"),
        ({"params": {"judge": "llm"}}, "other judge: keyword in the baseline, llm now"),
        ({"params": {"dataset.labels": "corrected"}}, "other labels"),
        ({"dataset": "demo"}, "other data set: locomo in the baseline, demo now"),
        ({"metrics": {"coverage": 0.98}}, "coverage is 98.0 %"),
        ({"valid": False}, "coverage is"),
        ({"tags": {"only": "wrong:abc"}}, "has no score of its own"),
        ({"of_records": {"weight": 2.0}}, "other weights of 20 questions"),
    ],
)
def test_what_is_not_comparable_is_broken(
    tmp_path: Path, changes: Mapping[str, object], reason: str
) -> None:
    (good,) = runs(tmp_path, "A")
    other = made_run(tmp_path / "other", "other", example("A"), **changes)
    result = judged(baseline_from(good), other)
    assert (result.outcome, result.status) == (Outcome.BROKEN, 3)
    assert reason in result.reasons[0]


def test_other_questions_are_broken(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    scores = example("A")
    fewer = made_run(tmp_path / "x", "x", {name: scores[name] for name in list(scores)[1:]})
    result = judged(baseline_from(good, NAMED), fewer)
    assert result.status == 3
    assert result.reasons == (
        "other questions: 20 in the baseline, 19 now, 19 in common",
        f"must pass: '{NAMED}' was not asked",
    )


def test_the_file_is_stable_and_read_back(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    baseline = baseline_from(good, "conv-1/q3", NAMED)
    write_baseline(baseline, tmp_path / "one.json")
    again = read_baseline(tmp_path / "one.json")
    assert again == baseline
    write_baseline(again, tmp_path / "two.json")
    lines = (tmp_path / "one.json").read_text(encoding="utf-8").splitlines()
    assert lines == (tmp_path / "two.json").read_text(encoding="utf-8").splitlines()
    names = [line.split('"')[1] for line in lines if '"case"' in line]
    assert names == sorted(names) and len(names) == 20


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"memeval_baseline": 2}, "memeval_baseline is not 1"),
        ({"questions": []}, "field 'questions'"),
        ({"questions": {NAMED: {"case": "c", "category": "d", "value": 1.5}}}, ".value'"),
        ({"questions": {NAMED: {"case": "c", "category": "d", "value": True}}}, ".value'"),
        ({"questions": {NAMED: {"case": 3, "category": "d", "value": 1}}}, ".case'"),
        ({"questions": {NAMED: {"case": "c", "category": "d", "weight": 0}}}, ".weight'"),
        ({"questions": {NAMED: 1}}, f"'questions.{NAMED}'"),
        ({"must_pass": ["nowhere"]}, "must_pass names 'nowhere'"),
        ({"must_pass": "conv-0/q0"}, "field 'must_pass'"),
        ({"tokens": "many"}, "field 'tokens'"),
        ({"class": "mine:Class"}, "field 'class'"),
        ({"judge": 3}, "field 'judge'"),
    ],
)
def test_a_baseline_is_checked(tmp_path: Path, change: dict[str, object], told: str) -> None:
    (good,) = runs(tmp_path, "A")
    path = tmp_path / "baseline.json"
    write_baseline(baseline_from(good), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(content | change), encoding="utf-8")
    with pytest.raises(UserError, match="is not a baseline") as error:
        read_baseline(path)

    assert told in error.value.message


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1, "a": 2}', "[" * 100_000, "\x00"])
def test_what_is_no_baseline_at_all(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="is not a baseline"):
        read_baseline(path)


def test_hostile_text_is_text_in_every_form(tmp_path: Path) -> None:
    name = "conv-0/<b>\x1b[31m|]]>&"
    scores = {name.replace("conv-0/", f"conv-{case}/q{case}") + "q1": [1.0] for case in range(3)}
    good = made_run(tmp_path / "good", "good", _plain(scores))
    (named, *_) = _plain(scores)
    baseline = baseline_from(good, named)
    result = judged(baseline, good)
    xml = gate_junit(result, ACCURACY, Rules())
    suite = ElementTree.fromstring(xml)
    assert suite.get("tests") == str(len(suite)) and "\x1b" not in xml
    markdown = gate_markdown(result, baseline, good, ACCURACY, Rules())
    assert "\x1b" not in markdown and "<b>" not in markdown


def _plain(scores: Scores) -> Scores:
    """The ids as `made_run` splits them: the number of the question is all that follows `q`."""
    return {
        f"<b>\x1b[31m|]]>&{number}/q{number}": row for number, row in enumerate(scores.values())
    }


def test_junit_has_a_case_per_category_and_must_pass(tmp_path: Path) -> None:
    scores = {name: [float(name == NAMED)] for name in example("A")}
    bad = made_run(tmp_path / "bad", "bad", scores)
    (good,) = runs(tmp_path, "A")
    result = judged(baseline_from(good, NAMED, "conv-0/q1"), bad)
    suite = ElementTree.fromstring(gate_junit(result, ACCURACY, Rules()))
    failed = {case.get("name"): case.find("failure") is not None for case in suite}
    assert list(failed) == [
        "all questions",
        "category multi_hop",
        "category temporal",
        "must pass conv-0/q0",
        "must pass conv-0/q1",
    ]
    assert failed["all questions"] and failed["must pass conv-0/q1"]
    assert not failed["must pass conv-0/q0"]
    assert suite.get("failures") == str(sum(failed.values()))
