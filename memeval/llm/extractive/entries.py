"""Sentences that can stand alone, with date and speaker, for summaries and forms."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from memeval.llm.extractive.sentences import parse_stamp, read_chunk

_HEAD = re.compile(
    r"\s*(?:\[(?P<stamp>[^\[\]]*\d[^\[\]]*)\]\s*)?(?:(?P<speaker>[^\W\d_][^:\[\]\n.!?]{0,39}):\s+)?"
)


class SourceSentence(Struct, frozen=True):
    """One sentence of a chunk, as it was written."""

    stamp: str
    """The date as its chunk shows it, without brackets; empty without a date."""
    speaker: str
    """Empty if the line names none."""
    text: str
    terms: frozenset[str]
    """Its stems, without those of stop words."""
    telling: frozenset[str]
    """The stems among `terms` of names and numbers: capitals within the sentence, and digits."""
    asks: bool

    @property
    def line(self) -> str:
        """The sentence as a separate chunk."""
        line = self.text
        if self.speaker:
            line = f"{self.speaker}: {line}"
        if self.stamp:
            line = f"[{self.stamp}] {line}"

        return line


def entries(chunks: Iterable[str]) -> Iterator[SourceSentence]:
    for chunk in chunks:
        heads = list(_heads(chunk))
        for sentence in read_chunk(chunk):
            stamp, speaker = heads[sentence.line]
            text = sentence.text.strip()
            if sentence.caption:
                text = f"[shares an image: {sentence.text}]"

            telling = set()
            for (start, _), term in zip(sentence.spans, sentence.stems, strict=True):
                first = sentence.text[start]
                if term and (first.isdigit() or (start and first.isupper())):
                    telling.add(term)

            yield SourceSentence(
                stamp=stamp,
                speaker=speaker,
                text=text,
                terms=sentence.terms,
                telling=frozenset(telling),
                asks=sentence.asks,
            )


def _heads(chunk: str) -> Iterator[tuple[str, str]]:
    """Date and speaker of each line; a date applies until the next one."""
    stamp = ""
    for line in chunk.split("\n"):
        head = _HEAD.match(line)
        assert head is not None  # every part of it is optional
        if head["stamp"] and parse_stamp(head["stamp"]):
            stamp = head["stamp"]

        yield stamp, (head["speaker"] or "").strip()


def block(chosen: Iterable[SourceSentence]) -> str:
    """The entries as one chunk, under their dates and speakers; undated ones first."""
    lines: list[str] = []
    stamp, speaker = "", ""

    for entry in sorted(chosen, key=lambda entry: bool(entry.stamp)):
        if lines and entry.stamp == stamp and entry.speaker == speaker:
            lines[-1] += f" {entry.text}"
        else:
            shown = replace(entry, stamp="") if entry.stamp == stamp else entry
            lines.append(shown.line)

        stamp, speaker = entry.stamp, entry.speaker

    return "\n".join(lines)
