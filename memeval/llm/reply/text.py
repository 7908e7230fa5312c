"""The text of a reply, without what is not part of an answer: control characters and thinking."""

from __future__ import annotations

import re

# What a reader, a terminal or a database can't hold: control characters but for tab and line ends,
# and halves of characters.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
_BREAKS = re.compile(r"[\x85\u2028\u2029]")  # what splits lines in some readers only
_HALVES = re.compile(r"[\ud800-\udfff]")


def without_controls(text: str) -> tuple[str, bool]:
    """`text` without control characters, odd line ends as `\\n`, halves of characters as U+FFFD.

    And whether any were there.

    Two halves that make one character are joined.
    """
    if text.isprintable():
        return text, False

    whole = text
    if _HALVES.search(text):
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        whole = _HALVES.sub("\ufffd", whole)

    clean = _CONTROLS.sub("", whole)
    clean = _BREAKS.sub("\n", clean)

    return clean, clean != text


_TAGS = "think|thinking|thought|thoughts|reasoning|antthinking|seed:think"
_OPEN = (
    rf"<(?:{_TAGS})(?:\s[^<>]{{0,80}})?>|<\|begin_of_thought\|>|<\|(?:start_)?thinking\|>|"
    r"\[think\]|◁think▷|<unused94>"
)
_CLOSE = (
    rf"</(?:{_TAGS})\s?>|<\|end_of_thought\|>|<\|(?:end_|/)thinking\|>|\[/think\]|◁/think▷|"
    r"<unused95>"
)
_MARKS = re.compile(rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
_SOLUTION = re.compile(r"<\|(?:begin|end)_of_solution\|>", re.IGNORECASE)
_HARMONY = re.compile(r"<\|channel\|>\s?final\s?<\|message\|>")
_HARMONY_END = re.compile(r"<\|(?:end|return)\|>")


def without_thinking(text: str) -> tuple[str, bool]:
    """`text` without the thinking that a model wrote into it, stripped; and whether there was any.

    Taken out are a marked block, wherever it stands; all before a closing mark that nothing opened
    (the prompt did); and all from an opening mark on that nothing closes, where the mark begins a
    line.
    """
    harmony = list(_HARMONY.finditer(text))
    if harmony:
        return _HARMONY_END.split(text[harmony[-1].end() :], maxsplit=1)[0].strip(), True
    if not (marks := list(_MARKS.finditer(text))):
        return text.strip(), False

    kept: list[str] = []
    start = depth = 0
    last_open: re.Match[str] | None = None
    changed = False

    for mark in marks:
        if mark["open"] is not None:
            if depth == 0:
                kept.append(text[start : mark.start()])
                start, last_open = mark.start(), mark

            depth += 1
        else:
            if depth == 0:
                kept.clear()

            depth = max(0, depth - 1)
            if depth == 0:
                start, changed = mark.end(), True

    if depth and last_open is not None:
        opened = text[: last_open.start()]
        if not opened.strip() or opened.rstrip(" \t").endswith("\n"):
            start, changed = len(text), True

    kept.append(text[start:])
    joined = "".join(kept)

    return _SOLUTION.sub("", joined).strip(), changed
