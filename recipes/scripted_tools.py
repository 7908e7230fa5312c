"""The scripted endpoint of memeval, for libraries that ask a model for forms of their own.

If a request has tools, the reply calls the first that takes `content`, with the last message as its
text. An agent with one that takes `query` searches for the whole question, then answers as the
offline reader does from what was found. memeval's own loops of tools go as the offline reader plays
them. LightRAG, Graphiti and Cognee get the entities that they
ask for: the words of a text that begin with a capital, joined by what was said.

`python recipes/scripted_tools.py COMMAND ...` serves it while the command runs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from memeval.llm.contract import AnswerPrompt, ToolPrompt
from memeval.llm.extractive.answers import read
from memeval.llm.extractive.tools import next_calls
from memeval.pipeline.execute.tool_results import entries_of
from memeval.systems.external.letta_reply import hits_of
from memeval.systems.external.server_replies import reports_no_results

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from doubles.endpoint import ScriptedEndpoint
from doubles.replies import call_message, scripted_message, scripted_reply

MARK = "call the tool "
SESSION = "The session:\n<session-"
QUESTION = re.compile(r"Question: (.*)\nAnswer:\s*\Z", re.DOTALL)
RESULT = re.compile(r"\A<result-(\w+)>\n(.*)\n</result-\1>\Z", re.DOTALL)
"""Marks of the prompts and results of memeval's own loops."""
SEARCHES_FOR = "query"
"""The argument of a tool that searches."""
MAX_NAMES = 4
"""Entities that are found in a text."""


def reply(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
    """The text of a reply, of which a marked one becomes a call of a tool; or a whole message."""
    if body.get("tools"):
        own = offline_step(body)
        if own is not None:
            return own

    asked = str(body["messages"][-1]["content"])
    for tool in body.get("tools", ()):
        function = tool["function"]
        arguments = function["parameters"].get("properties", {})
        if SEARCHES_FOR in arguments:
            return agent_step(function["name"], arguments, body["messages"])
        if "content" in arguments:
            return call_of(function["name"], {"content": asked[-400:]})

    schema = body.get("response_format", {}).get("json_schema")
    if schema is not None:
        return json.dumps(SCHEMAS.get(schema["name"], nothing)(asked) or empty(schema["schema"]))

    for form in (lightrag_keywords, lightrag_entities, lightrag_summary):
        filled = form(asked)
        if filled is not None:
            return filled

    return scripted_reply(body)


def offline_step(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The offline reader's reply in memeval's own tool loop; None in any other."""
    messages = body["messages"]
    first = next(at for at, row in enumerate(messages) if row["role"] == "user")
    shown = text_of(messages[first])
    if SESSION in shown:
        return scripted_message(body)

    asked = QUESTION.search(shown)
    if asked is None:
        return None

    results = [RESULT.sub(r"\2", text_of(row)) for row in messages if row["role"] == "tool"]
    # A result that reports that nothing was found has no entries.
    seen = [entry for text in results if not reports_no_results(text) for entry in entries_of(text)]
    prompt = ToolPrompt(
        AnswerPrompt(system_text="", user_template="", question=asked[1], context=()),
        instructions="",
        tools=tuple(tool["function"] for tool in body["tools"]),
        exchange=tuple(messages[first + 1 :]),
        seen=tuple(dict.fromkeys(seen)),
        last=body.get("tool_choice") == "none",
    )
    calls = [call_message(*call) for call in map(astuple, next_calls(prompt))]
    return {"tool_calls": calls} if calls else {"content": read(asked[1], prompt.seen).answer}


def call_of(name: str, arguments: Mapping[str, Any]) -> str:
    """The marked text that becomes a call of a tool."""
    return f"{MARK}{json.dumps([name, arguments])}"


def agent_step(
    tool: str, arguments: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
) -> str:
    """A search for the question, or the answer that the offline reader takes from its result."""
    question = next(text_of(row) for row in reversed(messages) if row["role"] == "user")
    if messages[-1]["role"] == "tool":
        context = tuple(hit.text for hit in hits_of(text_of(messages[-1])) or ())
        return read(question, context).answer

    wanted: dict[str, Any] = {SEARCHES_FOR: question}
    depth = re.search(r"\btop_k=(\d+)", "\n".join(map(text_of, messages)))
    if depth is not None and "top_k" in arguments:
        wanted["top_k"] = int(depth[1])

    return call_of(tool, wanted)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may be a list of parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def call_tools(payload: dict[str, Any]) -> None:
    """Makes a marked text a call of a tool."""
    choice = payload["choices"][0]
    text = choice["message"]["content"] or ""
    if not text.startswith(MARK):
        return

    name, arguments = json.loads(text.removeprefix(MARK))
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{abs(hash(text))}", "type": "function", "function": function}
    choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice["finish_reason"] = "tool_calls"


def names_in(text: str) -> list[str]:
    """The first different words that begin with a capital."""
    return list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]{2,}\b", text)))[:MAX_NAMES]


def lightrag_keywords(asked: str) -> str | None:
    """The long words of a question are its keywords."""
    question = re.search(r"\nUser Query: (.*)\n\n---Output---", asked, re.DOTALL)
    if question is None or "low_level_keywords" not in asked:
        return None

    words = re.findall(r"\w{4,}", question[1])
    return json.dumps({"high_level_keywords": words[-2:], "low_level_keywords": words})


def lightrag_entities(asked: str) -> str | None:
    """A row for each name in a text, and one that joins the first with each other."""
    if asked.startswith("---Task---\nBased on the last extraction task"):
        return "<|COMPLETE|>"

    text = re.search(r"---Input Text---\n```\n(.*)\n```", asked, re.DOTALL)
    if text is None:
        return None

    names, said = names_in(text[1]), " ".join(text[1].split()[:30])
    rows = [f"entity<|#|>{name}<|#|>Other<|#|>{name} is in: {said}" for name in names]
    rows += [f"relation<|#|>{names[0]}<|#|>{name}<|#|>said<|#|>{said}" for name in names[1:]]
    return "\n".join([*rows, "<|COMPLETE|>"])


def lightrag_summary(asked: str) -> str | None:
    """The first words of the descriptions that are to be one."""
    listed = asked.rpartition("\nDescription List:\n")[2]
    if listed == asked:
        return None

    told = [json.loads(line)["Description"] for line in listed.splitlines() if line[:1] == "{"]
    return " ".join(" ".join(told).split()[:60])


def part(asked: str, *tags: str) -> str:
    """The content of the first of these tags that occurs."""
    for tag in tags:
        found = re.search(rf"<{tag}>\n(.*?)\n</{tag}>", asked, re.DOTALL)
        if found is not None:
            return found[1]

    return ""


def graphiti_entities(asked: str) -> dict[str, Any]:
    """An entity for each name in a message."""
    names = names_in(part(asked, "CURRENT MESSAGE"))
    return {"extracted_entities": [{"name": name, "entity_type_id": 0} for name in names]}


def graphiti_facts(asked: str) -> dict[str, Any]:
    """A fact that joins the first entity with each other: what was said."""
    names = [entity["name"] for entity in json.loads(part(asked, "ENTITIES") or "[]")]
    said = " ".join(part(asked, "CURRENT_MESSAGE", "CURRENT MESSAGE").split()[:30])
    facts = []
    for name in names[1:]:
        ends = {"source_entity_name": names[0], "target_entity_name": name}
        facts.append({**ends, "relation_type": "SAID_WITH", "fact": f"{name}: {said}"})

    return {"edges": facts}


def graphiti_duplicates(asked: str) -> dict[str, Any]:
    """An entity is another where both have one name."""
    known = json.loads(part(asked, "EXISTING ENTITIES") or "[]")
    ids = {entity["name"]: entity["candidate_id"] for entity in known}
    resolved = []
    for entity in json.loads(part(asked, "ENTITIES") or "[]"):
        same = ids.get(entity["name"], -1)
        resolved.append({**entity, "duplicate_candidate_id": same})

    return {"entity_resolutions": resolved}


def cognee_graph(asked: str) -> dict[str, Any]:
    """A node for each name in a text, and an edge from the first to each other: what was said."""
    names, said = names_in(asked), " ".join(asked.split()[:30])
    nodes = [
        {"id": name.lower(), "name": name, "type": "Thing", "description": f"{name} is in: {said}"}
        for name in names
    ]
    edges = []
    for name in names[1:]:
        ends = {"source_node_id": names[0].lower(), "target_node_id": name.lower()}
        edges.append({**ends, "relationship_name": "said_with", "description": said})

    return {"nodes": nodes, "edges": edges}


def cognee_summary(asked: str) -> dict[str, Any]:
    """The first words of a text."""
    return {"summary": " ".join(asked.split()[:20]), "description": ""}


def nothing(_: str) -> None:
    """No form is known."""


def empty(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The least that a schema asks for."""
    blanks = {"array": [], "string": "", "integer": 0, "number": 0, "boolean": False, "object": {}}
    fields = schema.get("properties", {})
    return {name: blanks.get(fields[name].get("type")) for name in schema.get("required", ())}


SCHEMAS = {
    "ExtractedEntities": graphiti_entities,
    "ExtractedEdges": graphiti_facts,
    "NodeResolutions": graphiti_duplicates,
    "KnowledgeGraph": cognee_graph,
    "SummarizedContent": cognee_summary,
}
"""By the names of the schemas that Graphiti and Cognee send."""


if __name__ == "__main__":
    with ScriptedEndpoint(reply, edit=call_tools) as endpoint:
        reach = {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "not-needed"}
        with subprocess.Popen(sys.argv[1:], env={**os.environ, **reach}) as command:
            # Ctrl-C reaches the command, too, which may have something to put away.
            signal.signal(signal.SIGINT, lambda *_: None)
            signal.signal(signal.SIGTERM, lambda *_: command.terminate())
            command.wait()

    sys.exit(command.returncode)
