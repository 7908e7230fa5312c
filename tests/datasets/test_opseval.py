"""OpsEval's adapter on small rows."""

from __future__ import annotations

import random
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import pytest
from opseval_samples import five_g, log, opseval, oracle, wired, write
from sample_records import record, verdict

from memeval.datasets.opseval.groups import groups
from memeval.datasets.opseval.items import OpsEvalItem
from memeval.datasets.opseval.letters import gold_letters, split_choices, without_answer
from memeval.datasets.opseval.memory import without_letters
from memeval.errors import UserError
from memeval.records import ChoiceLabels, EvalCase, EvalQuestion, Label
from memeval.results import Record


def questions(folder: Path, **settings: Any) -> dict[str, EvalQuestion]:
    dataset = opseval(folder, **settings)
    dataset.open()
    return {
        question.question_id: question for case in dataset.cases() for question in case.questions
    }


def test_four_schemas_are_read(tmp_path: Path) -> None:
    found = questions(
        write(
            tmp_path,
            log_analysis=[log(), log(1, question="哪个？\nA. x\nB. y", answer="AB", solution="")],
        )
    )
    repairs = {
        name: (
            question.text,
            question.category,
            question.choices,
            question.right_choices,
            question.multi_select,
            question.gold,
        )
        for name, question in found.items()
    }
    assert repairs == {
        "Wired Network-0": (
            "Which is right, number 0?",
            "wired_network",
            ("one", "two", "three", "four"),
            (1,),
            False,
            ("two",),
        ),
        "5G Communication-0": (
            "哪个是对的 0",
            "5g_communication",
            ("SMF", "AMF"),
            (0,),
            False,
            ("SMF",),
        ),
        "Oracle Database-0": (
            "Which two are true, 0?",
            "oracle_database",
            ("first", "second", "third"),
            (0, 2),
            True,
            ("first", "third"),
        ),
        "Log Analysis-0": ("什么是日志 0？", "log_analysis", (), (), False, ("记录事件的文件。",)),
        "Log Analysis-1": ("哪个？", "log_analysis", ("x", "y"), (0, 1), True, ("x", "y")),
    }
    assert {question.choice_labels for question in found.values()} == {ChoiceLabels.LETTERS}
    assert [(q.facets["kind"], q.facets["language"]) for q in found.values()] == [
        ("single", "en"),
        ("single", "zh"),
        ("multiple", "en"),
        ("free_text", "zh"),
        ("multiple", "zh"),
    ]
    assert all(not question.evidence for question in found.values())


def test_multi_select_follows_the_schema_and_not_the_gold(tmp_path: Path) -> None:
    rows = [wired(0, type=1), wired(1, type=0, answer="A,B")]
    found = questions(write(tmp_path, wired_network=rows, oracle_database=[oracle(answer="A")]))
    assert [found[f"Wired Network-{number}"].multi_select for number in (0, 1)] == [True, False]
    assert found["Oracle Database-0"].multi_select


@pytest.mark.parametrize(
    ("text", "count", "expected"),
    [
        ("C,D,F", 6, (2, 3, 5)),
        ("A, ", 4, (0,)),
        ("ABCD", 4, (0, 1, 2, 3)),
        ("ac", 4, (0, 2)),
        ("A，C", 4, (0, 2)),
        ("A、C。", 4, (0, 2)),
        ("A,D,E,\n", 5, (0, 3, 4)),
        ("4", 4, (3,)),
        ("5", 4, None),
        ("D,E,F", 5, (3, 4)),
        ("E", 4, None),
        ("AA", 4, None),
        ("see above", 4, None),
        ("", 4, None),
    ],
)
def test_gold_letters(text: str, count: int, expected: tuple[int, ...] | None) -> None:
    assert gold_letters(text, count) == expected


@pytest.mark.parametrize(
    ("text", "question", "choices", "odd"),
    [
        ("Which?\nA.  one\nB:  two\nC) three", "Which?", ("one", "two", "three"), 0),
        ('"12. Which?\nA. one\nB. two"', "12. Which?", ("one", "two"), 0),
        ("Which?\nA. one\ntwo lines\nB. two", "Which?", ("one\ntwo lines", "two"), 0),
        ("Which?\nA. one B. two C. three", "Which?", ("one", "two", "three"), 2),
        ("哪个？\nA.死锁 B.排他锁", "哪个？", ("死锁", "排他锁"), 1),
        ("Which is it: A. one B. two", "Which is it:", ("one", "two"), 2),
        ("Which?\nA. one\nB two\nC. three", "Which?", ("one", "two", "three"), 1),
        ("Which?\nA. one\nB. two\nO) three\nD. four", "Which?", ("one", "two", "three", "four"), 1),
        ("(A. one (B. two", "", ("one", "two"), 1),
        (
            "SELECT A.x FROM A\nA. yes WHERE b.y = B.y\nB. no",
            "SELECT A.x FROM A",
            ("yes WHERE b.y = B.y", "no"),
            0,
        ),
    ],
)
def test_choices_inside_a_question_are_split_off(
    text: str, question: str, choices: tuple[str, ...], odd: int
) -> None:
    found = split_choices(text)
    assert found is not None
    assert (found.question, found.choices, len(found.irregularities)) == (question, choices, odd)


@pytest.mark.parametrize("text", ["What is a log?", "A. one", "B. two\nC. three", "A.\nB.\n", ""])
def test_text_without_choices_is_not_split(text: str) -> None:
    assert split_choices(text) is None


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("真或假：x。 \n\n答案：真。", "真或假：x。"),
        ("这个术语是什么？答案是MIB。", "这个术语是什么？"),
        ("是哪个？\n\n答案是：traceroute。", "是哪个？"),
        ("以下哪个答案是正确的？", "以下哪个答案是正确的？"),
        ("选择两个答案。", "选择两个答案。"),
    ],
)
def test_an_answer_in_the_question_is_cut_off(text: str, kept: str) -> None:
    assert without_answer(text) == kept


def test_repairs_are_listed_by_row_and_counted_in_the_notes(tmp_path: Path) -> None:
    folder = write(
        tmp_path,
        wired_network=[
            wired(0, question="是哪个？\n\n答案：二。"),
            wired(1, answer="B "),
            wired(2, answer="X"),
            wired(3, choices=[]),
        ],
        g5_communication=[five_g(0, choices=[], question="5G很快\n", answer="B")],
        oracle_database=[
            oracle(0, answer="A,F"),
            oracle(1, question="Which?\nA. one\nB two(正确答案)"),
            oracle(2, question="Which?"),
        ],
    )
    dataset = opseval(folder)
    dataset.open()
    asked = [question.question_id for case in dataset.cases() for question in case.questions]
    assert asked == [
        "Wired Network-0",
        "Wired Network-1",
        "5G Communication-0",
        "Oracle Database-0",
        "Oracle Database-1",
        "Log Analysis-0",
    ]
    assert list(dataset.repairs()) == [
        "Wired Network-0: cut off: 答案：二。",
        "Wired Network-1: the answer 'B ' read as B",
        "Wired Network-2: left out: the answer 'X' is not one of the 4 choices",
        "Wired Network-3: left out: there are no choices",
        "5G Communication-0: no choices: given A 正确 and B 错误",
        "Oracle Database-0: the answer 'A,F' of 3 choices read as A",
        "Oracle Database-1: labels of choices: B without a mark",
        "Oracle Database-1: a choice is marked as the right one: the mark is cut off",
        "Oracle Database-1: the answer 'A,C' of 2 choices read as A",
        "Oracle Database-2: left out: no choices can be found in the question",
    ]
    assert "rows: 3 of 9: left out: its choices or its gold can't be read" in dataset.notes()


def test_language_topics_and_domains_are_chosen(tmp_path: Path) -> None:
    rows = [
        wired(0),
        wired(1, question="哪个是对的？"),
        wired(2, topic=["Addressing"]),
        wired(3, topic=[]),
    ]
    folder = write(tmp_path, wired_network=rows)
    assert set(questions(folder, language="zh", categories=("wired_network",))) == {
        "Wired Network-1"
    }
    chosen = questions(folder, topics=("Addressing",))
    assert {name: question.facets["topic"] for name, question in chosen.items()} == {
        "Wired Network-2": "Addressing"
    }
    with pytest.raises(UserError, match=r"dataset.topics 'Switch'. Did you mean: Switching"):
        questions(folder, topics=("Switch",))
    with pytest.raises(UserError, match=r"no questions are left after filtering"):
        questions(folder, topics=("Addressing",), language="zh")


def test_closed_book_has_no_memory_and_groups_repeated_items(tmp_path: Path) -> None:
    rows = [wired(0), wired(1), wired(2, question="Which is right, number 0?")]
    cases = list(opseval(write(tmp_path, wired_network=rows)).read())
    assert all(case.sessions == () for case in cases)
    assert [[question.question_id for question in case.questions] for case in cases[:2]] == [
        ["Wired Network-0", "Wired Network-2"],
        ["Wired Network-1"],
    ]
    assert [case.case_id for case in cases] == [f"c{number}" for number in range(1, len(cases) + 1)]


def knowledge(folder: Path, **settings: Any) -> list[EvalCase]:
    dataset = opseval(folder, framing="knowledge", **settings)
    dataset.open()
    return list(dataset.read())


def remembered(case: EvalCase) -> set[str]:
    return {turn.text for session in case.sessions for turn in session.turns}


def test_knowledge_has_all_other_solutions_of_the_same_language(
    tmp_path: Path,
) -> None:
    rows = [wired(number) for number in range(40)]
    rows += [
        wired(40 + number, question=f"哪个是对的 {number}？", solution=f"二是对的 {number}。")
        for number in range(40)
    ]
    cases = knowledge(write(tmp_path, wired_network=rows))
    solutions = {row["id"]: row["solution"] for row in rows}
    language = {row["id"]: "zh" if "哪" in row["question"] else "en" for row in rows}
    asked = [question.question_id for case in cases for question in case.questions]
    assert sorted(asked) == sorted(solutions)
    for case in cases:
        own = {question.question_id for question in case.questions}
        (spoken,) = {language[name] for name in own}
        assert remembered(case) == {
            text for name, text in solutions.items() if name not in own and language[name] == spoken
        }
    assert len(cases) == 10


def test_runbook_framing_includes_the_asked_items_own_solution(tmp_path: Path) -> None:
    rows = [wired(number, topic=[("Switching", "Routing")[number % 2]]) for number in range(20)]
    rows += [wired(20, solution="Option B is right."), wired(21, solution="")]
    folder = write(tmp_path, wired_network=rows)
    dataset = opseval(folder, framing="runbook")
    dataset.open()
    found = list(dataset.read())

    others = {case.case_id: case for case in knowledge(folder)}
    solutions = {row["id"]: row["solution"] for row in rows[:20]}
    solutions["Wired Network-20"] = "Option … is right."
    asked = [question for case in found for question in case.questions]
    assert sorted(question.question_id for question in asked) == sorted(solutions)
    for case in found:
        assert remembered(case) == set(solutions.values())
        turns = {turn.turn_id: turn.text for session in case.sessions for turn in session.turns}
        for question in case.questions:
            (place,) = question.evidence
            assert turns[place] == solutions[question.question_id]

        own = {question.question_id for question in case.questions}
        assert own <= {question.question_id for question in others[case.case_id].questions}
        assert not any(question.evidence for question in others[case.case_id].questions)

    assert (
        "runbook: the solution of each asked item is in memory, and is its evidence; choice "
        "letters are masked in 1 of 21 solutions"
    ) in dataset.notes()


@pytest.mark.parametrize(
    ("solution", "masked"),
    [
        ("Option A is incorrect, answers B and C are not.", "Option … is incorrect, answers … are"),
        ("The correct answer is D.", "The correct answer is …."),
        ("Answer (B) holds.", "Answer (…) holds."),
        ("A: One module\nB. No module", "…: One module\n…. No module"),
        ("选项A、C不正确，答案：B。", "选项…不正确，答案：…。"),
        ("A和C选项不正确", "…选项不正确"),
        ("A router has options. Host B, Class C and answers Ask.", None),
        ("802.11A is an option A-side devices have", None),
    ],
)
def test_choice_letters_in_solutions_are_masked(solution: str, masked: str | None) -> None:
    assert without_letters(solution).startswith(solution if masked is None else masked)


def test_related_items_share_a_fold(tmp_path: Path) -> None:
    words = "RIP EIGRP OSPF BGP VLAN LACP"
    english = wired(0, question=f"Which of {words} is it?", solution=f"{words} are protocols.")
    chinese = wired(1, question=f"{words}中是哪个？", solution=f"{words}是协议。")
    repeated = wired(2, question="Which other?", solution=english["solution"])
    folder = write(
        tmp_path,
        wired_network=[english, chinese, repeated, *(wired(number) for number in range(3, 30))],
    )
    for seed in range(6):
        cases = knowledge(folder, folds=2, fold_seed=seed)
        place = {
            question.question_id: case.case_id for case in cases for question in case.questions
        }
        assert place["Wired Network-0"] == place["Wired Network-2"]
        assert english["solution"] not in remembered(
            next(case for case in cases if case.case_id == place["Wired Network-0"])
        )
    groups = [
        {question.question_id for question in case.questions} for case in opseval(folder).read()
    ]
    assert {"Wired Network-0", "Wired Network-1", "Wired Network-2"} in groups


def test_topics_are_sessions_and_solutions_turns(tmp_path: Path) -> None:
    rows = [
        wired(number, topic=[("Switching", "Routing")[number % 2]] if number < 8 else [])
        for number in range(10)
    ]
    case = knowledge(write(tmp_path, wired_network=rows), folds=4)[0]
    by_topic = {session.turns[0].speaker: session for session in case.sessions}
    assert set(by_topic) == {"Switching", "Routing", "Knowledge"}
    assert all(
        turn.speaker == topic and turn.time is None
        for topic, session in by_topic.items()
        for turn in session.turns
    )
    assert [turn.turn_id for turn in case.sessions[0].turns] == [
        f"s1t{number}" for number in range(1, len(case.sessions[0].turns) + 1)
    ]


def test_domains_without_solutions_are_not_asked_and_named(tmp_path: Path) -> None:
    dataset = opseval(write(tmp_path, wired_network=[wired(0), wired(1)]), framing="knowledge")
    dataset.open()
    assert {question.category for case in dataset.cases() for question in case.questions} == {
        "wired_network"
    }
    assert (
        "knowledge: oracle_database has no solutions: its 1 rows are not asked" in dataset.notes()
    )
    silent = opseval(write(tmp_path, wired_network=[wired(solution="")]), framing="knowledge")
    with pytest.raises(UserError, match=r"no item of .* has a solution"):
        silent.open()


def test_measures_count_sets_overlap_and_unparsed_choices() -> None:
    def choosing(chosen: list[int] | None, right: list[int], kind: str) -> Record:
        if chosen is None:
            read = verdict(Label.UNSCORED)
        else:
            read = verdict(Label.CORRECT if chosen == right else Label.WRONG, chosen=tuple(chosen))
        return record(
            choices=("a", "b", "c", "a"),
            right_choices=tuple(right),
            verdict=read,
            facets={"kind": kind},
        )

    records = [
        choosing([0], [0], "single"),
        choosing([1], [0], "single"),
        choosing([0, 1], [0, 2], "multiple"),
        choosing([3], [0], "single"),
        choosing(None, [0], "multiple"),
        record(facets={"kind": "free_text"}),
        record(facets={"kind": "single"}, choices=("a",), right_choices=(0,), verdict=None),
    ]
    assert opseval(Path("/nowhere")).measures(records) == {
        "exact_set_accuracy": 0.5,
        "jaccard": pytest.approx((1 + 0 + 1 / 3 + 1) / 4),
        "jaccard/multiple": pytest.approx(1 / 3),
        "unparsed_rate": 0.2,
    }
    assert set(opseval(Path("/nowhere")).measures([]).values()) == {None}


def test_first_of_two_equally_similar_items_is_the_twin() -> None:
    """Summing over a set of strings would give another result in some processes."""
    words = [f"port{number}" for number in range(60)]
    shuffled = random.Random(3)
    english, chinese = [], []
    for number in range(40):
        choices = tuple("abcdefghijkl"[: 2 + number // 4])
        own = shuffled.sample(words, 20)
        english.append(_item(f"en{number}", " ".join(own), choices, number % 4))
        for copy in ("first", "second"):
            shuffled.shuffle(own)
            question = f"{'哪个端口' * 10} {' '.join(own)} {'？' * len(copy)}"
            chinese.append(_item(f"zh{number}-{copy}", question, choices, number % 4))

    items = [*english, *chinese]
    twins = [
        items[position].row_id
        for group in groups(items)
        for position in group
        if len(group) > 1 and position >= len(english)
    ]
    assert twins == [f"zh{number}-first" for number in range(40)]


def _item(row_id: str, question: str, choices: tuple[str, ...], right: int) -> OpsEvalItem:
    return OpsEvalItem(
        row_id=row_id,
        domain="wired_network",
        question=question,
        choices=choices,
        right=(right,),
        multi_select=False,
        gold=(),
        solution=f"solution of {row_id}",
    )


def test_items_whose_words_differ_are_no_twins() -> None:
    words = [f"port{number}" for number in range(200)]
    english = _item("en", " ".join(words[:21]), ("a", "b"), 0)
    chinese = _item("zh", f"{'哪个端口' * 4} {' '.join(words[20:])}", ("a", "b"), 0)
    assert [item.language for item in (english, chinese)] == ["en", "zh"]
    assert groups([english, chinese]) == [[0], [1]]


def test_an_english_item_may_name_something_in_chinese() -> None:
    assert _item("en", f"What is {'a' * 99}口?", ("a", "b"), 0).language == "en"
    assert _item("zh", f"{'a' * 97}口", ("a", "b"), 0).language == "zh"


def test_letter_after_z_is_not_searched_for_as_a_pattern() -> None:
    """The 26th choice is misspelt, so that the one after it would confirm it."""
    lines = [f"{letter}. choice {letter}" for letter in ascii_uppercase[:25]]
    read = split_choices("\n".join(["Which?", *lines, "Q. the last"]))
    assert read is not None and len(read.choices) == 25
