"""The adapter on the official file: every count and oddity that the protocol names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from locomo_samples import locomo

from memeval.datasets.fetch import verify
from memeval.datasets.locomo.adapter import Locomo
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase, EvalQuestion

LOCOMO = DATASETS["locomo"]
LOCOMO_AUDIT = DATASETS["locomo_audit"]

pytestmark = pytest.mark.real_data

COUNTS = """
conv-26 19 419 199 32 37 13 70 47
conv-30 19 369 105 11 26 0 44 24
conv-41 32 663 193 31 27 8 86 41
conv-42 29 629 260 37 40 11 111 61
conv-43 29 680 242 31 26 14 107 64
conv-44 28 675 158 30 24 7 62 35
conv-47 31 689 190 20 34 13 83 40
conv-48 30 681 239 21 42 10 118 48
conv-49 25 509 196 37 33 13 73 40
conv-50 30 568 204 32 32 7 87 46
"""


@pytest.fixture(scope="module")
def path(data_dir: Path) -> Path:
    return data_dir / "locomo/locomo10.json"


@pytest.fixture(scope="module")
def cases(path: Path) -> list[EvalCase]:
    return list(Locomo(path, info=DATASETS["locomo"]).cases())


@pytest.fixture(scope="module")
def questions(cases: list[EvalCase]) -> dict[str, EvalQuestion]:
    return {question.question_id: question for case in cases for question in case.questions}


def test_counts_match_the_published_table(cases: list[EvalCase]) -> None:
    rows = []
    for case in cases:
        categories = Counter(question.category for question in case.questions)
        turns = sum(len(session.turns) for session in case.sessions)
        counts = [
            len(case.sessions),
            turns,
            len(case.questions),
            *(categories[category] for category in (1, 2, 3, 4, 5)),
        ]
        rows.append(" ".join([case.case_id, *map(str, counts)]))
    assert rows == COUNTS.split("\n")[1:-1]


def test_registered_file_is_pinned_and_verified(data_dir: Path, path: Path) -> None:
    opened = Locomo(path, info=DATASETS["locomo"]).open()
    assert (opened.pinned, opened.sha256) == (True, LOCOMO.sha256)
    assert opened.notes == (
        "evidence: 9 of 2815 strings are not turn ids: 6 repaired, 3 dropped",
        "evidence: 4 of 1986 questions have no evidence",
        "category 5: 2 of 446 questions carry an answer, which is ignored: the right answer is a "
        "refusal",
    )
    assert verify(LOCOMO, data_dir).right
    assert verify(LOCOMO_AUDIT, data_dir).right


def test_first_tenth_and_last_question(questions: dict[str, EvalQuestion]) -> None:
    in_order = list(questions.values())
    assert (in_order[0].question_id, in_order[0].gold, in_order[0].evidence) == (
        "conv-26/q0",
        ("7 May 2023",),
        ("D1:3",),
    )
    assert in_order[9].question_id == "conv-26/q9"
    assert in_order[-1].question_id == "conv-50/q203"
    assert in_order[0].text == "When did Caroline go to the LGBTQ support group?"


def test_sessions_are_in_order_of_time(cases: list[EvalCase]) -> None:
    assert [session.session_id for session in cases[0].sessions] == [
        f"s{number}" for number in range(1, 20)
    ]
    backwards = [
        (case.case_id, later.session_id)
        for case in cases
        for earlier, later in zip(case.sessions, case.sessions[1:], strict=False)
        if earlier.started_at and later.started_at and later.started_at < earlier.started_at
    ]
    assert backwards == []


REPAIRED = {
    "conv-26/q37": "D8:6 D9:17",
    "conv-42/q88": "D1:18 D1:20",
    "conv-43/q18": "D1:14 D2:7 D4:7 D5:15 D11:26 D20:21 D26:36",
    "conv-49/q31": "D9:1 D4:4 D4:6",
    "conv-49/q38": "D22:1 D22:2 D9:10 D9:11",
    "conv-49/q46": "D21:18 D21:22 D11:15 D11:19",
    "conv-50/q69": "D30:5",
    "conv-42/q58": "D2:14 D9:12 D9:14 D10:11 D19:17 D27:23",
    "conv-47/q38": "D18:1 D18:7",
}


def test_evidence_is_repaired_as_recorded(questions: dict[str, EvalQuestion]) -> None:
    assert sum(len(question.evidence) for question in questions.values()) == 2820
    assert sum(bool(question.evidence) for question in questions.values()) == 1982
    assert {
        question_id: " ".join(questions[question_id].evidence) for question_id in REPAIRED
    } == REPAIRED
    assert [q.question_id for q in questions.values() if not q.evidence] == [
        "conv-26/q30",
        "conv-26/q46",
        "conv-50/q39",
        "conv-50/q42",
    ]


def test_golds_match_answerability_and_known_values(questions: dict[str, EvalQuestion]) -> None:
    assert all(len(question.gold) == (question.category != 5) for question in questions.values())
    assert sum(not question.answerable for question in questions.values()) == 446
    assert questions["conv-26/q167"].gold == questions["conv-26/q178"].gold == ()
    assert questions["conv-26/q1"].gold == ("2022",)


def test_twelve_questions_occur_twice_in_their_conversation(cases: list[EvalCase]) -> None:
    twice = {
        case.case_id: sum(
            count - 1 for count in Counter(question.text for question in case.questions).values()
        )
        for case in cases
    }
    assert {case: count for case, count in twice.items() if count} == {"conv-30": 1, "conv-48": 11}


def test_captions_can_be_hidden(path: Path, cases: list[EvalCase]) -> None:
    def captions(found: list[EvalCase]) -> int:
        return sum(
            turn.caption is not None
            for case in found
            for session in case.sessions
            for turn in session.turns
        )

    assert captions(cases) == 1226
    assert captions(list(locomo(path, images="none").cases())) == 0


def test_the_edited_copy_is_recognised(path: Path) -> None:
    edited = path.with_name("locomo10_issue27_corrected.json")
    with pytest.raises(
        UserError, match=r"is an edited copy \(issue 27: 26 questions changed, one gone\)"
    ):
        Locomo(edited, info=DATASETS["locomo"]).open()
    allowed = locomo(edited, allow_unpinned=True)
    assert not allowed.open().pinned
    assert sum(len(case.questions) for case in allowed.cases()) == 1985


def test_exclude_drops_the_questions_whose_gold_is_wrong(
    path: Path, questions: dict[str, EvalQuestion]
) -> None:
    kept = {
        q.question_id: q
        for case in locomo(path, labels="exclude", categories=(1, 2, 3, 4)).cases()
        for q in case.questions
    }
    assert len(kept) == 1441
    dropped = Counter(
        q.category for q in questions.values() if q.answerable and q.question_id not in kept
    )
    assert dropped == {1: 28, 2: 26, 3: 9, 4: 36}
    assert all(question == questions[question_id] for question_id, question in kept.items())
    assert sum(len(case.questions) for case in locomo(path, labels="exclude").cases()) == 1441 + 446


def test_corrected_takes_gold_and_evidence_of_the_audit(
    path: Path, questions: dict[str, EvalQuestion]
) -> None:
    corrected = {
        q.question_id: q
        for case in locomo(path, labels="corrected").cases()
        for q in case.questions
    }
    changed = [
        question_id
        for question_id, question in corrected.items()
        if question.gold != questions[question_id].gold
    ]
    assert len(corrected) == 1986
    assert len(changed) == 99
    assert corrected["conv-26/q1"].gold == ("2022",)
    assert corrected["conv-26/q1"].evidence == ("D1:14",)
    assert corrected["conv-47/q31"].gold == ("9 days (July 11 to July 20)",)
    assert corrected["conv-47/q11"].evidence == ()
    assert all(
        q.gold == corrected[i].gold and q.evidence == corrected[i].evidence
        for i, q in questions.items()
        if q.category == 5
    )


def test_missing_or_edited_audit_is_refused(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "locomo10.json"
    copy.write_bytes(path.read_bytes())
    with pytest.raises(UserError) as caught:
        locomo(copy, labels="exclude").open()
    assert str(caught.value) == (
        f"data set 'locomo_audit' is not on this machine: "
        f"{tmp_path / 'locomo_audit_errors.json'} is missing."
    )
    assert caught.value.hints[0] == "get it:      python -m memeval data fetch locomo_audit"
    text = path.with_name("locomo_audit_errors.json").read_text(encoding="utf-8")
    (tmp_path / "locomo_audit_errors.json").write_text(
        text.replace('locomo_0_qa1"', 'locomo_0_qa3"'), encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"'locomo_audit': .* is not the registered file"):
        locomo(copy, labels="exclude").open()
    with pytest.raises(
        UserError, match="record 0: field 'question' is not the question at locomo_0_qa3"
    ):
        locomo(copy, labels="exclude", allow_unpinned=True).open()
    (tmp_path / "locomo_audit_errors.json").write_text(text + "\n", encoding="utf-8")
    assert (
        "labels: the audit file is not the registered one"
        in locomo(copy, labels="exclude", allow_unpinned=True).open().notes
    )


def test_reading_again_reuses_the_sessions(path: Path) -> None:
    dataset = Locomo(path, info=DATASETS["locomo"])
    first, second = list(dataset.cases()), list(dataset.cases())
    assert first == second
    assert all(one.sessions is other.sessions for one, other in zip(first, second, strict=True))
