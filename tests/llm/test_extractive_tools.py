"""The fixed policy of the offline reader with tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from memeval.llm.contract import AnswerPrompt, ChoosePrompt, SessionPrompt, ToolPrompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.extractive.tools import (
    fill_schema,
    next_calls,
    rare_words,
    without_references,
)
from memeval.pipeline.execute.tool_reader import as_function
from memeval.records import Role
from memeval.systems.tools import delete_tool, object_schema, update_tool

SEARCH = {
    "name": "search_memory",
    "description": "",
    "parameters": object_schema(required=["query"], query={"type": "string"}),
}
GREP = {
    "name": "grep",
    "description": "",
    "parameters": object_schema(required=["pattern"], pattern={"type": "string"}),
}
LIST = {"name": "list_files", "description": "", "parameters": object_schema()}
QUESTION = "What did Ilse's sister give her for the puppy?"


def prompt(*tools: Any, made: tuple[str, ...] = (), **more: Any) -> ToolPrompt:
    asked = AnswerPrompt(QUESTION, ("(nothing yet)",))
    exchange = tuple(
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": text}}]}
        for text in made
    )
    return ToolPrompt(asked, "", tools, exchange, **more)


def arguments(asked: ToolPrompt) -> Any:
    calls = next_calls(asked)
    assert len(calls) <= 1
    return (calls[0].name, json.loads(calls[0].arguments)) if calls else None


def test_first_search_uses_the_rare_words() -> None:
    words = rare_words(QUESTION)
    assert words[-1] == "puppy"
    assert not {"What", "did", "the", "her"} & set(words)
    assert arguments(prompt(SEARCH)) == ("search_memory", {"query": " ".join(words)})


def test_search_has_all_arguments_that_its_tool_requires() -> None:
    numbers = {"limit": {"type": "integer"}, "depth": {"type": "integer", "maximum": 3}}
    schema = object_schema(
        required=["limit", "query", "depth"], query={"type": "string"}, **numbers, more={}
    )
    _, given = arguments(prompt({**SEARCH, "parameters": schema}))
    assert given == {"query": " ".join(rare_words(QUESTION)), "limit": 10, "depth": 3}


def test_search_takes_an_optional_text_and_no_choice_of_options() -> None:
    optional = {"anyOf": [{"type": "null"}, {"type": "string"}], "default": None}
    options = {"type": "string", "enum": ["text", "json"]}
    schema = object_schema(output_format=options, query=optional)
    _, given = arguments(prompt({**SEARCH, "parameters": schema}))
    assert given == {"query": " ".join(rare_words(QUESTION))}


def test_grep_pattern_contains_the_rare_words() -> None:
    name, given = arguments(prompt(LIST, GREP))
    assert name == "grep"
    assert given["pattern"].split("|")[-1] == "puppy"


def test_second_search_starts_with_a_name_found_by_the_first() -> None:
    seen = ("[4 March 2021] Ilse: My sister Ottoline gave me a blanket.",)
    _, given = arguments(prompt(SEARCH, made=("{}",), seen=seen))
    assert given["query"].startswith("Ottoline ")


def test_answers_if_the_first_search_found_no_name() -> None:
    assert arguments(prompt(SEARCH, made=("{}",), seen=("nothing here",))) is None


def test_single_words_are_tried_if_nothing_was_found() -> None:
    _, given = arguments(prompt(SEARCH, made=("{}",)))
    assert len(given["query"].split()) == 1


@pytest.mark.parametrize(
    "asked",
    [
        prompt(SEARCH, made=("1", "2", "3")),
        prompt(SEARCH, last=True),
        prompt(LIST),
        prompt(),
    ],
)
def test_answers_after_three_calls_when_last_or_without_a_search_tool(asked: ToolPrompt) -> None:
    assert next_calls(asked) == ()


def test_answer_equals_that_of_the_reader_on_the_seen_texts() -> None:
    seen = ("[4 March 2021] Ilse: My sister Ottoline gave me a blue blanket for the puppy.",)
    by_tools = prompt(SEARCH, seen=seen, last=True)
    asked = AnswerPrompt(QUESTION, seen)
    model = ExtractiveModel()
    replies = [
        asyncio.run(model.complete(given, role=Role.ANSWER)).text for given in (by_tools, asked)
    ]
    assert replies[0] == replies[1]


def test_choice_with_tools_is_the_label_of_the_best_choice() -> None:
    chosen = ChoosePrompt("Who?", (), ("Ann likes tea", "Bob"))
    asked = ToolPrompt(chosen, "", (SEARCH,), seen=("Ann likes tea",), last=True)
    assert asyncio.run(ExtractiveModel().complete(asked, role=Role.ANSWER)).text == "0"


CHANGING = [as_function(make(lambda _: 1)) for make in (delete_tool, update_tool)]
NOTED = {"text": "note"}
ADD = {
    "name": "add_memory",
    "description": "With its date.",
    "parameters": object_schema(required=["text"], text={"type": "string"}),
}


@pytest.mark.parametrize(
    ("message", "due"),
    [
        ("Please forget Mara Velt's address.", {"about": "Mara Velt address"}),
        ("Bitte vergiss bei Mara Velt: Adresse.", {"about": "Mara Velt Adresse"}),
        ("请忘掉魏澜的地址。", {"about": "魏澜 地址"}),
        ("No: Mara's phone is not 0151 482, it is 99.", {"old": "0151 482", "new": "99"}),
        ("Die Nummer lautet nicht 12, sondern 13.", {"old": "12", "new": "13"}),
        ("魏澜的电话不是12，而是13。", {"old": "12", "new": "13"}),
        ("I will not forget Mara's cake.", {"text": "Ines: I will not forget Mara's cake."}),
    ],
)
def test_deletion_or_correction_in_a_sentence_calls_the_matching_tool(
    message: str, due: dict[str, str]
) -> None:
    session = SessionPrompt(context=(f"Ines: {message}",), system_text="", user_template="")
    (call,) = next_calls(ToolPrompt(session, "", (ADD, *CHANGING)))
    assert json.loads(call.arguments) == due
    # Without these tools, the sentence is noted like any other.
    notes = next_calls(ToolPrompt(session, "", (ADD,)))
    assert {note.name for note in notes} <= {"add_memory"}


def test_change_tools_report_their_result() -> None:
    asked: list[Any] = []

    async def forget(request: Any) -> int | None:
        asked.append(request)
        return None

    result = asyncio.run(delete_tool(forget).call(about="the cake"))
    assert (result.is_error, asked[0].about) == (True, "the cake")
    assert update_tool(lambda _: 2).call(old="a", new="b").text == "Changed: 2 entries."
    with pytest.raises(ValueError, match="all that is stored"):
        delete_tool(forget).call(about=" ")


@pytest.mark.parametrize(
    ("schema", "least"),
    [
        ({"type": "object", "properties": 5, "required": "text"}, {}),
        ({"type": "object", "properties": {"text": True}, "required": [["text"], "text"]}, NOTED),
        ({"type": "object", "properties": {"text": {"enum": {"a": 1}}}}, NOTED),
        ({"enum": "abc"}, "label"),
        ({"anyOf": []}, "label"),
        ({"anyOf": [True, {"type": "null"}, {"type": "integer"}]}, "label"),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ("any", "label"),
        # A definition may contain itself.
        (
            {
                "$defs": {"Node": {"type": "array", "items": {"$ref": "#/$defs/Node"}}, "b": 5},
                "type": "object",
                "properties": {"text": {"$ref": "#/$defs/Node"}},
                "required": ["text"],
            },
            {"text": ["note"]},
        ),
    ],
)
def test_arguments_are_filled_for_malformed_and_recursive_schemas(schema: Any, least: Any) -> None:
    assert fill_schema(schema, note="note", label="label") == least


@pytest.mark.slow
@pytest.mark.parametrize("place", ["$defs", "definitions"])
def test_schema_with_mutually_recursive_parts_is_read_in_bounded_time(place: str) -> None:
    names = [f"part{number}" for number in range(30)]
    inside = {name: {"$ref": f"#/{place}/{name}"} for name in names}
    parts = {name: {"type": "object", "properties": inside, "required": names} for name in names}
    schema = {"$ref": f"#/{place}/part0", place: parts}
    read = without_references(schema)
    assert read["type"] == "object"
    assert fill_schema(schema, note="a", label="b").keys() == set(names)


def test_schema_that_refers_only_to_itself_ends() -> None:
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert without_references(schema) == {"$ref": "#/$defs/a"}
