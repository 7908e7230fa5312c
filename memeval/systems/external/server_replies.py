"""Server replies that are not memories: nothing was found, or something failed."""

import re
from collections.abc import Mapping
from typing import Any

from memeval.text.typed import json_or_none

_THINGS = (
    r"(?:results?|memor(?:y|ies)|match(?:es)?|matching|entit(?:y|ies)|documents?|nodes?|items?"
    r"|records?|entries|facts?|notes?|observations?|context|information|data|hits?)"
)
_NOTHING = re.compile(
    rf"""(?:sorry[,.!]?\s+)?(?:i\s+)?
    (?: (?:there\s+(?:are|were|is|was)\s+|found\s+|returned\s+)?(?:no|0|zero)\s+(?:\w+\s+){{0,3}}?
        {_THINGS}(?:\s+{_THINGS})?(?:\s+(?:were|was|are|could\s+be))?
        (?:\s+(?:found|available|stored|matched|returned|yet))*
        (?:[\s:(]+(?:for|matching|matched|in|about|with|to|that|related)\b.{{0,300}})?
      | (?:could\s+not|couldn't|did\s+not|didn't)\s+find\s+(?:any|anything).{{0,300}}
      | nothing(?:\s+\w+){{0,2}}?(?:\s+found)?(?:\s+(?:for|matching|in|about)\b.{{0,300}})?
      | (?:not\s+found|none|null|nil|empty|n/a)
    )\s*[.!]*""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_ERROR = re.compile(
    r"""\W{0,4}(?:
        (?:(?:mcp|internal|server|tool|unexpected|validation|database|runtime)\s+|\w{1,40})?
        (?:error|exception)(?:\s*[:(\[-]|\s+(?:-?\d+|\w+ing|while|during)\b|\W*$)
      | traceback\s\(most\srecent
      | failed\sto\s(?:search|retrieve|load|connect|store|save|fetch|query|call|execute|process
        |initiali[sz]e|generate|embed|read|open)\b
      | (?:search|query|request|operation|tool(?:\scall)?|call|retrieval|embedding)\sfailed\b
      | unknown\stool\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
LONGEST_NOTICE = 1000
"""Maximum characters of such a message; a longer text is a result."""


def reports_no_results(text: str, pattern: str | None = None) -> bool:
    """Whether text reports that nothing was found: in one of the common forms, as JSON without
    content, or in a form that `pattern` matches.
    """
    plain = text.strip()
    if pattern is not None and re.search(pattern, plain):
        return True
    if not plain:
        return True
    if len(plain) > LONGEST_NOTICE:
        return False

    return bool(_NOTHING.fullmatch(plain)) or is_empty_result(_json_of(plain))


def error_in(text: str) -> str | None:
    """The error that a text reports; None if it reports none."""
    value = _json_of(text.strip())
    if isinstance(value, Mapping):
        error = value.get("error") or (value.get("status") == "error" and value.get("message"))
        return str(error) if error else None

    plain = text.strip()
    if value is None and len(plain) <= LONGEST_NOTICE and _ERROR.match(plain):
        return plain

    return None


def _json_of(text: str) -> Any:
    """The JSON of a text, if it is an object or a list; else None."""
    return json_or_none(text) if text.startswith(("{", "[")) else None


def is_empty_result(value: Any) -> bool:
    """Whether JSON contains only empty values, zeros, booleans and phrases for "nothing found"."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))

    return isinstance(value, list) and not value


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return bool(_NOTHING.fullmatch(value.strip())) or not value.strip()

    return not value or value is True
