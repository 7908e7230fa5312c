"""The simple rule by which all built-in systems forget and correct. A chunk is forgotten if it
contains every word of the request's `about`, as `memeval.text.value_search` defines it; every chunk
is forgotten if `about` is empty, or the scope is the user. So a fact stated in other words stays,
and a second fact in the same chunk is removed. To correct, the old value is replaced with the new
one in every chunk that contains it verbatim.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from memeval.records import CorrectRequest, ForgetRequest, MemoryChunk, Scope
from memeval.text.value_search import replace_value, values_in


def is_meant(request: ForgetRequest, text: str) -> bool:
    """Whether a request to forget covers a text, regardless of the text's user."""
    if request.scope is Scope.USER:
        return True

    words = tuple(dict.fromkeys(request.about.split()))
    return values_in(words, text) == words


def without(chunks: Iterable[MemoryChunk], request: ForgetRequest) -> list[MemoryChunk]:
    """The chunks that remain after a request to forget."""
    return [
        chunk
        for chunk in chunks
        if chunk.user != request.user or not is_meant(request, chunk.content)
    ]


def corrected(chunks: Iterable[MemoryChunk], request: CorrectRequest) -> list[MemoryChunk]:
    """The chunks with the new value in place of the old one."""
    after = list(chunks)
    for position, chunk in enumerate(after):
        if chunk.user == request.user:
            content = replace_value(chunk.content, request.old, request.new)
            after[position] = replace(chunk, content=content)

    return after


def forget_in(
    texts: Mapping[str, str], request: ForgetRequest, delete: Callable[[str], object]
) -> int:
    """Deletes the entries of a store that a request covers; returns their number.

    `texts` are the texts of the request's user by the ids that the store knows.
    """
    meant = [name for name, text in texts.items() if is_meant(request, text)]
    for name in meant:
        delete(name)

    return len(meant)


def correct_in(
    texts: Mapping[str, str], request: CorrectRequest, update: Callable[[str, str], object]
) -> list[str]:
    """Updates the entries of a store that contain the old value; returns their new texts."""
    changed = []
    for name, before in texts.items():
        after = replace_value(before, request.old, request.new)
        if after != before:
            update(name, after)
            changed.append(after)

    return changed


def count_changed(before: Sequence[object], after: Sequence[object]) -> int:
    return sum(old != new for old, new in zip(before, after, strict=True))
