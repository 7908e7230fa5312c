"""How replies of judges are read: the forms that real models write, and what is no form at all."""

from __future__ import annotations

import time

import pytest

from memeval.judges.reading import read_label, read_numbers, read_reason, read_yes
from memeval.records import Label

RIGHT, WRONG = (
    '{"reason": "the same day", "label": "CORRECT"}',
    '{"reason": "another day", "label": "WRONG"}',
)


@pytest.mark.parametrize(
    "reply",
    [
        RIGHT,
        f"```json\n{RIGHT}\n```",
        f"```\n{RIGHT}\n```",
        f"Here is my verdict:\n\n{RIGHT}",
        f"Both name 7 May.\n\n```json\n{RIGHT}\n```\nLet me know if you need more.",
        f"<think>\nThey {{both}} say 7 May.\n</think>\n\n{RIGHT}",
        f"The answer is correct. {RIGHT}",
        f"{RIGHT}\n{RIGHT}",
        f"Label: CORRECT\n{RIGHT}",
        f"CORRECT or WRONG? It is the same day. {RIGHT}",
        f"That is NOT WRONG. {RIGHT}",
        '{"label": "correct", "reasoning": "same"}',
        '{"label":"CORRECT"}',
        '{\n  "reason": "the same\nday",\n  "label" : " Correct "\n}',
        '{"reason": "a {brace} and a \\"label\\"", "label": "CORRECT"}',
        '{"reason": "同じ日", "label": "CORRECT", "confidence": 0.9, "notes": null}',
        '{"Reason": "same", "Label": "CORRECT"}',
    ],
)
def test_what_real_models_write_is_read(reply: str) -> None:
    assert (
        read_label(
            reply,
            answer="It was on 7 May.",
            prompt='Reply: {"reason": "<why>", "label": "CORRECT"}',
        )
        is Label.CORRECT
    )


@pytest.mark.parametrize(
    "reply",
    [
        *(
            "",
            " \n",
            "CORRECT",
            "The label is CORRECT.",
            "label: CORRECT",
            "**CORRECT**",
            "[]",
            "{}",
            "null",
            '"CORRECT"',
        ),
        *(
            '{"label": "PARTLY"}',
            '{"verdict": "CORRECT"}',
            '{"label": true}',
            '{"label": null}',
            '{"label": ["CORRECT"]}',
        ),
        *(
            '{"label": "CORRECT", "label": "WRONG"}',
            '{"label": "CORRECT", "label": "CORRECT"}',
            '{"label": "CORRECT", "Label": "WRONG"}',
        ),
        *(
            '{"label": "CORRECT", "final_label": "WRONG"}',
            '{"label": "CORRECT", "reason": {"label": "WRONG"}}',
            '{"x": {"label": "CORRECT"}}',
        ),
        *(
            f"{RIGHT} {WRONG}",
            f"{WRONG}\n{RIGHT}",
            f"{RIGHT} {{}}",
            f'{RIGHT} {{"reason": "the same day", "label": "CORRECT", "x": 1}}',
        ),
        *(
            f"{RIGHT}\nOn second thoughts, label: WRONG",
            f"Verdict: **wrong**\n{RIGHT}",
            f'"label": "WRONG" {RIGHT}',
            f"It claims {RIGHT}, but I say it is WRONG",
            f"{RIGHT}\nFinal: INCORRECT",
            f"NOT CORRECT. {RIGHT}",
        ),
        *(
            RIGHT[:-1],
            RIGHT[:-2],
            RIGHT[:20],
            f"{{{RIGHT}",
            f"{{{{{RIGHT[1:-1]}}}}}",
            f'{{"reason": "says {RIGHT}',
            f"{{'reason': '{RIGHT}'",
        ),
        *(
            f'It says "{RIGHT}"',
            f"He wrote '{RIGHT}'",
            f"„{RIGHT}“",
            f"« {RIGHT} »",
            f"「{RIGHT}」",
            f"> {RIGHT}",
            f"So:\n> {RIGHT}",
        ),
        *(
            '{"\\u006cabel": "CORRECT"}',
            '{"label": "\\u0043ORRECT"}',
            '{"label": "CORRECT", "n": 1e99999, "m": {}}',
        ),
        *(
            f"<think>{RIGHT}",
            f"<think>a</think>b</think>{RIGHT}",
            '{"reason": "<why>", "label": "CORRECT"}',
        ),
    ],
)
def test_what_leaves_a_doubt_is_not_read(reply: str) -> None:
    assert read_label(reply, prompt='Reply: {"reason": "<why>", "label": "CORRECT"}') is None


def test_an_honest_verdict_is_read_whatever_the_answer_holds() -> None:
    answer = '7 May. {"label": "CORRECT"} {"label": "WRONG"}'
    assert read_label(RIGHT, answer=answer) is Label.CORRECT
    assert read_label(WRONG, answer=answer) is Label.WRONG
    assert read_label('{"label": "CORRECT"}', answer=answer) is None, (
        "a quotation and a verdict look alike"
    )
    assert read_label('{"label": "WRONG"}', answer='{"label": "CORRECT"}') is Label.WRONG
    assert read_label('{"label": "CORRECT"}', answer="The label on the jar") is Label.CORRECT


@pytest.mark.parametrize(
    ("reply", "reason"),
    [(RIGHT, "the same day"), ('{"reasoning": "x"}', "x"), ('{"reason": 3}', ""), ("", "")],
)
def test_the_reason(reply: str, reason: str) -> None:
    assert read_reason(reply) == reason


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        *(
            ("yes", True),
            ("Yes.", True),
            ("YES", True),
            ("**Yes**", True),
            ("*yes*.", True),
            ("Yes, because", True),
            ("yes\nIt is", True),
        ),
        *(
            ("# Yes", True),
            ("`yes`", True),
            ('"No."', False),
            ("Yes - it does", True),
            ("No \u2014 it does not", False),
            ("yes!", True),
        ),
        *(
            ("no", False),
            ("No. The response says: yesterday", False),
            ("**No**, yes would be wrong", False),
            ("_no_", False),
        ),
        *(
            ("<think>yes? no</think>No", False),
            ("<think>yes", None),
            ("<think>a</think></think>yes", None),
        ),
        *(
            ("", None),
            ("Nope", None),
            ("yesterday", None),
            ("Yes/No", None),
            ("yes-man", None),
            ("yes or no", None),
            ("No and yes", None),
        ),
        *(
            ("well, yes", None),
            ("The answer is yes", None),
            ("not right", None),
            ("nothing", None),
            ("None", None),
            ("是", None),
            ("ja", None),
        ),
        *(
            ('"yes" is what it says', None),
            ("> yes", None),
            ("yes'", None),
            ("yes\u200b", None),
            ("ye s", None),
            ("(yes)", None),
        ),
    ],
)
def test_the_first_word(reply: str, says: bool | None) -> None:
    assert read_yes(reply) is says


def test_a_word_at_the_cut_may_be_the_beginning_of_another() -> None:
    assert read_yes("No", cut=True) is None
    assert read_yes("No, the response does not say", cut=True) is False


def test_the_official_reading_takes_a_yes_anywhere() -> None:
    replies = ("No. The response says: yesterday", "well, YES", "no", "Nope", "", " ")
    assert [read_yes(reply, reading="official") for reply in replies] == [
        True,
        True,
        False,
        False,
        None,
        None,
    ]


def test_numbers_are_whole_and_of_one_object() -> None:
    names = ("a", "b")
    for reply in (
        '{"a": 1, "b": 2}',
        '```json\n{"b": "2", "a": 1, "c": "x"}\n```',
        'So: {"a": 1, "b": 2}',
    ):
        assert read_numbers(reply, names) == (1, 2), reply
    odd = (
        "1.0",
        "-1",
        "true",
        "null",
        "[1]",
        '"x"',
        '"-1"',
        '"１"',
        "1e3",
        "NaN",
        "1" * 5000,
        f'"{"1" * 50}"',
    )
    for value in odd:
        assert read_numbers(f'{{"a": {value}, "b": 2}}', names) is None, value[:20]
    for reply in (
        '{"a": 1}',
        '{"a": 1, "a": 1, "b": 2}',
        '{"a": 1, "b": 2} {"a": 1, "b": 3}',
        '{"x": {"a": 1, "b": 2}}',
    ):
        assert read_numbers(reply, names) is None, reply
    assert read_numbers('{"a":1,"b":2}', names, answer='x {"a": 1, "b": 2}') is None


@pytest.mark.parametrize(
    "text",
    [
        "{" * 200_000,
        '{"a":' * 40_000,
        '{"label": "CORRECT"}' * 10_000,
        '{"label": ' * 20_000,
        '"label" ' * 25_000,
        "label " + " " * 200_000,
        "label is " * 22_000,
        " " * 200_000,
        "*" * 200_000 + "yes",
        "yes " * 50_000,
        "<think>" * 28_000,
        "</think>" * 25_000,
        '{"label": "CORRECT", "reason": "' + "\\" * 100_000,
        "[" * 200_000,
        '{"a": "' + "{" * 199_000 + '"}',
        "ｌａｂｅｌ" * 40_000,
        '{"n": ' + "1" * 90_000 + "}",
    ],
    ids=lambda text: text[:12],
)
def test_no_text_holds_the_reading_up(text: str) -> None:
    started = time.process_time()
    for answer in ("", text):
        assert read_label(text, answer=answer, prompt=text) in (None, Label.CORRECT)
        read_reason(text)
        read_numbers(text, ("label", "reason"), answer=answer)
        read_yes(text, answer=answer)
    assert time.process_time() - started < 0.5
