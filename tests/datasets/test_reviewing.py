"""Reviews of a user's own questions: what is saved, refused, undone, agreed on and frozen."""

from __future__ import annotations

import errno
import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memeval.cli.data import data
from memeval.cli.review_terminal import next_undecided, question_lines
from memeval.datasets.json import document
from memeval.datasets.json.agreement import review_agreement
from memeval.datasets.json.review import ReviewChange, ReviewFile, StaleError
from memeval.errors import UserError
from memeval.statistics.agreement import cohen_kappa

AT = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)
ACCEPT, REJECT = (
    ReviewChange(decision="accepted", seconds=4),
    ReviewChange(decision="rejected", reason="vague"),
)


def drafted(case_id: str, count: int) -> dict[str, Any]:
    turns = [{"id": f"t{number}", "role": "user", "content": f"n{number}"} for number in range(3)]
    return {
        "case_id": case_id,
        "sessions": [{"turns": turns[:2]}, {"messages": [turns[2], {"role": "a", "content": "b"}]}],
        "questions": [
            {
                "id": f"q{number}",
                "question": f"Which is {number}?",
                "answer": number,
                "category": "update",
                "evidence": ["t1"],
                "status": "drafted",
            }
            for number in range(count)
        ],
    }


def own_file(folder: Path, *cases: dict[str, Any]) -> Path:
    path = folder / "mine.json"
    path.write_text(json.dumps({"name": "mine", "cases": cases}, indent=1), encoding="utf-8")
    return path


def open_for(path: Path, reviewer: str, **options: Any) -> ReviewFile:
    return ReviewFile(path, reviewer, now=lambda: AT, **options)


def written(path: Path, question: int = 0, case: int = 0) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())["cases"][case]["questions"][question]
    return value


def test_change_is_refused_if_the_conversation_changed(tmp_path: Path) -> None:
    path = own_file(tmp_path, drafted("c", 1))
    review = open_for(path, "Ana")
    (shown,) = review.questions()
    longer = drafted("c", 1)
    longer["sessions"][0]["turns"].insert(0, {"id": "t9", "role": "user", "content": "new"})
    own_file(tmp_path, longer)
    change = ReviewChange(evidence=[2])
    with pytest.raises(StaleError):
        review.save(shown.name, shown.version, change)

    (now,) = review.questions()
    review.save(now.name, now.version, change)
    assert written(path)["evidence"] == ["t1"]


def test_failed_write_leaves_the_review_unchanged_and_repeatable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own_file(tmp_path, drafted("c", 1))
    review = open_for(path, "Ana")
    (first,) = review.questions()
    edit = ReviewChange(question="Which one?")

    def fill_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(document, "write_atomically", fill_disk)
        with pytest.raises(UserError, match="can't be written: No space left"):
            review.save(first.name, first.version, edit)

    assert review.questions() == [first]
    saved = review.save(first.name, first.version, edit)
    assert written(path)["question"] == saved.question == "Which one?"

    with monkeypatch.context() as full:
        full.setattr(document, "write_atomically", fill_disk)
        with pytest.raises(UserError, match="can't be written"):
            review.undo()

    assert review.undo() == first
    assert written(path)["question"] == first.question


def test_a_reviewer_sees_when_a_question_is_asked_and_what_was_to_be_forgotten(
    tmp_path: Path,
) -> None:
    case = drafted("c", 2)
    case["sessions"][0]["id"] = "first"
    words = "Please forget n1."
    forget = {"kind": "forget", "after": "first", "words": words, "about": "n1", "values": ["n1"]}
    early, late = case["questions"]
    early |= {"asked_after": "first", "time": "2026-05-01", "choices": ["0", "1"]}
    late |= {"answer": [], "forgotten": ["n1"]}
    path = own_file(tmp_path, {**case, "operations": [forget]})

    first, second = open_for(path, "Ana").questions()
    request = {"requests to the memory": ["after session 1: Please forget n1."]}
    times = {"asked at": ["2026-05-01"], "asked after": ["session 1"]}
    assert first.given == {"choices": ("0", "1"), **request, **times}
    assert second.given == {"forgotten values": ["n1"], **request, "asked after": ["session 2"]}
    shown = "\n".join(question_lines([first, second], 1, open_for(path, "Ana").case(0)))
    assert words in shown and "forgotten values: n1" in shown


def test_decisions_and_edits_are_saved_and_taken_back(tmp_path: Path) -> None:
    path = own_file(tmp_path, drafted("c", 2))
    before = path.read_text()
    review = open_for(path, "Ana")
    first, second = review.questions()
    assert (first.name, first.answers, first.evidence, first.state) == ("c/q0", ("0",), [1], "open")

    saved = review.save(first.name, first.version, ACCEPT)
    assert saved.state == "accepted" and saved.version != first.version
    question = written(path)
    (kept,) = question["reviews"]
    assert question["status"] == "accepted" and question["answer"] == 0
    assert kept.pop("wording")
    assert kept == {
        "reviewer": "Ana",
        "decision": "accepted",
        "at": "2026-05-01T09:30:00Z",
        "seconds": 4,
    }

    # An edit cancels the decision on the earlier wording, but can include a new one.
    edit = ReviewChange(question=" Which? ", answers=["0", "nought\nor so"], evidence=[2, 3])
    edited = review.save(saved.name, saved.version, edit)
    assert (edited.state, written(path)["status"]) == ("changed", "drafted")
    assert written(path)["answer"] == ["0", "nought\nor so"]
    assert written(path)["evidence"] == ["t2", 3]
    again = review.save(edited.name, edited.version, ReviewChange(answers=[], decision="accepted"))
    assert (again.state, again.answers, again.seconds) == ("accepted", (), 4)
    review.save(second.name, second.version, REJECT)
    assert written(path, 1)["status"] == "rejected"
    assert written(path, 1)["reviews"][0]["reason"] == "vague"

    assert data(["check", str(path)]) == 0
    names = [shown.name for shown in iter(review.undo, None)]
    assert names == ["c/q1", "c/q0", "c/q0", "c/q0"]
    assert path.read_text().split() == before.split()


def test_a_stale_save_is_refused_and_loses_nothing(tmp_path: Path) -> None:
    path = own_file(tmp_path, drafted("c", 2))
    one, two, ben = open_for(path, "Ana"), open_for(path, "Ana"), open_for(path, "Ben")
    old = one.questions()[0]
    two.save(old.name, old.version, ReviewChange(question="Edited?"))
    for other in (one, ben):
        with pytest.raises(StaleError) as refused:
            other.save(old.name, old.version, REJECT)

        assert refused.value.shown.question == "Edited?"

    # Neither another question of the file nor another person's decision is a conflict.
    other_question = one.questions()[1]
    one.save(other_question.name, other_question.version, ACCEPT)
    for_ana, for_ben = one.questions()[0].version, ben.questions()[0].version
    one.save(old.name, for_ana, ACCEPT)
    assert ben.questions()[0].version == for_ben
    ben.save(old.name, for_ben, REJECT)
    assert [review["reviewer"] for review in written(path)["reviews"]] == ["Ana", "Ben"]

    # Reviewers can undo only their own changes, and only if the question was not changed since.
    with pytest.raises(StaleError):
        two.undo()

    assert one.undo() is not None
    assert [review["reviewer"] for review in written(path)["reviews"]] == ["Ben"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (ReviewChange(decision="rejected", reason=" "), "needs a reason"),
        (ReviewChange(question=" "), "field 'question' is empty"),
        (ReviewChange(answers=["", "x"]), r"field 'answer\[0\]' is empty"),
        (ReviewChange(evidence=[4]), "evidence '4' is not a turn"),
        (ReviewChange(question="\ud800"), "a lone surrogate"),
    ],
)
def test_invalid_changes_are_refused(tmp_path: Path, change: ReviewChange, message: str) -> None:
    path = own_file(tmp_path, drafted("c", 1))
    before = path.read_bytes()
    review = open_for(path, "Ana")
    (shown,) = review.questions()
    with pytest.raises(UserError, match=message):
        review.save(shown.name, shown.version, change)

    assert path.read_bytes() == before
    assert review.undo() is None and review.questions() == [shown]


def test_question_without_a_status_gets_none_from_an_edit(tmp_path: Path) -> None:
    case = drafted("c", 2)
    del case["questions"][0]["status"]
    case["questions"][1]["status"] = "accepted"
    review = open_for(own_file(tmp_path, case), "Ana")
    first, second = review.questions()
    review.save(first.name, first.version, ReviewChange(evidence=[]))
    assert "status" not in written(review.path)
    review.save(second.name, second.version, ReviewChange(answers=["1"]))
    assert written(review.path, 1) == case["questions"][1]
    review.save(second.name, second.version, REJECT)
    review.undo()
    assert written(review.path, 1) == case["questions"][1]


def test_agreement_is_blind_and_counts_only_current_wordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own_file(tmp_path, *(drafted(name, 4) for name in "abc"))
    ana, ben = open_for(path, "Ana"), open_for(path, "Ben")
    for number, shown in enumerate(ana.questions()):
        ana.save(shown.name, shown.version, REJECT if number % 4 == 0 else ACCEPT)

    assert {shown.state for shown in ben.questions()} == {"open"}
    for number, shown in enumerate(ben.questions()):
        ben.save(shown.name, shown.version, REJECT if number in (0, 4, 5) else ACCEPT)

    (pair,) = review_agreement(json.loads(path.read_text())["cases"]).pairs
    assert (pair.count, pair.differing) == (12, ("b/q1", "c/q0"))
    assert pair.kappa is not None and pair.kappa.value == pytest.approx(5 / 9)
    assert pair.kappa.low is not None and pair.kappa.low < 5 / 9

    cy = open_for(path, "Cy", disputed=True)
    assert [shown.name for shown in cy.questions()] == ["b/q1", "c/q0"]
    assert open_for(path, "Ana", disputed=True).questions() == []
    first, second = cy.questions()
    cy.save(first.name, first.version, REJECT)
    cy.save(second.name, second.version, ReviewChange(question="Other?", decision="accepted"))
    agreement = review_agreement(json.loads(path.read_text())["cases"])
    assert agreement.outdated == 2
    assert [(pair.count, len(pair.differing)) for pair in agreement.pairs] == [
        (11, 1),
        (1, 1),
        (1, 0),
    ]

    assert data(["review", str(path), "--agreement"]) == 0
    output = capsys.readouterr().out
    assert "Ana and Ben: κ 0.74 [-0.34, 1.00], they differ on 1 of 11 questions\n" in output
    assert "Ana and Cy: κ 0.00 without an interval, they differ on 1 of 1 questions\n" in output
    assert "Ben and Cy: κ is not defined" in output and "  b/q1: Ana accepted, Ben reject" in output
    assert "not counted: 2 decisions on earlier wordings" in output

    # Rejected: a/q0, b/q0, b/q1. Two decisions about c/q0 are outdated; Cy accepted its current
    # wording.
    folder = tmp_path / "v1"
    assert data(["freeze", str(path), "--version", "1", "--into", str(folder)]) == 0
    sheet = (folder / "DATASHEET.md").read_text(encoding="utf-8")
    assert "| Left out by the review | 3 rejected |" in sheet
    assert "| Status | accepted 9 |" in sheet and "Ana and Ben: κ 0.74" in sheet
    assert "9 questions" in sheet
    assert data(["diff", str(folder), str(folder)]) == 0


def test_review_on_the_terminal_saves_decisions_and_edits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = drafted("c", 3)
    case["questions"][2]["question"] = "\x1b[2J\u202eWhich?"
    path = own_file(tmp_path, case)
    keys = ["x", "t", "a", "r", "vague"]
    edits = ["e", "Edited?", "7|seven", "0 3", "e", "", "-", "-", "u", "e", "", "", "x"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*keys, *edits, "a", "unread"])))
    words = ["review", str(path), "--reviewer", "Ana", "--terminal"]
    assert data(words) == 0
    output = capsys.readouterr().out
    assert "type one of a(ccept)" in output and "turn 3, a: b" in output
    assert "answer: none; the right answer is a refusal" in output
    assert "'x' is not a list of turns" in output
    assert "\\x1b[2J\\u202eWhich?" in output and "\x1b" not in output
    assert output.endswith("mine.json: Ana has decided 3 of 3 questions\n")
    questions = [written(path, number) for number in range(3)]
    assert [one["status"] for one in questions] == ["accepted", "rejected", "accepted"]
    edited = questions[2]
    assert (edited["question"], edited["answer"]) == ("Edited?", ["7", "seven"])
    assert edited["evidence"] == ["t0", 3]

    monkeypatch.setattr("sys.stdin", io.StringIO("u\nj\nr\n\nk\n"))
    assert data(words) == 0
    output = capsys.readouterr().out
    assert "nothing to undo" in output and "rejected: vague" in output
    assert "a rejected question needs a reason" in output


def test_terminal_continues_at_the_first_question_after_the_last_one(tmp_path: Path) -> None:
    questions = ReviewFile(own_file(tmp_path, drafted("c", 2)), "Ana").questions()
    # The last place is past the end: another program removed a question.
    assert [next_undecided(questions, place) for place in (-1, 0, 1, 2)] == [0, 1, 0, 0]


def test_terminal_refuses_a_decision_on_a_changed_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own_file(tmp_path, drafted("c", 2))

    class Input:
        """Typed keys. Before the second and the third, another program changes the file."""

        keys = iter(["j", "a", "a", "q"])
        changes = iter(["", "Changed?", None, ""])

        def readline(self) -> str:
            change = next(self.changes)
            case = drafted("c", 1 if change is None else 2)
            if change:
                case["questions"][1]["question"] = change
            if change != "":
                own_file(tmp_path, case)

            return next(self.keys) + "\n"

    monkeypatch.setattr("sys.stdin", Input())
    assert data(["review", str(path), "--reviewer", "Ana", "--terminal"]) == 0
    output = capsys.readouterr().out
    assert "not saved: c/q1 was changed elsewhere" in output and "question: Changed?" in output
    assert "not saved: c/q1 is no longer in" in output
    assert output.endswith("Ana has decided 0 of 1 question\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing.json"], "missing.json can't be read: No such file or directory"),
        (["."], "is not a file of dataset=json"),
        (["mine.json", "--reviewer", " "], "--reviewer must be a name"),
        (["mine.json", "--reviewer", "a\nb"], "--reviewer must be a name"),
        (["empty.json", "--disputed", "--reviewer", "Ana"], "has no questions yet"),
        (["empty.json", "--reviewer", "Ana"], "has no questions yet"),
        (["v1"], "is frozen and can't change"),
    ],
)
def test_review_refuses_invalid_files_and_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    case = drafted("c", 1)
    own_file(tmp_path, drafted("d", 0)).rename("empty.json")
    case["questions"][0]["status"] = "accepted"
    own_file(tmp_path, case)
    assert data(["freeze", "mine.json", "--version", "1", "--into", "v1"]) == 0
    with pytest.raises(UserError, match=message):
        data(["review", *words])


def test_disputed_without_a_dispute_asks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = drafted("c", 1)
    case["questions"][0]["status"] = "accepted"
    path = own_file(tmp_path, case)
    assert data(["review", str(path), "--disputed", "--reviewer", "Ana"]) == 0
    assert capsys.readouterr().out == "Reviewers don't disagree on any question.\n"


def test_only_accepted_questions_are_frozen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = own_file(tmp_path, drafted("c", 2))
    with pytest.raises(UserError, match=r"no question of .* was accepted"):
        data(["freeze", str(path), "--version", "1", "--into", str(tmp_path / "v1")])

    review = open_for(path, "Ana")
    for shown in review.questions():
        review.save(shown.name, shown.version, ACCEPT)

    review.undo()
    path.write_text(path.read_text().replace("Which is 0?", "By hand?"))
    assert data(["freeze", str(path), "--version", "1", "--into", str(tmp_path / "v1")]) == 0
    output = capsys.readouterr().out
    assert "Edited since they were accepted: 1 question" in output
    assert "Left out by the review: 1 undecided" in output


def test_kappa_matches_the_textbook() -> None:
    """Fleiss, Levin & Paik, Statistical Methods for Rates and Proportions (2003), table 18.1."""
    table = [[75, 1, 4], [5, 4, 1], [0, 0, 10]]
    cells = [(one, two) for one in range(3) for two in range(3) for _ in range(table[one][two])]
    ones, twos = [one for one, _ in cells], [two for _, two in cells]
    kappa = cohen_kappa(ones, twos, range(100))
    assert kappa is not None and kappa.low is not None and kappa.high is not None
    assert kappa.value == pytest.approx(0.676, abs=5e-4)
    # The book's standard error, 0.087, divides by n, not n - 1. The interval uses t with 99 degrees
    # of freedom.
    assert (kappa.high - kappa.low) / 2 / 1.9842 * 0.99**0.5 == pytest.approx(0.0877, abs=5e-5)

    assert cohen_kappa([1, 1], [1, 1], [0, 1]) is None
    assert cohen_kappa([], [], []) is None
    all_alike = cohen_kappa([1, 0], [1, 0], [0, 1])
    assert all_alike is not None and (all_alike.value, all_alike.low) == (1.0, None)
    # Accepting everything agrees by chance alone, with a spread of 0 up to rounding.
    accepts_all = cohen_kappa(["a"] * 20, ["a"] * 17 + ["r"] * 3, [n % 5 for n in range(20)])
    assert accepts_all is not None and (accepts_all.value, accepts_all.low) == (0.0, None)
    one_case = cohen_kappa(ones, twos, [0] * 100)
    assert one_case is not None and one_case.high is None
