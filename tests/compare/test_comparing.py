"""The worked example on run folders, and what is never compared silently."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import replace as replace_metric
from pathlib import Path
from typing import Any

import pytest
from made_runs import Scores, example, in_conversations, made_record, made_run
from msgspec import structs
from msgspec.structs import replace

from memeval.cli.comparison import print_words
from memeval.comparison.build import compare_runs, scores_of
from memeval.comparison.files import comparison_markdown, comparison_tex, differences_csv
from memeval.comparison.page import page_content
from memeval.comparison.protocol import reasons_against
from memeval.comparison.records import Comparison
from memeval.comparison.scores import read_scores
from memeval.comparison.sentences import detection_limit, lead_sentences, sentence
from memeval.comparison.tables import WIDTH, align, comparison_text, sentences_text
from memeval.comparison.words import caveats, legend, refusal_lines
from memeval.errors import UserError
from memeval.metrics.metric import MS
from memeval.metrics.registry import metric_named
from memeval.records import Role, Usage
from memeval.results import RECORDS_FILE, RunSummary, StepTimes
from memeval.results.judge import JudgeIdentity
from memeval.results.own_prices import FIGURES_CODE
from memeval.results.prices import total_cost_usd
from memeval.results.run import Run
from memeval.results.steps import AgentStep, StepCall


@pytest.fixture
def cells(tmp_path: Path) -> list[Run]:
    """B, the baseline, A and C."""
    return [made_run(tmp_path, name, example(name)) for name in ("B", "A", "C")]


def compared(runs: list[Run], metric: str = "accuracy", **options: Any) -> Comparison:
    return compare_runs(runs, metric_named(metric), **options)


def test_the_worked_example(cells: list[Run]) -> None:
    comparison = compared(cells)
    a_b, c_b = comparison.differences
    assert (a_b.result.mean, a_b.result.se, a_b.p) == (0.25, 0.0, 0.0625)
    assert a_b.result.independent_se == pytest.approx(0.09933992677987827)
    assert a_b.result.low is a_b.result.high is a_b.result.mde is None
    assert (a_b.first_alone, a_b.second_alone, a_b.mcnemar_p) == (5, 0, 0.0625)
    assert (c_b.first_alone, c_b.second_alone, c_b.mcnemar_p) == (5, 1, 0.21875)
    assert (c_b.p, c_b.adjusted_p) == (0.25, 0.25)
    assert [case.mean for case in c_b.cases] == [0.25, 0.0, 0.0, 0.25, 0.5]
    # With five conversations no difference can be shown, so letters would mislead.
    assert {run.letters for run in comparison.runs} == {""}
    assert not comparison.refusals and not comparison.forced


def test_findings_on_several_data_sets_name_them(
    cells: list[Run], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [made_run(tmp_path / "own", name, example(name), dataset="own") for name in "BA"]
    findings = [compared(cells[:2]), compared(own)]
    print_words(findings, ())
    lines = capsys.readouterr().out.splitlines()
    assert [lines[lines.index(name) + 1][:4] for name in ("locomo", "own")] == ["A 75", "A 75"]
    assert "; 20 questions of 5 conversations of own" in comparison_markdown(findings[1])

    print_words(findings[1:], ())
    assert "own" not in capsys.readouterr().out.splitlines()


def test_all_pairs_are_adjusted_together(cells: list[Run]) -> None:
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


def test_only_common_questions_count_and_others_are_counted(tmp_path: Path) -> None:
    first = made_run(tmp_path, "A", {"c0/q0": [1], "c0/q1": [1], "c1/q0": [1], "c1/q1": [None]})
    second = made_run(tmp_path, "B", {"c0/q0": [0], "c0/q1": [None], "c1/q0": [1], "c1/q1": [1]})
    comparison = compared([second, first])
    (difference,) = comparison.differences
    assert (difference.result.count, difference.only_first, difference.only_second) == (2, 1, 1)
    assert "2 questions in common, 1 only in A, 1 only in B" in comparison_text(comparison)
    (lead,) = lead_sentences(comparison)
    assert lead.endswith(" Compared on the questions that both scored, 2 of 3.")


REFUSED = [
    ({"tags": {"data_sha256": "0badf00d"}}, "data", "different data: sha256 0badf00d, 79fa87e9"),
    (
        {"params": {"dataset.labels": "corrected"}},
        "labels",
        "different labels: corrected, original",
    ),
    ({"of_records": {"gold": ("9 May",)}}, "labels", "20 questions have different gold answers"),
    ({"judge": JudgeIdentity("contains")}, "judge", "different judges: contains, keyword"),
    ({"judge": JudgeIdentity("keyword", threshold=0.7)}, "judge", "keyword (threshold=0.7)"),
    ({"metrics": {"coverage": 0.98}}, "coverage", "extractive (41000000) is 98.0 %"),
    ({"metrics": {}}, "coverage", "is not known, below 99.0 %"),
    ({"tags": {"only": "wrong:abc"}}, "only", "asked only wrong:abc, so it has no score"),
    ({"dataset": "demo"}, "dataset", "different data sets: demo, locomo"),
]


MODEL_JUDGE = JudgeIdentity(
    "llm",
    prompt_sha256="ab" * 32,
    model="small",
    address="https://api.openai.com/v1",
    request={"max_tokens": 256, "temperature": 0.0, "seed": True},
    repeats=1,
    fence=True,
)
OTHER_JUDGES: list[tuple[dict[str, Any], str]] = [
    ({"name": "mem0"}, "name llm, mem0"),
    ({"own_class": "mine:Judge@00"}, "own_class null, mine:Judge@00"),
    ({"prompt_sha256": "cd" * 32}, "prompt_sha256 abababab, cdcdcdcd"),
    ({"model": "large"}, "model small, large"),
    ({"address": "http://127.0.0.1:1/v1"}, "address https://api.openai.com/v1, http://127.0.0.1:1"),
    ({"request": {**MODEL_JUDGE.request, "temperature": 0.7}}, "temperature 0.0, 0.7"),
    ({"request": {"max_tokens": 256, "seed": True}}, "temperature 0.0, null"),
    ({"request": {**MODEL_JUDGE.request, "max_tokens": 64}}, "max_tokens 256, 64"),
    ({"request": {**MODEL_JUDGE.request, "seed": False}}, "seed true, false"),
    ({"request": {**MODEL_JUDGE.request, "top_p": 0.5}}, "top_p null, 0.5"),
    ({"request": {**MODEL_JUDGE.request, "reasoning_effort": "low"}}, "reasoning_effort null, low"),
    ({"request": {**MODEL_JUDGE.request, "plugins": {"a": [1]}}}, 'plugins null, {"a": [1]}'),
    ({"reading": "official"}, "reading null, official"),
    ({"repeats": 3}, "repeats 1, 3"),
    ({"threshold": 0.3}, "threshold null, 0.3"),
    ({"fence": False}, "fence true, false"),
    ({"scoring": "v1"}, "scoring null, v1"),
]


@pytest.mark.parametrize(("changes", "difference"), OTHER_JUDGES)
def test_each_part_of_the_judges_key_makes_another_judge(
    tmp_path: Path, changes: dict[str, Any], difference: str
) -> None:
    other = replace(MODEL_JUDGE, **changes)
    made_run(tmp_path, "B", example("B"), judge=other)
    made_run(tmp_path, "A", example("A"), judge=MODEL_JUDGE)
    # Read back from disk, because run.json stores the whole key.
    runs = [Run(folder, RunSummary.read(folder)) for folder in sorted(tmp_path.iterdir())]
    comparison = compare_runs(runs, metric_named("accuracy"), baseline=1)
    assert not comparison.differences and [note.kind for note in comparison.refusals[0].notes] == [
        "judge"
    ]
    assert difference in comparison.refusals[0].reasons[0]
    assert other.digest != MODEL_JUDGE.digest and other.shown != MODEL_JUDGE.shown


@pytest.mark.parametrize("unnamed", [None, JudgeIdentity(""), JudgeIdentity("recorded", model="")])
def test_unnamed_judge_equals_no_judge_not_even_itself(
    tmp_path: Path, unnamed: JudgeIdentity | None
) -> None:
    runs = [made_run(tmp_path, name, example(name), judge=unnamed) for name in "AB"]
    comparison = compared(runs)
    assert not comparison.differences
    assert "an unnamed judge never equals another" in " ".join(refusal_lines(comparison))
    assert compare_runs(runs, metric_named("accuracy"), force=True).differences


def test_a_run_that_only_retrieves_is_not_refused_for_its_judge(tmp_path: Path) -> None:
    unscored: Scores = {name: [None] * len(scores) for name, scores in example("B").items()}
    retrieved = made_run(tmp_path, "B", unscored, judge=None, tags={"stages": "retrieve"})
    (refusal,) = compared([made_run(tmp_path, "A", example("A")), retrieved]).refusals
    assert refusal.reasons == ("no question in common has a value of accuracy in both",)


@pytest.mark.parametrize(("judge", "hinted"), [({}, True), ({"llm.judge.model": "small"}, False)])
def test_different_answering_models_as_judges_give_a_hint(
    tmp_path: Path, judge: dict[str, Any], hinted: bool
) -> None:
    large = replace(MODEL_JUDGE, model="large")
    runs = [
        made_run(tmp_path, "A", example("A"), judge=MODEL_JUDGE),
        made_run(tmp_path, "B", example("B"), judge=large, params=judge),
    ]
    comparison = compared(runs)
    text = " ".join(refusal_lines(comparison))
    assert ("set llm.judge.model for both" in text) is hinted


def test_questions_that_a_run_got_wrong_have_no_comparable_f1(tmp_path: Path) -> None:
    of_wrong = made_run(tmp_path, "B", example("B"), tags={"only": "wrong:abc"})
    (refusal,) = compared([made_run(tmp_path, "A", example("A")), of_wrong], "f1").refusals
    assert [note.kind for note in refusal.notes] == ["only"]


def test_a_run_that_found_nothing_is_not_compared(tmp_path: Path) -> None:
    tags = {"nothing_found": "true"}
    runs = [
        made_run(tmp_path, "B", example("B")),
        made_run(tmp_path, "A", example("A"), tags=tags),
    ]
    comparison = compared(runs)
    assert not comparison.differences
    assert "got any context from its memory" in " ".join(refusal_lines(comparison))
    assert compared(runs, force=True).differences


def test_a_pair_that_is_not_compared_is_shown_within_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = {"nothing_found": "true"}
    runs = [made_run(tmp_path, name, example(name), tags=tags) for name in "BA"]
    shown = io.StringIO()
    shown.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", shown)
    print_words([compared(runs)], [])
    lines = shown.getvalue().splitlines()
    assert lines[0].startswith("not compared: ") and max(map(len, lines)) <= 80


def test_metric_that_is_not_a_share_is_reported_per_question(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, name, strong(10, 2), of_records={"times": StepTimes(answer_ms=ms)})
        for name, ms in (("slow", 1250.0), ("quick", 250.0))
    ]
    text = one_line_of(compared(runs, "latency"))
    assert "quick is lower than slow in latency_ms per question by 1,000 ms" in text


@pytest.mark.parametrize("metric", ("cost", "tokens"))
def test_a_difference_in_calls_says_that_it_is_one_of_answers_and_verdicts(
    tmp_path: Path, metric: str
) -> None:
    runs = []
    for name, size in (("long", 3000), ("short", 1000)):
        usage = Usage(Role.ANSWER, "gpt-4o-mini", "openai", size, 10)
        runs.append(made_run(tmp_path, name, strong(10, 2), of_records={"usage": (usage,)}))

    text = one_line_of(compared(runs, metric))
    assert "short is lower than long in" in text and "per answer and verdict by" in text


def test_counts_of_tools_name_what_they_count(tmp_path: Path) -> None:
    call = StepCall(name="search", arguments="a", result="r", tokens=1)
    runs = [
        made_run(tmp_path, name, strong(10, 2), of_records={"steps": (AgentStep(calls=calls),)})
        for name, calls in (("busy", (call,) * 3), ("idle", (call,)))
    ]
    text = one_line_of(compared(runs, "tool_calls"))
    assert "idle is lower than busy in tool_calls per question by 2 calls" in text
    assert text.startswith("tool_calls, in calls, against busy")


def test_values_of_a_metric_that_is_not_here_are_not_percentages(tmp_path: Path) -> None:
    runs = []
    for name, words in (("long", 12.5), ("short", 3.0)):
        of_records = {"metrics": {"words": words}}
        runs.append(made_run(tmp_path, name, strong(10, 2), of_records=of_records))

    with pytest.raises(UserError, match="words is not a share"):
        compared(runs, "words")


def test_values_whose_squares_overflow_are_refused(tmp_path: Path) -> None:
    runs = []
    for name, words in (("long", 1e160), ("short", -1e160)):
        of_records = {"metrics": {"token_f1": words}}
        runs.append(made_run(tmp_path, name, strong(10, 2), of_records=of_records))

    metric = replace_metric(metric_named("f1"), unit=MS)
    for run in runs:
        with pytest.raises(UserError, match=r"f1 has values beyond 1e\+100"):
            scores_of([run], metric)


def test_common_is_not_flagged_if_all_questions_are_shared(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "B", example("B")), made_run(tmp_path, "A", example("A"))]
    assert not compared(runs, common=True).forced
    fewer = made_run(tmp_path, "C", dict(list(example("C").items())[1:]))
    assert "only the 19 of 20" in compared([runs[0], fewer], common=True).warning


def test_common_questions_of_two_samples_are_refused(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "B", example("B"))]
    runs.append(made_run(tmp_path, "A", example("A"), weights=[1.0, 2.5]))
    (line,) = refusal_lines(compared(runs, common=True))
    assert line.endswith("different weights of 10 questions: a different sample")
    (forced,) = compared(runs, common=True, force=True).differences
    # The weights are those of the run that is compared with the baseline.
    same = [made_run(tmp_path / "same", "B", example("B"), weights=[1.0, 2.5]), runs[1]]
    assert compared(same).differences[0].result == forced.result


def test_a_common_factor_of_the_weights_is_not_another_sample(tmp_path: Path) -> None:
    first, figures = made_run(tmp_path, "A", example("A"), weights=[1.0, 3.0]), set()
    for factor in (1.0, 2.5, 1 / 3):
        second = made_run(tmp_path, "B", example("B"), weights=[factor, 3 * factor])
        for runs in ([first, second], [second, first]):
            (difference,) = compared(runs).differences
            result = difference.result
            figures.add((round(abs(result.mean), 9), round(result.se or 0, 9), difference.p))

    assert len(figures) == 1


def test_runs_whose_replies_named_different_models_say_so(tmp_path: Path) -> None:
    runs = []
    note = Role.ANSWER.models_note
    for name, notes in (
        ("A", {note: ["m-1"]}),
        ("B", {}),
        ("C", {note: ["m-1"]}),
        ("D", {note: []}),
    ):
        of_records = {"usage": (Usage(Role.ANSWER, "m", "openai", 100, 10),), "notes": notes}
        runs.append(made_run(tmp_path, name, example("A"), of_records=of_records))

    # B may have been made before such notes, or its endpoint named the requested model.
    assert caveats(compared(runs)) == [
        "As far as is noted, the replies to answer calls named different models for m: "
        "m-1 in A, C; m or none in B."
    ]
    assert not caveats(compared([runs[0], *runs[2:]]))


def test_a_long_setting_in_a_name_is_broken_after_its_equals_sign() -> None:
    lines = align([["run", "x" * 80], ["demo stages=retrieve", "1"]])
    assert [line.split("  ")[0] for line in lines] == ["run", "demo stages=", "retrieve"]


def test_recorded_verdicts_give_no_hint_to_set_a_judge_model(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, name, example(name), judge=JudgeIdentity("recorded", model=model))
        for name, model in (("A", "small"), ("B", "large"))
    ]
    assert "set llm.judge.model" not in " ".join(refusal_lines(compared(runs)))


@pytest.mark.parametrize(("changes", "kind", "text"), REFUSED)
def test_incomparable_runs_are_refused_or_marked_as_forced(
    tmp_path: Path, changes: dict[str, Any], kind: str, text: str
) -> None:
    runs = [
        made_run(tmp_path, "B", example("B")),
        made_run(tmp_path, "A", example("A"), **changes),
    ]
    comparison = compared(runs)
    assert not comparison.differences
    (refusal,) = comparison.refusals
    assert [note.kind for note in refusal.notes] == [kind]
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


def test_one_question_with_another_gold_is_in_the_singular(tmp_path: Path) -> None:
    first, second = (made_run(tmp_path, name, example(name)) for name in ("A", "B"))
    scores = read_scores(first, metric_named("accuracy"))
    name, question = next(iter(scores.questions.items()))
    changed = {**scores.questions, name: structs.replace(question, gold=("9 May",))}
    others = (second.summary, structs.replace(scores, questions=changed))
    (note,) = reasons_against((first.summary, scores), others, metric_named("accuracy"))
    assert note.text == "different labels: 1 question has different gold answers"


def test_the_page_says_what_was_forced_and_what_was_not_compared(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, name, example(name)) for name in ("B", "A")]
    runs.append(made_run(tmp_path, "C", example("C"), judge=JudgeIdentity("contains")))
    page, forced = (page_content(compared(runs, force=force), 3) for force in (False, True))
    assert page is not None and forced is not None
    (remark,) = page.remarks
    assert remark.startswith("Not compared: C with B: different judges: contains, keyword")
    assert [row.label for row in forced.differences] == ["A", "C"]
    assert forced.remarks[0].startswith("FORCED, not comparable: different judges: contains")
    pairs = page_content(compared(runs, all_pairs=True), 3)
    assert pairs is not None and [row.label for row in pairs.differences] == ["B − A"]


def test_different_questions_are_compared_only_if_forced(tmp_path: Path) -> None:
    fewer = {name: value for name, value in example("A").items() if "conv-0" not in name}
    runs = [made_run(tmp_path, "B", example("B")), made_run(tmp_path, "A", fewer)]
    comparison = compared(runs)
    assert comparison.refusals[0].reasons == ("different questions: 16 and 20, 16 in common",)
    (difference,) = compared(runs, force=True).differences
    assert difference.result.groups == 4


def test_different_judges_do_not_prevent_comparing_f1(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "B", example("B")),
        made_run(tmp_path, "A", example("A"), params={"judge": "contains"}),
    ]
    (difference,) = compared(runs, "f1").differences
    assert difference.result.mean == 0.25


def test_versions_of_data_may_name_their_conversations_differently(cells: list[Run]) -> None:
    path = cells[1].folder / RECORDS_FILE
    path.write_text(path.read_text().replace('"case_id": "c', '"case_id": "renamed '))
    (own, *_), (expected, *_) = compared(cells[1::-1]).differences, compared(cells).differences
    assert own.result.mean == -expected.result.mean
    assert own.p == expected.p


def test_one_common_question_is_refused_even_if_forced(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "A", {"c0/q0": [1]}), made_run(tmp_path, "B", {"c0/q0": [0]})]
    comparison = compared(runs, force=True)
    assert not comparison.differences
    assert comparison.refusals[0].reasons == (
        "one question in common has a value of accuracy in both",
    )


def test_one_conversation_has_no_interval_and_says_so(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "A", {"c0/q0": [1], "c0/q1": [0]}),
        made_run(tmp_path, "B", {"c0/q0": [0], "c0/q1": [0]}),
    ]
    comparison = compared(runs)
    (difference,) = comparison.differences
    assert difference.p is difference.adjusted_p is difference.result.low is None
    text = " ".join(comparison_text(comparison).split())
    assert "1 conversation is too few to show any difference between B and A: −50.0 points." in text


def strong(cases: int, right: int) -> dict[str, list[float]]:
    """Scores with `right` of 8 questions right in each conversation, and one more in every second
    conversation.
    """
    scores = {}
    for case in range(cases):
        for question in range(8):
            scores[f"c{case}/q{question}"] = [float(question < right + case % 2)]

    return scores


def one_line_of(comparison: Comparison) -> str:
    """The text of a comparison without its line breaks."""
    return " ".join(comparison_text(comparison).split())


def test_sentences_for_differences_that_are_shown_and_not_shown(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "weak", strong(10, 2)),
        made_run(tmp_path, "good", {**strong(10, 4), "c0/q7": [1.0]}),
        made_run(tmp_path, "same", strong(10, 2)),
        made_run(tmp_path, "alike", {**strong(10, 2), "c0/q7": [1.0], "c1/q0": [0.0]}),
    ]
    text = one_line_of(compared(runs))
    assert "good is higher than weak by 26.2 points [25.0, 29.2] (p .002, adjusted .002)." in text
    assert "same and weak have the same value on every question." in text
    assert (
        "No difference shown between alike and weak: 0.0 points [−4.2, 4.2]; the smallest "
        "difference this data could reliably detect is 5.9." in text
    )
    assert "±" not in text
    lower = one_line_of(compared([runs[1], runs[0]]))
    assert "weak is lower than good by 26.2 points [25.0, 29.2] (p .002)." in lower
    (first,) = lead_sentences(compared(runs))
    others = "weak 31.2 % · same 31.2 % · alike 31.2 %"
    assert first == f"good 57.5 % is higher than {others}."
    words = sentences_text(compared(runs), 1).split("\n\n")
    assert " ".join(words[0].split()) == first and "by 26.2 points" in words[1]


def test_no_line_ends_between_a_figure_and_its_unit(tmp_path: Path) -> None:
    before = made_run(tmp_path, "weak", strong(10, 2))
    for length in range(1, 30):
        better = made_run(tmp_path, "g" * length, {**strong(10, 4), "c0/q7": [1.0]})
        lines = sentences_text(compared([before, better]), 1).splitlines()
        assert not any(line.strip().startswith("%") or line.endswith("(p") for line in lines)
        assert "\u00a0" not in "".join(lines)


def test_too_few_conversations_are_reported_with_how_many_suffice(cells: list[Run]) -> None:
    text = one_line_of(compared(cells))
    assert (
        "5 conversations are too few to show any difference between C and B: +20.0 points; 10 "
        "would show about 26.0 points." in text
    )
    few = ": no difference shown; 5 conversations are too few, 10 would show about"
    # The whole text before the table at the end of a sweep, and the first on a page.
    (first,) = lead_sentences(compared(cells))
    assert few in first and " ".join(sentences_text(compared(cells), 12).split()) == first


def test_difference_shown_alone_but_not_among_many_says_so(tmp_path: Path) -> None:
    """`better` is better in six of six conversations; the other runs vary far more."""
    base = [4, 4, 4, 4, 4, 4]
    runs = [made_run(tmp_path, "base", in_conversations(base, 12))]
    runs.append(made_run(tmp_path, "better", in_conversations([n + 1 for n in base], 12)))
    swings = [[8, -4, 8, 4, -4, 8], [-4, 8, 8, 8, 4, -4], [8, 8, -4, -4, 8, 4]]
    for number, swing in enumerate(swings):
        right = [n + change for n, change in zip(base, swing, strict=True)]
        runs.append(made_run(tmp_path, f"wild{number}", in_conversations(right, 12)))

    comparison = compared(runs)
    better = comparison.differences[0]
    assert better.p == 0.03125 and not better.is_shown and better.among == 4
    assert better.adjusted_p is not None
    adjusted = f"{better.adjusted_p:.3f}".lstrip("0")
    assert sentence(comparison, better) == (
        "better is higher than base by 8.3 points [8.3, 8.3] on its own (p .031), but not among 4 "
        f"comparisons (adjusted {adjusted})."
    )


def test_difference_between_two_runs_but_not_from_the_baseline_is_named(tmp_path: Path) -> None:
    runs = [
        made_run(tmp_path, "base", in_conversations([3, 8] * 5, 12)),
        made_run(tmp_path, "low", in_conversations([4] * 10, 12)),
        made_run(tmp_path, "high", in_conversations([7] * 10, 12)),
    ]
    comparison = compared(runs)
    assert not any(pair.is_shown for pair in comparison.differences)
    assert lead_sentences(comparison) == [
        "No difference from base 45.8 % is shown for low 33.3 % · high 58.3 %; high is higher than "
        "low."
    ]


def test_all_right_and_all_wrong_are_not_called_equal(tmp_path: Path) -> None:
    """Six conversations show the difference alone, but not next to a run that varies."""
    runs = [
        made_run(tmp_path, "none", in_conversations([0] * 6, 4)),
        made_run(tmp_path, "all", in_conversations([4] * 6, 4)),
        made_run(tmp_path, "some", in_conversations([4, 0, 4, 0, 4, 4], 4)),
    ]
    for pair in compared(runs[:2]).differences:
        assert "different value" not in detection_limit(pair.result, "points")
    text = one_line_of(compared(runs))
    assert "no question has a different value" not in text
    assert "all is higher than none by 100.0 points [100.0, 100.0]" in text
    assert "An interval without width says nothing about other conversations" in text


def test_mde_below_a_difference_that_is_not_shown_is_explained(tmp_path: Path) -> None:
    """+14.3 is not shown, because one of six conversations has no difference. The MDE is smaller
    than that.
    """
    runs = [
        made_run(tmp_path, "B", in_conversations([0] * 6, 100)),
        made_run(tmp_path, "A", in_conversations([17, 17, 18, 17, 17, 0], 100)),
    ]
    comparison = compared(runs)
    (difference,) = comparison.differences
    assert difference.result.mde is not None and not difference.is_shown
    assert difference.result.mde < difference.result.mean
    words = sentence(comparison, difference)
    assert "reliably" not in words and "with 80 % power, but not here" in words


def test_conversation_with_half_of_the_questions_is_named(tmp_path: Path) -> None:
    scores = {**in_conversations([2] * 6), **{f"big/q{n}": [1.0] for n in range(30)}}
    runs = [made_run(tmp_path, name, scores) for name in ("A", "B")]
    said = "big holds half of the questions or more."
    assert said in legend(compared(runs)) and said in sentences_text(compared(runs), 1)
    equal = [made_run(tmp_path, name, strong(8, 2)) for name in "CD"]
    assert "holds half" not in one_line_of(compared(equal))


def test_sentences_come_before_figures(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "weak", strong(10, 2)), made_run(tmp_path, "good", strong(10, 4))]
    text = comparison_text(compared(runs))
    assert text.index("good is higher than weak") < text.index("adj.")


def test_intervals_are_not_written_as_symmetric(tmp_path: Path) -> None:
    """3 of 93 right, one in each conversation, is 3.2 [0.4, 21.6] and not 3.2 ± 0."""
    runs = [made_run(tmp_path, name, in_conversations([1, 1, 1], 31)) for name in ("one", "other")]
    for text in (comparison_text(compared(runs)), comparison_markdown(compared(runs))):
        assert "3.2" in text and "[0.4, 21.6]" in text and "±" not in text


def test_better_run_has_the_earlier_letter(tmp_path: Path) -> None:
    runs = [made_run(tmp_path, "weak", strong(10, 2)), made_run(tmp_path, "good", strong(10, 4))]
    assert [run.letters for run in compared(runs).runs] == ["b", "a"]


def test_letters_and_adjustment_stay_within_comparable_runs(tmp_path: Path) -> None:
    """The same answers under two judges: neither tests nor letters of one depend on the other."""
    makers = {"weak": strong(10, 2), "good": strong(10, 4), "mid": strong(10, 3)}
    ours = [made_run(tmp_path, name, scores) for name, scores in makers.items()]
    theirs = [
        made_run(tmp_path, f"{name}2", scores, judge=JudgeIdentity("contains"))
        for name, scores in makers.items()
    ]
    alone, both = compared(ours, all_pairs=True), compared([*ours, *theirs], all_pairs=True)
    assert both.differences[:3] == alone.differences
    assert [pair.among for pair in both.differences] == [3] * 6
    letters = [run.letters for run in both.runs]
    assert letters[:3] == [run.letters for run in alone.runs]
    # Runs that were not compared never share a letter.
    assert not set("".join(letters[:3])) & set("".join(letters[3:]))

    against = compared([*ours, *theirs])
    assert [run.letters for run in against.runs] == [*letters[:3], "", "", ""]


def test_letters_agree_with_which_differences_are_shown(tmp_path: Path) -> None:
    """Against a baseline, fewer pairs are adjusted together than among all pairs."""
    rights = [[2, 2, 2, 2, 2, 2], [3, 3, 3, 3, 3, 3], [8, 0, 7, 1, 5, 0], [0, 8, 1, 6, 0, 5]]
    runs = [
        made_run(tmp_path, f"cell{number}", in_conversations(right, 12))
        for number, right in enumerate(rights)
    ]
    for comparison in (compared(runs), compared(runs[:2]), compared(runs, all_pairs=True)):
        for pair in comparison.differences:
            first, second = comparison.run(pair.first), comparison.run(pair.second)
            assert bool(set(first.letters) & set(second.letters)) is not pair.is_shown


def test_everything_fits_into_80_columns(tmp_path: Path) -> None:
    names = ["a_system_with_a_very_long_name_that_goes_on", "another_one", "x" * 70]
    runs = [made_run(tmp_path, name, strong(10, 2 + rank)) for rank, name in enumerate(names)]
    for comparison in (compared(runs), compared(runs, all_pairs=True)):
        for text in (comparison_text(comparison), sentences_text(comparison, 1)):
            assert max(map(len, text.split("\n"))) <= WIDTH, text


def test_run_without_verdicts_has_no_judge(tmp_path: Path) -> None:
    unjudged = made_run(tmp_path, "B", example("B"), judge=None)
    (line,) = refusal_lines(compared([unjudged, made_run(tmp_path, "A", example("A"))]))
    assert "different judges: keyword, none" in line


def test_cost_and_tokens_of_imported_answers_are_unknown(tmp_path: Path) -> None:
    usage = Usage(Role.JUDGE, "gpt-4o-mini", "openai", 100, 10)
    tags = {"imported": "true"}
    scores = strong(10, 2)
    runs = [
        made_run(tmp_path, name, scores, tags=tags, of_records={"usage": (usage,)})
        for name in ("one", "other")
    ]
    for word in ("cost", "tokens"):
        with pytest.raises(UserError, match="no question of these runs has a value") as refused:
            compare_runs(runs, metric_named(word))
        assert "questions with choices have an accuracy, and no f1" in refused.value.hints


def test_costs_under_other_prices_are_not_compared(tmp_path: Path) -> None:
    """The table of runs would have one price of a call, and the sentence another."""
    usage = Usage(Role.ANSWER, "gpt-4o-mini", "openai", 1000, 100)
    tags = {FIGURES_CODE: "0badf00d-prices-1234"}
    runs = [
        made_run(tmp_path, name, strong(10, 2), tags=own, of_records={"usage": (usage,)})
        for name, own in (("before", tags), ("after", {}))
    ]
    (refusal,) = compare_runs(runs, metric_named("cost")).refusals
    assert [note.kind for note in refusal.notes] == ["prices"]
    text = refusal.notes[0].text
    assert text.startswith("before ") and "has other prices than those in force" in text
    assert not compare_runs(runs, metric_named("tokens")).refusals

    # The refusal is the same if the model has no price here.
    members = {"usage": (replace(usage, model="own"),)}
    both = [
        made_run(tmp_path, name, strong(10, 2), tags=tags, of_records=members)
        for name in ("first", "second")
    ]
    (refusal,) = compare_runs(both, metric_named("cost")).refusals
    assert "prices" in [note.kind for note in refusal.notes]


def test_metrics_of_every_kind_are_read(tmp_path: Path) -> None:
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
    for name in ("stored_repeated", "coverage"):
        with pytest.raises(UserError, match=f"{name} is a figure of a whole run, and no question"):
            compared(runs, name)


def test_text_that_looks_like_json_members_is_read_as_text(tmp_path: Path) -> None:
    odd = {
        "question": 'a "b", "answerable": c, "status": "ok", "metrics": {}',
        "facets": {"status": "ok", "metrics": "x", "answerable": "y", "retrieved": "z"},
        "hypothesis": 'x", "status": "answer_failed", "verdict": null, "metrics": {',
    }
    run = made_run(tmp_path, "A", {**example("A"), "conv-0/q0": [None]}, of_records=odd)
    plain = made_run(tmp_path, "B", {**example("A"), "conv-0/q0": [None]})
    for name in ("accuracy", "token_f1"):
        metric = metric_named(name)
        assert read_scores(run, metric).values == read_scores(plain, metric).values
        assert "conv-0/q0" not in read_scores(run, metric).values


def test_rows_with_fewer_members_in_another_order_are_read(tmp_path: Path) -> None:
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


def test_json_of_a_comparison_is_complete(cells: list[Run]) -> None:
    content = json.loads(json.dumps(compared(cells).to_json(), allow_nan=False))
    assert content["version"] == 1 and content["unit"] == "points"
    questions = content["questions"]
    assert len(questions["id"]) == len(questions["case"]) == len(questions["category"]) == 20
    assert questions["values"][cells[1].key] == [float(digit) for digit in "11101101101111110110"]
    assert content["differences"][0]["result"]["mean"] == 0.25
    assert content["differences"][0]["is_shown"] is False


def test_the_csv_has_a_row_per_difference_and_category(cells: list[Run]) -> None:
    rows = list(csv.DictReader(io.StringIO(differences_csv([compared(cells)]))))
    assert [row["scope"] for row in rows] == ["all", "multi_hop", "temporal"] * 2
    assert (rows[0]["delta"], rows[0]["p"], rows[0]["low"]) == ("0.25", "0.0625", "")


HOSTILE = "=cmd|' /C calc'!A0 <img src=x> $\\input{/etc/passwd}$ \x1b[31m _x_ % & #"


def test_hostile_names_are_escaped_in_every_format(tmp_path: Path) -> None:
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


def test_made_records_have_the_score_they_were_made_with() -> None:
    """`made_record`, which builds this module's runs, writes what `Record.score` reads."""
    assert [made_record("c/q0", score, 0).score for score in (1.0, 0.0, None)] == [1.0, 0.0, None]
