"""The argument parser of a command, built from its usage text."""

from __future__ import annotations

from pathlib import Path

import pytest

from memeval.cli.parser import Parser, one_of
from memeval.errors import UserError

USAGE = f"""
does a thing,
in two lines

files+ FILE:path  what it reads; a long help
    goes on here
-o --output! OUT  what it writes
--last N:int      a number
--to {one_of(("a", "b"))}  a choice
--metric* M       several
--json            a switch
--up| URL         one way
--down| URL       the other way
"""


def test_each_kind_of_argument_is_read() -> None:
    parser = Parser.of("thing", USAGE, to="a", last=3)
    words = ["x", "y", "-o", "z", "--metric", "f1", "--metric", "recall", "--json", "--up", "u"]
    options = vars(parser.parse_args(words))

    assert parser.description == "does a thing, in two lines"
    assert options.pop("files") == [Path("x"), Path("y")]
    assert options == {
        "output": "z",
        "last": 3,
        "to": "a",
        "metric": ["f1", "recall"],
        "json": True,
        "up": "u",
        "down": None,
    }
    assert "a long help goes on here" in " ".join(parser.format_help().split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "z", "--up", "u"], "required: FILE"),
        (["x", "--up", "u"], "required: -o/--output"),
        (["x", "-o", "z"], "one of the arguments --up --down is required"),
        (["x", "-o", "z", "--up", "u", "--last", "many"], "invalid int value: 'many'"),
        (["x", "-o", "z", "--up", "u", "--to", "c"], "unknown --to of thing 'c'"),
    ],
)
def test_invalid_arguments_raise_user_error(words: list[str], message: str) -> None:
    with pytest.raises(UserError, match="thing") as raised:
        Parser.of("thing", USAGE).parse_args(words)

    assert message in raised.value.message


def test_each_action_has_its_own_arguments() -> None:
    parser = Parser.of_actions("thing", "acts", {"do": "does\n\nname\n--n N:int", "stop": "stops"})

    assert vars(parser.parse_args(["do", "x", "--n", "2"])) == {"action": "do", "name": "x", "n": 2}
    assert vars(parser.parse_args(["stop"])) == {"action": "stop"}
