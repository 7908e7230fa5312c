"""Removes control characters and thinking from the text of a reply."""

import re

from memeval.results.files import HALF_CHARACTER, without_halves

# Readers, terminals and databases can't handle control characters (other than tabs and line ends)
# or halves of surrogate pairs.
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")
# Only some readers split lines at these.
_BREAKS = re.compile(r"[\x85\u2028\u2029]")


def without_controls(text: str) -> tuple[str, bool]:
    """`text` without control characters and odd line ends, and whether it changed."""
    if text.isprintable():
        return text, False

    repaired = text
    if HALF_CHARACTER.search(text):
        # UTF-16 joins two halves that belong together, as JSON escapes write them.
        repaired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        repaired = without_halves(repaired)

    clean = _BREAKS.sub("\n", _CONTROLS.sub("", repaired))
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
THINKING_MARKS = re.compile(rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
"""Marks around a model's thinking: groups `open` and `close`."""
_SOLUTION = re.compile(r"<\|(?:begin|end)_of_solution\|>", re.IGNORECASE)
HARMONY = re.compile(r"<\|channel\|>\s?final\s?<\|message\|>")
"""The mark before an answer of gpt-oss."""
_HARMONY_END = re.compile(r"<\|(?:end|return)\|>")


def without_thinking(text: str) -> tuple[str, bool]:
    """`text` without a model's thinking, stripped, and whether there was any.

    Three parts are removed: each marked block, the text before a closing mark without an opening
    one, and the text after an opening mark at the start of a line without a closing one.
    """
    # gpt-oss thinks in separate channels; the last `final` one is the answer.
    harmony = list(HARMONY.finditer(text))
    if harmony:
        return _HARMONY_END.split(text[harmony[-1].end() :], maxsplit=1)[0].strip(), True
    if not THINKING_MARKS.search(text):
        return text.strip(), False

    kept: list[str] = []
    start = depth = 0
    last_open: re.Match[str] | None = None
    changed = False

    for mark in THINKING_MARKS.finditer(text):
        if mark["open"] is not None:
            if depth == 0:
                kept.append(text[start : mark.start()])
                start, last_open = mark.start(), mark

            depth += 1
        else:
            # The prompt opened this block, so the reply began inside of it.
            if depth == 0:
                kept.clear()

            depth = max(0, depth - 1)
            if depth == 0:
                start, changed = mark.end(), True

    if depth and last_open is not None:
        # Within a line, the mark is more likely a quotation than the start of a block.
        before = text[: last_open.start()]
        if not before.strip() or before.rstrip(" \t").endswith("\n"):
            start, changed = len(text), True

    kept.append(text[start:])
    return _SOLUTION.sub("", "".join(kept)).strip(), changed
