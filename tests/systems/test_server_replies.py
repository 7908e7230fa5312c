"""Messages that servers send instead of memories, and lines of other cases in results."""

from __future__ import annotations

import pytest

from memeval.systems.external.conversation_lines import ConversationLines, is_line_of
from memeval.systems.external.server_replies import error_in, reports_no_results

NOTHING = [
    "",
    "No results found.",
    "no memories found",
    "No matching memories found for query: 'the puppy'",
    "Nothing found",
    "There are no entities matching 'dog'",
    "I couldn't find anything about that.",
    "Found 0 memories",
    "0 results",
    "[]",
    "{}",
    '{"entities": [], "relations": []}',
    '{"results": [], "count": 0, "message": "No memories found"}',
]
SOMETHING = [
    "[1:00 pm on 3 May 2023] Ann: No results found",
    "Nothing beats a good coffee, said Ann",
    "No entity came before the storm of 1999 that hit Bergen",
    '{"entities": [{"name": "Biscuit"}]}',
    "0",
]


@pytest.mark.parametrize("text", NOTHING)
def test_common_messages_of_no_results_are_recognised(text: str) -> None:
    assert reports_no_results(text) and error_in(text) is None


@pytest.mark.parametrize("text", SOMETHING)
def test_memories_are_not_mistaken_for_no_results(text: str) -> None:
    assert not reports_no_results(text)


def test_custom_no_results_pattern_is_recognised() -> None:
    assert reports_no_results("Nada encontrado", "^Nada")


@pytest.mark.parametrize(
    "text",
    [
        "Error: database is locked",
        "Error searching memories: no model",
        "MCP error -32602: bad",
        "TypeError: x is undefined",
        "Traceback (most recent call last):",
        "Search failed: no model",
        "Unknown tool: search",
        '{"error": "no model"}',
    ],
)
def test_error_messages_are_recognised(text: str) -> None:
    assert error_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Error rates rose on router R1",
        "Ann: error in my test",
        "Failed to start: Ann's car, on Monday",
        "Exceptional weather",
        '{"results": [], "error": null}',
    ],
)
def test_memories_are_not_mistaken_for_errors(text: str) -> None:
    assert error_in(text) is None


def test_line_is_found_verbatim_with_any_decoration() -> None:
    lines = ConversationLines()
    lines.add("Ann: I adopted a puppy called Biscuit yesterday.\nBob: Bye!")
    lines.add("用户: 我的小狗叫饼干")
    for text in (
        "[1 pm on 8 May 2023] Ann: I adopted a puppy called Biscuit yesterday.",
        '{"text": "Ann: I adopted\\ta puppy called Biscuit yesterday."}'.replace("\\t", " "),
        "# Memory\n- ann - i adopted a puppy called BISCUIT yesterday",
        "[1 pm on 8 May 2023] Bob: Bye!",
        "记忆 用户: 我的小狗叫饼干",
    ):
        assert list(lines.lines_in(text)), text

    for text in (
        "Ann adopted a puppy called Biscuit.",
        "Ann: I adopted a puppy called Biscuit last week.",
        "She said: Bob: Bye! And left.",
        "",
    ):
        assert not list(lines.lines_in(text)), text


def test_line_said_in_the_case_itself_is_recognised() -> None:
    line = ("ann", "i", "adopted", "a", "puppy", "called", "biscuit")
    assert is_line_of(line, ["Bob: Hi!", "Ann: I adopted a puppy, called Biscuit!"])
    assert not is_line_of(line, ["Ann: I adopted a puppy, called Biscuits!"])
