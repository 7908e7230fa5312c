"""The scripted endpoint of memeval, for libraries that make a model call tools: where a request has
tools, the reply calls the first that takes `content`, with the last message as its text.

`python recipes/scripted_tools.py COMMAND ...` serves it while the command runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from memeval.testing.endpoint import ScriptedEndpoint
from memeval.testing.replies import scripted_reply

MARK = "call the tool "


def reply(body: Mapping[str, Any]) -> str:
    """The text of a reply; a marked one becomes a call of a tool."""
    for tool in body.get("tools", ()):
        function = tool["function"]
        if "content" in function["parameters"].get("properties", {}):
            said = str(body["messages"][-1]["content"])[-400:]
            return f"{MARK}{json.dumps([function['name'], said])}"

    return scripted_reply(body)


def call_tools(payload: dict[str, Any]) -> None:
    """Makes a marked text a call of a tool."""
    choice = payload["choices"][0]
    text = choice["message"]["content"]
    if not text.startswith(MARK):
        return

    name, said = json.loads(text.removeprefix(MARK))
    function = {"name": name, "arguments": json.dumps({"content": said})}
    call = {"id": f"call_{abs(hash(said))}", "type": "function", "function": function}
    choice["message"] = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice["finish_reason"] = "tool_calls"


if __name__ == "__main__":
    with ScriptedEndpoint(reply, edit=call_tools) as endpoint:
        reach = {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "not-needed"}
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **reach}, check=False).returncode)
