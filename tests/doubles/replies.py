"""Made-up replies: to each kind of prompt in the requested form, and vectors.

Like those of a real model, they have the requested form: a choice is a label, a verdict is JSON, a
form comes back filled in. The words are drawn by the prompt's hash, so equal prompts get equal
replies.
"""

import hashlib
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from memeval.llm.contract import SessionPrompt, ToolPrompt
from memeval.llm.extractive.tools import mapping_of, names_in, next_calls

WORDS = 3
"""Words of a reply to a prompt without a requested form."""
QUOTED_WORDS = 8
"""Words of a turn that an extraction quotes."""

_CHOICES = re.compile(r"Reply with the labels? of .*?, (\w) to (\w)\b")
_NUMBERED = re.compile(r"(?m)^(\d+)\. (?:\[[^\]\n]*\] )?(?:([^:\n]{1,40}): )?(.+)$")
_SESSION = re.compile(r"<session-(\w+)>\n(.*?)\n</session-\1>", re.DOTALL)
_OTHER_WORDS = re.compile(r'Write "(\w+)" for yes and "(\w+)" for no: one word\.$')
_WANTED = re.compile(r"\n\nKind: (\w+)\nBegin from turn ")
_SHOWN_TURN = re.compile(r"(?m)^\[(t\d+)\] [^:\n]+: (.+)$")
_FIELD = re.compile(r"- [^:\n]+:")

Draw = random.Random
Form = Callable[[str, Draw], str | None]
"""Returns the reply to a prompt that has the marks of a form; None if it asks for another form."""


def scripted_reply(body: Mapping[str, Any]) -> str:
    """The reply to the body of a chat request, in the form that its prompt asks for.

    If it asks for none, three words of the prompt.
    """
    contents = [str(message.get("content", "")) for message in body.get("messages", ())]
    text = "\n".join(contents)
    # Not by `hash`, which differs from process to process.
    draw = random.Random(hashlib.sha256(text.encode()).digest())

    for marks, form in FORMS:
        if all(mark in text for mark in marks):
            reply = form(text, draw)
            if reply is not None:
                return reply

    words = re.findall(r"[A-Za-z]{4,}", text) or ["nothing"]
    return " ".join(draw.choice(words) for _ in range(WORDS))


def scripted_calls(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a reply to a chat request; none if the reply is the answer.

    The first request of a question gets a search with three of its words, the next one an answer. A
    session is stored as the offline model stores it.
    """
    messages, tools = body.get("messages", ()), body.get("tools")
    called = any(message.get("role") == "tool" for message in messages)
    if not tools or called or body.get("tool_choice") == "none":
        return []

    asked = str(messages[-1].get("content"))
    if session := _SESSION.search(asked):
        functions = tuple(tool["function"] for tool in tools)
        prompt = ToolPrompt(SessionPrompt((session[2],)), instructions="", tools=functions)
        calls = next_calls(prompt)
        return [call_message(call.call_id, call.name, call.arguments) for call in calls]

    function = tools[0]["function"]
    properties = mapping_of(function["parameters"].get("properties"))
    words = re.findall(r"[A-Za-z]{4,}", asked) or ["nothing"]
    arguments = {}
    for name in names_in(function["parameters"].get("required")):
        if mapping_of(properties.get(name)).get("type") == "string":
            arguments[name] = " ".join(words[-WORDS:])

    return [call_message("call_1", function["name"], json.dumps(arguments))]


def call_message(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call in the form of a chat message."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def scripted_message(body: Mapping[str, Any]) -> dict[str, Any]:
    """The message of the reply to a chat request: tool calls, or text."""
    calls = scripted_calls(body)
    if calls:
        return {"role": "assistant", "content": None, "tool_calls": calls}

    return {"role": "assistant", "content": scripted_reply(body)}


def _label(_: str, draw: Draw) -> str:
    """A judge's verdict; about half of them are CORRECT."""
    return json.dumps({"reason": "scripted", "label": draw.choice(["CORRECT", "WRONG"])})


def _yes_or_no(text: str, draw: Draw) -> str:
    # If the answer contains a yes, the prompt asks the judge for other words.
    asked = _OTHER_WORDS.search(text)
    words = asked.groups() if asked else ("yes", "no")
    return draw.choice(words)


def _entities(text: str, _: Draw) -> str:
    """Names in a turn: its capitalised words."""
    turn = text.rpartition("\nTurn:\n")[2]
    return json.dumps(list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+", turn))))


def _counts(_: str, draw: Draw) -> str:
    counts = {"fluent": 1, "conveyed": draw.randint(0, 4), "points": 4}
    return json.dumps({**counts, "supported": draw.randint(0, 3), "sentences": 3})


def _score(_: str, draw: Draw) -> str:
    """The degree to which an answer meets one item of a rubric."""
    return json.dumps({"reason": "scripted", "score": draw.choice([0, 0.5, 1])})


def _points(_: str, draw: Draw) -> str:
    """Points of OpsEval's judge for each criterion."""
    return json.dumps({name: draw.randint(0, 3) for name in ("fluency", "accuracy", "evidence")})


def _choice(text: str, draw: Draw) -> str | None:
    """One of the labels, digits or letters, from the first to the last."""
    labels = _CHOICES.search(text)
    if labels is None:
        return None

    return chr(draw.randint(ord(labels[1]), ord(labels[2])))


def _artifacts(text: str, _: Draw) -> str:
    """CogCanvas' extraction: one note per turn, quoted from it; none at the second reading."""
    # Notes in the prompt don't show which: a first reading also contains those of earlier batches.
    if "You check the notes" in text:
        return "[]"

    turns = text.rpartition("\nTurns:\n")[2]
    notes = []
    for number, speaker, turn_text in _NUMBERED.findall(turns):
        quote = " ".join(turn_text.split()[:QUOTED_WORDS])
        note = {"type": "key_fact", "content": quote, "quote": quote, "chunk": int(number)}
        people = [speaker] if speaker else []
        notes.append({**note, "date": "", "people": people})

    return json.dumps(notes)


def _form(text: str, draw: Draw) -> str | None:
    """The working memory: each field with a line of the session."""
    asked = text.rpartition("\nTemplate:\n")[2]
    template, is_whole, rest = asked.partition("\n\nThe form as it stands:\n")
    if not is_whole:
        return None

    session_lines = rest.rpartition("\nThis session:\n")[2].strip().splitlines() or ["nothing"]
    lines = []
    for line in template.splitlines():
        lines.append(line)
        if _FIELD.match(line):
            lines.append(draw.choice(session_lines))

    return "\n".join(lines)


def _draft(text: str, draw: Draw) -> str | None:
    """A question about the turns that a drafter is shown: an answer of made-up words, quoted."""
    kind, turns = _WANTED.search(text), _SHOWN_TURN.findall(text)
    if kind is None or not turns:
        return None

    quotes = [
        {"turn": turn, "quote": " ".join(turn_text.split()[:QUOTED_WORDS])}
        for turn, turn_text in (turns[-1], turns[0])
    ]
    word = quotes[1]["quote"].split()[0]
    about = " ".join(f"{draw.getrandbits(32):x}" for _ in range(QUOTED_WORDS))
    answer, evidence = None, quotes[:1]
    if kind[1] != "unanswerable":
        answer = f"{draw.getrandbits(32):x}"
    if kind[1] == "multi_hop":
        evidence = quotes

    question = {
        "kind": kind[1],
        "question": f"Which {about} {quotes[0]['quote'].split()[0]}?",
        "answer": answer,
        "evidence": evidence,
        "stale": [{"value": word, **quotes[1]}],
    }
    return json.dumps(question)


def _memories(text: str, _: Draw) -> str:
    """mem0's extraction: the first words of the new message."""
    new = text.rpartition("## New Messages\n")[2]
    words = " ".join(new.partition("\n##")[0].split()[: 3 * QUOTED_WORDS])
    return json.dumps({"memory": [{"id": "0", "text": words, "attributed_to": "user"}]})


FORMS: tuple[tuple[tuple[str, ...], Form], ...] = (
    (("\n\nKind: ",), _draft),
    (('"quote"', "\nTurns:\n"), _artifacts),
    (("\nTemplate:\n",), _form),
    (("## New Messages\n",), _memories),
    (("JSON list of names",), _entities),
    (('"conveyed"',), _counts),
    (('"score": 0.5',), _score),
    (('"fluency": 0',), _points),
    (('the one word "yes"',), _yes_or_no),
    (("Reply with the label",), _choice),
    (("CORRECT", "WRONG"), _label),
)
"""Each form with the marks of the prompts that it replies to; the first form that fits replies."""
