"""The formats that can be imported, and the rule that recognises each."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from memeval.datasets.importing.chats import is_agent, is_chat, is_sharegpt
from memeval.datasets.importing.messengers import is_telegram
from memeval.datasets.importing.slack import is_slack


def _has_fields(*fields: str) -> Callable[[Mapping[str, Any]], bool]:
    return set(fields).issubset


class Form(Struct, frozen=True):
    title: str
    recognises: Callable[[Mapping[str, Any]], bool]
    """Whether a record has this format."""
    case: str = "conversation"
    """Key that groups messages into cases, unless the user names one."""


FORMS: Mapping[str, Form] = {
    "chatgpt": Form("an export of ChatGPT", _has_fields("mapping")),
    "claude": Form("an export of Claude", _has_fields("chat_messages")),
    "locomo": Form("a file in LoCoMo's format", _has_fields("sample_id", "conversation")),
    "longmemeval": Form("a file in LongMemEval's format", _has_fields("haystack_sessions")),
    "memory_agent_bench": Form(
        "a file in MemoryAgentBench's format", _has_fields("context", "questions")
    ),
    "agent": Form("sessions of a coding agent", is_agent, case="folder"),
    "telegram": Form("an export of Telegram", is_telegram),
    "messages": Form("chat messages", is_chat),
    "slack": Form("an export of Slack", is_slack, case="channel"),
    "sharegpt": Form("conversations of ShareGPT", is_sharegpt),
    # Text and tables have rows, not records.
    "whatsapp": Form("an export of WhatsApp", lambda _: False),
    "table": Form("a table of messages", lambda _: False),
}
"""Formats by the name that `--as` takes. The first one that recognises a record wins."""
MAX_EXAMINED = 1_000
"""Maximum number of records of a file that are used to recognise its format."""
OWN = "dataset=json"


def recognise(records: Sequence[Any]) -> str | None:
    """The format of most records; None if unknown. `OWN` is the format that an import writes."""
    votes = Counter(filter(None, map(_form_of, records[:MAX_EXAMINED])))
    return votes.most_common(1)[0][0] if votes else None


def _form_of(record: Any) -> str | None:
    if isinstance(record, list):
        # A list of messages is a single conversation.
        first = next((item for item in record if isinstance(item, dict)), {})
        return "messages" if is_chat(first) else None
    if not isinstance(record, dict):
        return None
    if "cases" in record or ("sessions" in record and "questions" in record):
        return OWN

    return next((name for name, form in FORMS.items() if form.recognises(record)), None)
