"""The gate's outcomes for made-up runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import nextafter
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest
from made_runs import Scores, example, in_conversations, made_run

from memeval.api.gating import bless
from memeval.comparison.build import compare_runs
from memeval.comparison.gating.baseline import Baseline, baseline_of, read_baseline, write_baseline
from memeval.comparison.gating.output import Gate
from memeval.comparison.gating.verdict import GateOutcome, GateResult, GateRules, judge_run
from memeval.comparison.scores import read_scores
from memeval.comparison.sentences import sentence as compared_in_words
from memeval.errors import UserError
from memeval.metrics.registry import metric_named
from memeval.results.files import sealed
from memeval.results.judge import JudgeIdentity
from memeval.results.run import Run

ACCURACY = metric_named("accuracy")
NAMED = "conv-0/q0"


def baseline_from(run: Run, *must_pass: str) -> Baseline:
    return baseline_of(run, ACCURACY, read_scores(run, ACCURACY), must_pass)


def judged(
    baseline: Baseline, run: Run, must_pass: Sequence[str] = (), **rules: float
) -> GateResult:
    scores = read_scores(run, ACCURACY)
    return judge_run(baseline, run, scores, ACCURACY, rules=GateRules(**rules), must_pass=must_pass)


def gate_of(baseline: Baseline, run: Run, result: GateResult, **rules: float) -> Gate:
    return Gate(run, baseline, ACCURACY, GateRules(**rules), result)


def runs(folder: Path, *names: str) -> list[Run]:
    return [made_run(folder / name, name, example(name)) for name in names]


def all_wrong(folder: Path) -> Run:
    return made_run(folder / "none", "none", {name: [0.0] for name in example("A")})


def counted(folder: Path, *right: int) -> Run:
    """A run with these numbers of right answers, out of ten in each conversation."""
    return made_run(folder / "_".join(map(str, right)), "cell", in_conversations(right, 10))


def test_loss_whose_interval_excludes_zero_is_worse(tmp_path: Path) -> None:
    good, bad = counted(tmp_path, 5, 5, 7, 5, 5, 8), counted(tmp_path, 0, 1, 1, 2, 3, 1)
    result = judged(baseline_from(good), bad)
    assert (result.outcome, result.status) == (GateOutcome.WORSE, 1)
    # The golden values of S = 5 4 6 3 2 7, n = 10 each, with the sign reversed.
    assert result.change is not None and result.change.p == 0.03125
    assert (result.change.low, result.change.high) == pytest.approx((-0.7, -0.2))
    assert (result.before, result.now) == pytest.approx((35 / 60, 8 / 60))
    worse = "Worse than the baseline: −45.0 [−70.0, −20.0] points of accuracy (p .031)"
    assert worse in gate_of(baseline_from(good), bad, result).sentence
    within = judged(baseline_from(good), bad, margin=0.4525)
    assert (within.outcome, within.status) == (GateOutcome.INCONCLUSIVE, 0)
    sentence = gate_of(baseline_from(good), bad, within, margin=0.4525).sentence
    assert sentence == (
        "A loss is shown, but smaller than the margin 45.25: −45.0 [−70.0, −20.0] points of "
        "accuracy (p .031)."
    )
    assert "reliably" not in sentence


def test_too_few_conversations_are_inconclusive_and_not_non_inferior(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    none = all_wrong(tmp_path)
    result = judged(baseline_from(good), none)
    shown = gate_of(baseline_from(good), none, result).markdown
    assert "now 0.0 %, baseline" in shown and shown.count("too few") == 1
    assert (result.outcome, result.status) == (GateOutcome.INCONCLUSIVE, 0)
    assert result.change is not None and result.change.low is None
    few = "5 conversations are too few to show any difference; 10 would show"
    assert few in gate_of(baseline_from(good), none, result).sentence
    demanded = judged(baseline_from(good), all_wrong(tmp_path), non_inferior=0.2)
    assert (demanded.outcome, demanded.status) == (GateOutcome.INFERIOR, 1)
    # Without any change there is no loss to rule out.
    same = judged(baseline_from(good), good, non_inferior=0.0004)
    assert same.outcome is GateOutcome.NON_INFERIOR
    sentence = gate_of(baseline_from(good), good, same, non_inferior=0.0004).sentence
    assert sentence.startswith("Non-inferior: a loss of 0.04 points is ruled out")


def test_interval_around_zero_is_inconclusive_and_may_be_inferior(
    tmp_path: Path,
) -> None:
    before, after = counted(tmp_path, 5, 5, 5, 5, 5, 5), counted(tmp_path, 6, 4, 5, 7, 3, 5)
    baseline = baseline_from(before)
    result = judged(baseline, after)
    assert (result.outcome, result.status) == (GateOutcome.INCONCLUSIVE, 0)
    assert result.change is not None and result.change.low == pytest.approx(-0.2)
    smallest = "The smallest difference this data could reliably detect is"
    assert smallest in gate_of(baseline, after, result).sentence
    assert judged(baseline, after, non_inferior=0.2).outcome is GateOutcome.INFERIOR
    assert judged(baseline, after, non_inferior=0.2).status == 1
    # Points divided by 100 may be a little more than the same share of questions.
    assert judged(baseline, after, non_inferior=nextafter(0.2, 1)).status == 1
    assert judged(baseline, after, non_inferior=0.21).outcome is GateOutcome.NON_INFERIOR


def test_the_same_run_is_unchanged_and_a_better_one_better(tmp_path: Path) -> None:
    good, bad = counted(tmp_path, 5, 5, 7, 5, 5, 8), counted(tmp_path, 0, 1, 1, 2, 3, 1)
    assert judged(baseline_from(good), good).outcome is GateOutcome.UNCHANGED
    assert judged(baseline_from(bad), good).outcome is GateOutcome.BETTER


def test_an_interval_without_width_is_explained_unless_nothing_changed(tmp_path: Path) -> None:
    before, now = counted(tmp_path, *[4] * 6), counted(tmp_path, *[6] * 6)
    baseline = baseline_from(before)
    better = gate_of(baseline, now, judged(baseline, now)).markdown
    assert "+20.0 [20.0, 20.0]" in better and "without width" in better
    unchanged = gate_of(baseline, before, judged(baseline, before)).markdown
    assert "0.0 [0.0, 0.0]" in unchanged and "without width" not in unchanged


def test_gate_and_compare_agree_on_the_same_two_runs(tmp_path: Path) -> None:
    """For many small made-up pairs: the same interval, p and verdict."""
    draw = Random(4)
    outcomes = set()
    for number in range(60):
        cases = draw.randint(2, 9)
        lift = draw.choice([-3, 0, 0, 3])
        rights = [draw.randint(3, 6) for _ in range(cases)]
        others = [min(max(n + lift + draw.randint(-2, 2), 0), 10) for n in rights]
        before = counted(tmp_path / f"{number}b", *rights)
        now = made_run(tmp_path / f"{number}n", "now", in_conversations(others, 10))
        gate = judged(baseline_from(before), now)
        comparison = compare_runs([before, now], ACCURACY)
        (difference,) = comparison.differences
        assert gate.change is not None and gate.change == difference.result
        outcomes.add(gate.outcome)
        assert (gate.outcome in (GateOutcome.WORSE, GateOutcome.BETTER)) is difference.is_shown
        assert ("is lower" in compared_in_words(comparison, difference)) is (
            gate.outcome is GateOutcome.WORSE
        )

    assert {GateOutcome.WORSE, GateOutcome.BETTER, GateOutcome.INCONCLUSIVE} <= outcomes


def test_must_pass_question_that_gets_worse_fails(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    scores = {**example("A"), NAMED: [0.0]}
    one_less = made_run(tmp_path / "less", "less", scores)
    assert judged(baseline_from(good), one_less).status == 0
    result = judged(baseline_from(good, NAMED), one_less)
    assert (result.outcome, result.status) == (GateOutcome.MUST_PASS, 1)
    assert judged(baseline_from(good), one_less, [NAMED]).outcome is GateOutcome.MUST_PASS
    # A question that was already wrong in the baseline must only be no worse.
    assert judged(baseline_from(one_less, NAMED), one_less).outcome is GateOutcome.UNCHANGED
    assert judged(baseline_from(good, NAMED), good).outcome is GateOutcome.UNCHANGED
    # One without a score in the baseline must be right.
    unscored = made_run(tmp_path / "unscored", "unscored", {**example("A"), NAMED: [None]})
    assert judged(baseline_from(unscored, NAMED), good).outcome is GateOutcome.UNCHANGED
    assert judged(baseline_from(unscored, NAMED), one_less).outcome is GateOutcome.MUST_PASS


def test_bless_refuses_a_run_without_a_must_pass_question(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    other = made_run(tmp_path / "other", "other", {"conv-9/q0": [1.0], "conv-9/q1": [1.0]})
    path = tmp_path / "baseline.json"
    bless(good, path, must_pass=[NAMED])
    with pytest.raises(UserError, match=f"did not ask '{NAMED}'") as refused:
        bless(other, path)

    assert "the baseline does: move that file away" in refused.value.hints[0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tags": {"data_sha256": "other"}}, "different data: sha256: 79fa87e9"),
        (
            {"judge": JudgeIdentity("llm")},
            "different judges: keyword, llm (they differ in name keyword, llm)",
        ),
        ({"judge": None}, "an unnamed judge never equals another"),
        ({"params": {"dataset.labels": "corrected"}}, "different labels"),
        ({"dataset": "demo"}, "different data set: locomo in the baseline, demo now"),
        ({"metrics": {"coverage": 0.98}}, "coverage is 98.0 %"),
        ({"metrics": {"coverage": 1524 / 1540}}, "coverage is 98.9 %, below 99.0 %"),
        (
            {"valid": False, "params": {"min_coverage": 1}},
            "coverage is 100.0 %, below min_coverage=1",
        ),
        ({"tags": {"nothing_found": "true"}}, "no question got any context from the memory"),
        ({"tags": {"only": "wrong:abc"}}, "so it has no score"),
        ({"weights": [1.0, 2.0]}, "different weights of 10 questions"),
    ],
)
def test_incomparable_run_is_broken(
    tmp_path: Path, changes: Mapping[str, object], reason: str
) -> None:
    (good,) = runs(tmp_path, "A")
    other = made_run(tmp_path / "other", "other", example("A"), **changes)
    result = judged(baseline_from(good), other)
    assert (result.outcome, result.status) == (GateOutcome.BROKEN, 3)
    assert reason in result.reasons[0]
    shown = gate_of(baseline_from(good), other, result).markdown
    assert "points of accuracy" not in shown and "Δ" not in shown


def test_a_mean_over_the_questions_that_both_scored_says_so(tmp_path: Path) -> None:
    good = counted(tmp_path, 5, 5, 7, 5, 5, 8)
    scores: Scores = {**in_conversations([5, 5, 7, 5, 5, 8], 10), NAMED: [None]}
    partly = made_run(tmp_path / "partly", "partly", scores)
    baseline = baseline_from(good)
    shown = gate_of(baseline, partly, judged(baseline, partly)).markdown
    assert "now 57.6 %, baseline 57.6 %, on the 59 questions that both scored." in shown


def test_a_run_without_values_is_broken_and_only_recall_blames_top_k(tmp_path: Path) -> None:
    (before,) = runs(tmp_path, "A")
    now = made_run(tmp_path / "now", "now", {name: [None] for name in example("A")})
    assert "no question has a value for accuracy now" in judged(baseline_from(before), now).reasons


def test_run_with_other_questions_is_broken(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    scores = example("A")
    fewer = made_run(tmp_path / "x", "x", {name: scores[name] for name in list(scores)[1:]})
    result = judged(baseline_from(good, NAMED), fewer)
    assert result.status == 3
    assert result.reasons == (
        "different questions: 20 in the baseline, 19 now, 19 in common",
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
    ("change", "message"),
    [
        ({"memeval_baseline": 2}, "memeval_baseline is not 1"),
        ({"questions": []}, "`$.questions`"),
        ({"questions": {NAMED: {"case": "c", "category": "d", "value": 1.5}}}, ".value`"),
        ({"questions": {NAMED: {"case": "c", "category": "d", "value": True}}}, ".value`"),
        ({"questions": {NAMED: {"case": 3, "category": "d", "value": 1}}}, ".case`"),
        (
            {"questions": {NAMED: {"case": "c", "category": "d", "value": 1, "weight": 0}}},
            ".weight`",
        ),
        ({"questions": {NAMED: 1}}, f"`$.questions.{NAMED}`"),
        ({"must_pass": ["nowhere"]}, "must_pass names 'nowhere'"),
        ({"must_pass": "conv-0/q0"}, "`$.must_pass`"),
        ({"tokens": "many"}, "`$.tokens`"),
        ({"class": "mine:Class"}, "unknown field `class`"),
        ({"judge": 3}, "`$.judge`"),
    ],
)
def test_invalid_baseline_is_refused(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    (good,) = runs(tmp_path, "A")
    path = tmp_path / "baseline.json"
    write_baseline(baseline_from(good), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(sealed(content | change)), encoding="utf-8")
    with pytest.raises(UserError, match="is not a baseline") as error:
        read_baseline(path)

    assert message in error.value.message


def test_edited_baseline_is_refused(tmp_path: Path) -> None:
    (good,) = runs(tmp_path, "A")
    path = tmp_path / "baseline.json"
    write_baseline(baseline_from(good), path)
    text = path.read_text(encoding="utf-8")
    assert read_baseline(path).questions
    for old, new in ((": 1.0", ": 0.0"), ('"must_pass": []', '"must_pass": ["conv-0/q0"]')):
        assert old in text
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(UserError, match="was edited"):
            read_baseline(path)

    path.write_text(json.dumps({k: v for k, v in json.loads(text).items() if k != "digest"}))
    with pytest.raises(UserError, match="was edited"):
        read_baseline(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1, "a": 2}', "[" * 100_000, "\x00"])
def test_file_that_is_not_a_baseline_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match="is not a baseline"):
        read_baseline(path)


def test_hostile_text_is_escaped_in_junit_and_markdown(tmp_path: Path) -> None:
    name = "conv-0/<b>\x1b[31m|]]>&"
    scores = {name.replace("conv-0/", f"conv-{case}/q{case}") + "q1": [1.0] for case in range(3)}
    good = made_run(tmp_path / "good", "good", _plain(scores))
    (named, *_) = _plain(scores)
    baseline = baseline_from(good, named)
    result = judged(baseline, good)
    gate = gate_of(baseline, good, result)
    xml = gate.junit
    suite = ElementTree.fromstring(xml)
    assert suite.get("tests") == str(len(suite)) and "\x1b" not in xml
    assert "\x1b" not in gate.markdown and "<b>" not in gate.markdown


def _plain(scores: Scores) -> Scores:
    """The ids as `made_run` splits them: everything after `q` is the question's number."""
    return {
        f"<b>\x1b[31m|]]>&{number}/q{number}": row for number, row in enumerate(scores.values())
    }


def test_junit_has_a_case_per_category_and_must_pass(tmp_path: Path) -> None:
    right = in_conversations([4] * 6)
    bad = made_run(tmp_path / "bad", "bad", {name: [float(name == NAMED)] for name in right})
    good = made_run(tmp_path / "good", "good", right)
    baseline = baseline_from(good, NAMED, "conv-0/q1")
    suite = ElementTree.fromstring(gate_of(baseline, bad, judged(baseline, bad)).junit)
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
    words = ElementTree.tostring(suite, encoding="unicode")
    assert "accuracy 0.0 %, in the baseline 100.0 %" in words
    assert suite.get("failures") == str(sum(failed.values()))
