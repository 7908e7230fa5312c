"""The settings of `mcp`: the tools that store and search, and the templates of their arguments."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from memeval.config.checks import check_address, check_headers
from memeval.errors import UserError, unknown
from memeval.llm.keys import headers_of
from memeval.systems.base import ANSWER, INGEST, RUNTIME
from memeval.systems.external.http import BY_HEADER
from memeval.systems.external.mcp_tools import ToolChoice
from memeval.systems.external.mcp_transport import Server
from memeval.systems.external.program import ProgramSettings
from memeval.systems.external.served import check_pattern
from memeval.systems.external.wire import CHANGES
from memeval.text.redaction import strings_in
from memeval.text.shown import one_line

CHUNK_FIELDS = ("text", "content", "time", "turn_ids", "speakers", "session_id", "id", "namespace")
SEARCH_FIELDS = ("query", "asked_at", "top_k", "namespace")
FIELDS = {
    "store": CHUNK_FIELDS,
    "search": SEARCH_FIELDS,
    "reset": ("namespace",),
    "forget": ("words", "about", "scope", "namespace"),
    "correct": ("words", "old", "new", "namespace"),
}
"""The fields of each tool's arguments."""
TEXTS = "text"
"""The value of `results` for servers whose text blocks are the results."""
_FIELD = re.compile(r"\{([a-z_]*)\}")

EXAMPLE = (
    "for example:  system.command='python my_server.py' system.store_tool=add_memory "
    "system.search_tool=search_memory"
)


@dataclass(frozen=True)
class McpSettings(ProgramSettings):
    """Settings of `mcp`. `command` is a server that speaks over stdio, with a process per case."""

    url: str | None = field(default=None, metadata=INGEST)
    """The URL of a server that speaks over HTTP (streamable HTTP)."""
    headers: dict[str, str] | None = field(default=None, metadata=RUNTIME)
    """Headers of requests to `url`: names of the environment variables that hold their values."""
    store_tool: str | None = field(default=None, metadata=INGEST)
    """The tool that stores a chunk."""
    store_arguments: dict[str, Any] | None = field(default=None, metadata=INGEST)
    """Its arguments; `{text}`, `{content}`, `{time}`, `{turn_ids}`, `{speakers}`, `{session_id}`,
    `{id}` and `{namespace}` are replaced. None is `{text: "{text}"}`.
    """
    search_tool: str | None = field(default=None, metadata=ANSWER)
    """The tool that searches."""
    search_arguments: dict[str, Any] | None = field(default=None, metadata=ANSWER)
    """Its arguments; `{query}`, `{asked_at}`, `{top_k}` and `{namespace}` are replaced. None is
    `{query: "{query}"}`.
    """
    reset_tool: str | None = field(default=None, metadata=INGEST)
    """The tool that empties a memory, if any."""
    reset_arguments: dict[str, Any] | None = field(default=None, metadata=INGEST)
    """Its arguments; `{namespace}` is replaced."""
    forget_tool: str | None = field(default=None, metadata=INGEST)
    """The tool that removes information that a user wants forgotten, if any."""
    forget_arguments: dict[str, Any] | None = field(default=None, metadata=INGEST)
    """Its arguments; `{words}`, `{about}`, `{scope}` and `{namespace}` are replaced. None is
    `{query: "{about}"}`.
    """
    correct_tool: str | None = field(default=None, metadata=INGEST)
    """The tool that replaces an old value with a new one, if any."""
    correct_arguments: dict[str, Any] | None = field(default=None, metadata=INGEST)
    """Its arguments; `{words}`, `{old}`, `{new}` and `{namespace}` are replaced. None is
    `{old: "{old}", new: "{new}"}`.
    """
    items: str | None = field(default=None, metadata=INGEST)
    """Path of the count of removed or changed items in the JSON that these two tools return. None
    counts one item for each call that did not fail.
    """
    results: str = field(default=TEXTS, metadata=ANSWER)
    """Location of the results: `text` treats each text block as one result; else a path in the JSON
    that the tool returns, such as `memories` or `data.items`, or `.` for all of it.
    """
    result_split: str | None = field(default=None, metadata=ANSWER)
    """Regular expression that separates the results in one text block. None treats each block as
    one result.
    """
    result_text: str = field(default="text", metadata=ANSWER)
    """Path of the text within one result; a result that is a string is its own text."""
    result_turn_ids: str | None = field(default=None, metadata=ANSWER)
    """Path of the turn ids within one result. None looks for stored texts in the result's text."""
    result_score: str | None = field(default=None, metadata=ANSWER)
    """Path of the score within one result."""
    result_time: str | None = field(default=None, metadata=ANSWER)
    """Path of the time within one result."""

    tools: ToolChoice = field(default_factory=ToolChoice, metadata=INGEST)
    """Which of the server's tools a model may call, under `reader=tools` and `writer=tools`."""
    namespace_argument: str | None = field(default=None, metadata=INGEST)
    """The argument of these tools that names the case, for a server that has namespaces."""
    dump_tool: str | None = field(default=None, metadata=RUNTIME)
    """The tool that returns everything stored, without arguments: for lists, and for figures of
    `writer=tools`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        check_headers("system.headers", self.headers or {})
        check_pattern("system.result_split", self.result_split)
        for option, known in FIELDS.items():
            for name in sorted(_fields_in(self.arguments(option)) - set(known)):
                raise unknown(f"field in system.{option}_arguments", name, known)

    def arguments(self, option: str) -> Mapping[str, Any]:
        """Arguments of the tool for an operation, such as `store`."""
        usual: Mapping[str, Mapping[str, Any]] = {
            "store": {"text": "{text}"},
            "search": {"query": "{query}"},
            "reset": {},
            "forget": {"query": "{about}"},
            "correct": {"old": "{old}", "new": "{new}"},
        }
        given = getattr(self, f"{option}_arguments")
        return usual[option] if given is None else given

    @property
    def offered(self) -> Collection[str]:
        return [name for name in CHANGES if getattr(self, f"{name}_tool")]

    @property
    def has_namespaces(self) -> bool:
        """Whether both the store and the search tool get the case's name."""
        # In both, or chunks are stored in one namespace and searched in another, or in all.
        return "namespace" in _fields_in(self.arguments("store")) & _fields_in(
            self.arguments("search")
        )

    def server(self) -> Server:
        """The server. Raises `UserError` if not exactly one of `command` and `url` is set."""
        if bool(self.command) == bool(self.url):
            raise UserError("system=mcp needs either system.command or system.url", EXAMPLE)

        if self.command:
            words = self.words(EXAMPLE)
            # The script is more informative than its interpreter; other arguments may be secrets.
            script = next((word for word in words[1:] if Path(word).is_file()), words[0])
            name = f"the MCP server '{one_line(Path(script).name, 60)}'"
            return Server(name, tuple(words), timeout_s=self.request_timeout_s)

        assert self.url is not None, "one of the two is set"
        check_address("system.url", self.url, BY_HEADER)
        if not self.has_namespaces and not self.namespace_argument:
            raise UserError(
                "all cases share the server at system.url: to keep them separate, use {namespace} "
                "in system.store_arguments and system.search_arguments, or name the argument of "
                "its own tools: system.namespace_argument"
            )

        return Server(
            f"the MCP server at {self.url}",
            url=self.url,
            headers=headers_of(self.headers, "system.headers"),
            timeout_s=self.request_timeout_s,
        )


def probe_chunk(word: str, text: str) -> dict[str, Any]:
    """A test chunk of no real user, with all fields: a server may refuse a chunk without a time."""
    return {
        **dict.fromkeys(CHUNK_FIELDS, word),
        "text": text,
        "content": text,
        "time": "2023-05-08T13:56:00",
        "turn_ids": [word],
        "speakers": ["memeval"],
    }


def _fields_in(template: Any) -> set[str]:
    """The names in braces in the strings of a template."""
    return set(chain.from_iterable(map(_FIELD.findall, strings_in(template))))


def fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """A template with its fields replaced. A string that is only a field becomes the field's value,
    with its type.
    """
    if isinstance(template, Mapping):
        return {name: fill_template(value, values) for name, value in template.items()}
    if isinstance(template, list | tuple):
        return [fill_template(value, values) for value in template]
    if not isinstance(template, str):
        return template

    only_field = _FIELD.fullmatch(template)
    if only_field:
        value = values[only_field[1]]
        return "" if value is None else value

    return _FIELD.sub(lambda match: _as_text(values[match[1]]), template)


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))

    return "" if value is None else str(value)
