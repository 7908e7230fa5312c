"""The offline reader's fixed policy for using tools, in place of a model.

It searches with the question's rare words, then with names found, at most three times. From a
session it stores what each turn states, with the first tool that writes. With the tools
`delete_memory` and `update_memory`, it makes the changes that a sentence requests in plain words.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from memeval.llm.contract import SessionPrompt, ToolCall, ToolPrompt
from memeval.llm.extractive.entries import entries
from memeval.llm.extractive.words import STOP_WORDS

MAX_SEARCHES = 3
MAX_WORDS = 6
"""Maximum words of one search."""
FEW = 10
"""A number that a tool requires, if its schema allows it: mostly that of results."""
_SEARCHES = re.compile(r"search|find|query|grep|recall|retrieve|look", re.IGNORECASE)
_PATTERN = re.compile(r"pattern|regex", re.IGNORECASE)
DONE = "done"
"""Reply when a session is stored."""
_WRITES = re.compile(r"add|append|create|insert|remember|save|store|write", re.IGNORECASE)
_NOTE = re.compile(
    r"text|content|note|memory|fact|observation|value|data|message|body", re.IGNORECASE
)
"""Names of arguments that take the text to be stored."""
_KEY = re.compile(r"(?:\w+_)?(?:key|id|slug)", re.IGNORECASE)
_PATH = re.compile(r"path|file", re.IGNORECASE)
_DELETE, _UPDATE = "delete_memory", "update_memory"
_FORGET = re.compile(
    r"^(?:(?:please|bitte) )?(?:forget|delete|vergiss|lösche) (.+)|^请?(?:忘掉|忘记|删除)(.+)",
    re.IGNORECASE,
)
_CORRECT = re.compile(
    r"is not (.+), it is (.+?)[.!]?$|nicht (.+), sondern (.+?)[.!]?$|不是(.+)，而是(.+?)[。！]?$"
)
_POSSESSIVE = re.compile(r"['’]s\b|的")
_GERMAN = {"bei", "von", "der", "die", "das", "den"}
_KEEPS_DATE = re.compile(r"\bdate\b")
_DEEPEST = 5
"""Maximum depth to which a schema is filled in."""
_DEFINITIONS = ("$defs", "definitions")
_MAX_PARTS, _MAX_LEVELS = 10_000, 40
"""Maximum size of a schema that is read: it comes from outside."""
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_HEAD = re.compile(r"^(?:[\w.-]+:\d+: )?(?:\[[^\]]*\] )?")
"""Prefix of an entry before its words: file and line, and its date."""


def next_calls(prompt: ToolPrompt) -> tuple[ToolCall, ...]:
    """The next calls; empty if it is time to answer, or if the session is stored."""
    if not isinstance(prompt.asked, SessionPrompt):
        call = _search(prompt, prompt.asked.question)
        return () if call is None else (call,)
    if prompt.exchange:
        return ()

    return tuple(_writing(prompt.asked, prompt.tools))


def _search(prompt: ToolPrompt, question: str) -> ToolCall | None:
    """The next search; None if it is time to answer."""
    searches: list[str] = []
    for message in prompt.exchange:
        searches += [call["function"]["arguments"] for call in message.get("tool_calls", ())]

    tool = _search_among(prompt.tools)
    if prompt.last or tool is None or len(searches) >= MAX_SEARCHES:
        return None

    words = rare_words(question)
    if len(searches) == 1 and prompt.seen:
        words = _names(prompt.seen, words)
    elif searches:
        # With results, the names have been tried: it is time to answer. Otherwise single words are
        # tried.
        if prompt.seen:
            return None

        words = sorted(words, key=len, reverse=True)[len(searches) - 1 :][:1]

    if not words:
        return None

    name, argument, others = tool
    query = " ".join(words)
    # A pattern matches any of the words.
    if _PATTERN.search(argument):
        query = "|".join(map(re.escape, words))

    arguments = json.dumps({argument: query, **others}, ensure_ascii=False)
    if arguments in searches:
        return None

    return ToolCall(call_id=f"call_{len(searches) + 1}", name=name, arguments=arguments)


def rare_words(text: str) -> list[str]:
    """The words of a text that are not function words, in order, each once."""
    words = [word for word in _WORD.findall(text) if word.casefold() not in STOP_WORDS]
    return list(dict.fromkeys(words))[:MAX_WORDS]


def _search_among(
    tools: Sequence[Mapping[str, Any]],
) -> tuple[str, str, Mapping[str, Any]] | None:
    """The tool to search with, its argument for the words, and the others that it needs; None if
    there is no such tool.
    """
    first = None
    for tool in tools:
        argument = _text_argument(tool)
        if not argument:
            continue

        name = str(tool["name"])
        call = (name, argument, _other_arguments(tool, argument))
        if _SEARCHES.search(name):
            return call

        first = first or call

    return first


def _other_arguments(tool: Mapping[str, Any], argument: str) -> dict[str, Any]:
    """Values of the other arguments that a tool requires, such as a number of results."""
    parameters = mapping_of(without_references(tool.get("parameters")))
    properties = mapping_of(parameters.get("properties"))
    others = {}
    for name in names_in(parameters.get("required")):
        if name == argument:
            continue

        schema = mapping_of(properties.get(name))
        others[name] = fill_schema(schema, name, note="", label="")
        least, most = schema.get("minimum"), schema.get("maximum")
        if schema.get("type") == "integer":
            others[name] = min(FEW, most) if isinstance(most, int) else FEW
            if isinstance(least, int):
                others[name] = max(others[name], least)

    return others


def _text_argument(tool: Mapping[str, Any]) -> str | None:
    """The first argument that takes any string, required ones first."""
    parameters = mapping_of(without_references(tool.get("parameters")))
    properties = mapping_of(parameters.get("properties"))
    required = [name for name in names_in(parameters.get("required")) if name in properties]
    for name in [*required, *properties]:
        schema = mapping_of(properties[name])
        if schema.get("type") == "string" and "enum" not in schema:
            return str(name)

    return None


def mapping_of(value: Any) -> Mapping[str, Any]:
    """A part of a schema, which comes from outside; empty if it is not a mapping."""
    return value if isinstance(value, Mapping) else {}


def names_in(value: Any) -> list[str]:
    """The names in a part of a schema; empty if it is not a list."""
    if not isinstance(value, list):
        return []

    return [name for name in value if isinstance(name, str)]


def _names(seen: Sequence[str], known: Sequence[str]) -> list[str]:
    """The two most frequent new names and two words of the question; empty if no name is new."""
    left_out = STOP_WORDS.union(map(str.casefold, known))
    counts: Counter[str] = Counter()
    for entry in seen:
        text = _HEAD.sub("", entry).partition(": ")[2] or entry
        # The first word of a sentence is also capitalised.
        inside = re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text)
        counts.update(name for name in inside if name.casefold() not in left_out)

    if not counts:
        return []

    return [*(name for name, _ in counts.most_common(2)), *known[:2]]


def _writing(session: SessionPrompt, tools: Sequence[Mapping[str, Any]]) -> Iterator[ToolCall]:
    """A call for each turn that states something, and for each change that a sentence requests."""
    tool = next(filter(stores_text, tools), None)
    if tool is None:
        return

    names = {str(tool["name"]) for tool in tools}
    keeps_date = _KEEPS_DATE.search(str(tool["description"]))
    facts = []
    changes = 0
    for entry in entries(session.context):
        if entry.asks:
            continue

        change = _change(entry.text, names)
        if change is not None:
            changes += 1
            name, changed = change
            change_json = json.dumps(changed, ensure_ascii=False)
            yield ToolCall(call_id=f"call_{changes}", name=name, arguments=change_json)
        elif len(entry.terms) > 1:
            facts.append(entry)

    turns = groupby(facts, key=lambda entry: (entry.stamp, entry.speaker))
    for number, ((stamp, speaker), of_turn) in enumerate(turns, start=changes + 1):
        note = statement = " ".join(entry.text for entry in of_turn)
        if speaker:
            note = f"{speaker}: {note}"
        if stamp and not keeps_date:
            note = f"[{stamp}] {note}"

        label = " ".join(rare_words(f"{speaker} {statement}"))
        arguments = fill_schema(tool["parameters"], note=note, label=label)
        yield ToolCall(
            call_id=f"call_{number}",
            name=str(tool["name"]),
            arguments=json.dumps(arguments, ensure_ascii=False),
        )


def _change(sentence: str, names: Collection[str]) -> tuple[str, dict[str, str]] | None:
    """The tool and arguments for the change that a sentence requests; None if it requests none."""
    forget, correct = _FORGET.search(sentence), _CORRECT.search(sentence)
    if forget and _DELETE in names:
        words = _WORD.findall(_POSSESSIVE.sub(" ", forget[1] or forget[2]))
        kept = [word for word in words if word.casefold() not in STOP_WORDS | _GERMAN]
        return _DELETE, {"about": " ".join(kept or words)}
    if correct and _UPDATE in names:
        old, new = filter(None, correct.groups())
        return _UPDATE, {"old": old, "new": new}

    return None


def stores_text(tool: Mapping[str, Any]) -> bool:
    """Whether a tool seems to store text, by its name and its arguments."""
    if not _WRITES.search(str(tool["name"])):
        return False

    arguments = fill_schema(tool.get("parameters"), note="\0", label="")
    return "\0" in json.dumps(arguments, ensure_ascii=False).replace("\\u0000", "\0")


def fill_schema(schema: Any, name: str = "", *, note: str, label: str, depth: int = 0) -> Any:
    """The smallest value that a schema allows, with the note or the label as its strings."""
    if depth == 0:
        schema = without_references(schema)
    if not isinstance(schema, Mapping) or depth >= _DEEPEST:
        schema = {}

    options = schema.get("enum")
    if isinstance(options, list) and options:
        return options[0]

    kind = schema.get("type")
    if kind == "array":
        return [fill_schema(schema.get("items"), name, note=note, label=label, depth=depth + 1)]
    if kind == "object":
        filled = {}
        properties = mapping_of(schema.get("properties"))
        for part in names_in(schema.get("required")) or list(properties)[:1]:
            inner = properties.get(part)
            filled[part] = fill_schema(inner, part, note=note, label=label, depth=depth + 1)

        return filled

    text = note if _NOTE.search(name) else label
    if _KEY.fullmatch(name):
        text = "-".join(_WORD.findall(label)).lower()
    if _PATH.search(name):
        text = "notes.txt"

    numbers = {"integer": schema.get("minimum", 1), "number": schema.get("minimum", 1)}
    return {**numbers, "boolean": False}.get(str(kind), text)


def without_references(schema: Any) -> Any:
    """A schema in which each `$ref` to one of its own definitions is replaced by that definition,
    and each `anyOf` by one of its alternatives.

    The parts of a schema that would grow beyond `_MAX_PARTS` are left out.
    """
    known = {}
    for section in _DEFINITIONS:
        for name, part in mapping_of(mapping_of(schema).get(section)).items():
            known[f"#/{section}/{name}"] = part

    return _expand(schema, known, iter(range(_MAX_PARTS)), depth=0)


def _expand(schema: Any, known: Mapping[str, Any], budget: Iterator[int], depth: int) -> Any:
    if isinstance(schema, list):
        return [_expand(part, known, budget, depth + 1) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    if next(budget, None) is None or depth > _MAX_LEVELS:
        return {}
    if (named := str(schema.get("$ref"))) in known:
        # Without the name itself: a definition may refer to itself.
        inner = dict(known)
        return _expand(inner.pop(named), inner, budget, depth + 1)

    rest = {key: part for key, part in schema.items() if key not in _DEFINITIONS}
    if isinstance(schema.get("anyOf"), list):
        # Many servers declare an optional text as a string or null.
        options = map(mapping_of, rest.pop("anyOf"))
        option: Mapping[str, Any] = max(options, key=_preference, default={})
        return _expand({**rest, **option}, known, budget, depth + 1)

    return {key: _expand(part, known, budget, depth + 1) for key, part in rest.items()}


def _preference(schema: Mapping[str, Any]) -> int:
    """Which of several alternatives to fill in: a string, then anything but null."""
    return {"string": 2, "null": 0}.get(str(schema.get("type")), 1)
