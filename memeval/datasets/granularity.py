"""Cuts the sessions of a case into the chunks that are ingested.

A chunk's content has one line `speaker: text` per turn, with the caption of a shared image
appended. Its date is its `time`, never part of the content. Ids are built from session ids, turn
ids and counters: they reveal nothing about evidence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from msgspec import Struct

from memeval.config.schema import GranularityConfig
from memeval.errors import UserError, unknown
from memeval.llm.tokens import count_tokens
from memeval.records import TOOL_SPEAKER, EvalCase, MemoryChunk, Session, Turn
from memeval.text.words import BY_CHARACTER

WITH_SPEAKERS = ("session", "round", "event", "turn")
WORD = re.compile(rf"[{BY_CHARACTER}]|[^\s{BY_CHARACTER}]+")


def chunks(case: EvalCase, granularity: GranularityConfig) -> list[MemoryChunk]:
    """The chunks of a case, in the order in which they are ingested."""
    if granularity.name not in CUTS:
        raise unknown("granularity", granularity.name, CUTS)

    if granularity.name != "chunk" and (granularity.size, granularity.overlap) != (None, None):
        raise UserError(
            f"granularity={granularity.name} has no size and no overlap; use granularity=chunk."
        )

    if granularity.name not in WITH_SPEAKERS and not granularity.speakers:
        raise UserError(
            f"granularity={granularity.name} has no speakers to omit: "
            f"granularity.speakers=false needs {', '.join(WITH_SPEAKERS)}."
        )

    return list(CUTS[granularity.name](case, granularity))


def chunks_by(
    case: EvalCase, name: str, size: int | None = None, overlap: int | None = None
) -> list[MemoryChunk]:
    """The chunks of a case by the name of a granularity; `chunk` has a size and an overlap."""
    return chunks(case, GranularityConfig(name, size, overlap))


def has_chunks(case: EvalCase, name: str) -> bool:
    """Whether the data set has the texts of a case that `granularity=summary` or `observation`
    shows; always true for other granularities.
    """
    is_own = name in ("summary", "observation")
    return not is_own or any(CUTS[name](case, GranularityConfig(name)))


def line(turn: Turn) -> str:
    """A turn as its chunks show it."""
    return f"{turn.speaker}: {with_caption(turn)}"


def _by_session(case: EvalCase, granularity: GranularityConfig) -> Iterator[MemoryChunk]:
    """Skips sessions without turns. With `speakers=false` such a session is an empty chunk, because
    the protocols that leave speakers out count it.
    """
    for session in case.sessions:
        if session.turns or not granularity.speakers:
            yield _whole(session.session_id, session, session.turns, granularity)


def _by_turn(case: EvalCase, granularity: GranularityConfig) -> Iterator[MemoryChunk]:
    for session in case.sessions:
        for turn in session.turns:
            yield _whole(turn.turn_id, session, [turn], granularity)


def _by_round(case: EvalCase, granularity: GranularityConfig) -> Iterator[MemoryChunk]:
    """CogCanvas' merged turns (arXiv 2601.00821), over the concatenated sessions.

    The first speaker's turn opens or joins a round. The other's turn closes it, or is a round
    itself if none is open. A session after which the memory is queried or changed also ends it.
    """
    opener = next(iter(case.speakers), None) or next((turn.speaker for turn in case.turns), None)
    turns: list[Turn] = []
    first: Turn | None = None
    last: Session | None = None
    rounds: list[tuple[Session, list[Turn], Turn | None]] = []

    for session in case.sessions:
        for turn in session.turns:
            # A round may begin in the previous session, at another time.
            if session is not last or not turns:
                first = turn

            turns.append(turn)
            last = session
            if turn.speaker != opener:
                # A round that spans two sessions gets the later one's id and date: its opening turn
                # is a goodbye without a reply, and 102 of the 106 evidence turns in LoCoMo's 137
                # such rounds are in the later session.
                rounds.append((session, turns, first))
                turns = []

        if turns and session.session_id in case.stops:
            rounds.append((session, turns, first))
            turns = []

    if last and turns:
        rounds.append((last, turns, first))

    for number, (session, members, first) in enumerate(rounds, start=1):
        yield _whole(f"x{number}", session, members, granularity, first)


def _by_event(case: EvalCase, granularity: GranularityConfig) -> Iterator[MemoryChunk]:
    """Each turn of a speaker, with the calls and results of tools that follow it in the session."""
    for session in case.sessions:
        events: list[list[Turn]] = []
        for turn in session.turns:
            if turn.speaker == TOOL_SPEAKER and events:
                events[-1].append(turn)
            else:
                events.append([turn])

        for turns in events:
            yield _whole(turns[0].turn_id, session, turns, granularity)


def _by_size(case: EvalCase, granularity: GranularityConfig) -> Iterator[MemoryChunk]:
    """Chunks of at most `size` tokens that never span sessions.

    They are cut between turns. A turn longer than `size` is split between words, and each part
    repeats the speaker's name. The overlap with the previous chunk is cut by the same rule. A
    single word that is longer than `size` with the speaker's name stays whole.
    """
    size, overlap = granularity.size, granularity.overlap or 0
    if size is None or size < 1:
        raise UserError(f"granularity=chunk needs a size of one token or more, not {size}.")

    if not 0 <= overlap < size:
        raise UserError(
            f"granularity=chunk: the overlap must be from 0 to less than the size of {size} "
            f"tokens, not {overlap}."
        )

    for session in case.sessions:
        for number, parts in enumerate(_pack(session.turns, size, overlap), start=1):
            turns = [part.turn for part in parts]
            content = "\n".join(part.text for part in parts)
            yield _chunk(f"{session.session_id}.{number}", session, turns, content)


def _by_summary(case: EvalCase, _: GranularityConfig) -> Iterator[MemoryChunk]:
    """The data set's summary of each session, in place of all its turns."""
    for session in case.sessions:
        if session.summary:
            chunk_id = f"{session.session_id}.summary"
            yield _chunk(chunk_id, session, session.turns, session.summary)


def _by_observation(case: EvalCase, _: GranularityConfig) -> Iterator[MemoryChunk]:
    """The data set's observations, each in place of the turns that it is based on."""
    for session in case.sessions:
        for number, observation in enumerate(session.observations, start=1):
            yield MemoryChunk(
                chunk_id=f"{session.session_id}.o{number}",
                content=f"{observation.speaker}: {observation.text}",
                time=session.started_at,
                session_id=session.session_id,
                turn_ids=observation.turn_ids,
                speakers=(observation.speaker,),
            )


CUTS: Mapping[str, Callable[[EvalCase, GranularityConfig], Iterator[MemoryChunk]]] = {
    "session": _by_session,
    "round": _by_round,
    "event": _by_event,
    "turn": _by_turn,
    "chunk": _by_size,
    "summary": _by_summary,
    "observation": _by_observation,
}


def _whole(
    chunk_id: str,
    session: Session,
    turns: Sequence[Turn],
    granularity: GranularityConfig,
    first: Turn | None = None,
) -> MemoryChunk:
    """A chunk of whole turns, with or without speakers."""
    content = "\n".join(map(line, turns))
    if not granularity.speakers:
        content = " ".join(map(with_caption, turns))

    return _chunk(chunk_id, session, turns, content, first)


def _chunk(
    chunk_id: str,
    session: Session,
    turns: Sequence[Turn],
    content: str,
    first: Turn | None = None,
) -> MemoryChunk:
    """A chunk of a session.

    Its time is that of `first` (by default the first turn); if that has none, the session's start.
    """
    first = first or next(iter(turns), None)
    return MemoryChunk(
        chunk_id=chunk_id,
        content=content,
        time=(first and first.time) or session.started_at,
        session_id=session.session_id,
        turn_ids=tuple(turn.turn_id for turn in turns),
        speakers=_shared(tuple(dict.fromkeys(turn.speaker for turn in turns))),
    )


@lru_cache(maxsize=1_000)
def _shared(speakers: tuple[str, ...]) -> tuple[str, ...]:
    """The same object for equal tuples: a million chunks have only a few speakers."""
    return speakers


def with_caption(turn: Turn) -> str:
    """A turn's text, with the caption of the image that it shares, if any."""
    return f"{turn.text} [shares an image: {turn.caption}]" if turn.caption else turn.text


class _Part(Struct, frozen=True):
    """A turn, or a run of words of a turn that is longer than a chunk."""

    turn: Turn
    text: str
    cost: int
    """Number of tokens of the text, including the speaker."""


def _pack(turns: Sequence[Turn], size: int, overlap: int) -> Iterator[list[_Part]]:
    """Fills chunks with parts. Each chunk starts with as many whole parts of the previous chunk as
    fit into the overlap and leave room for the next part.

    Two parts of one turn never share a chunk: together they are too long.
    """
    chunk: list[_Part] = []
    for turn in turns:
        for part in _parts(turn, size, overlap):
            if chunk and _cost(chunk) + part.cost > size:
                yield chunk
                chunk = _last(chunk, min(overlap, size - part.cost))

            chunk.append(part)

    if chunk:
        yield chunk


def _parts(turn: Turn, size: int, overlap: int) -> Iterator[_Part]:
    """The whole turn if it fits into a chunk, else runs of its words that do."""
    body, whole = with_caption(turn), line(turn)
    words, cost = list(WORD.finditer(body)), count_tokens(whole)
    if not words or cost <= size:
        yield _Part(turn=turn, text=whole, cost=cost)
        return

    upto = [0, *accumulate(count_tokens(word.group()) for word in words)]
    room = size - count_tokens(f"{turn.speaker}:")
    start = done = 0
    while done < len(words):
        end = done + 1
        while end < len(words) and upto[end + 1] - upto[start] <= room:
            end += 1

        text = f"{turn.speaker}: {body[words[start].start() : words[end - 1].end()]}"
        yield _Part(turn=turn, text=text, cost=size - room + upto[end] - upto[start])
        # Go back over the repeated words, but not to the start of this part: that many did not fit.
        start = done = end
        while (
            done < len(words)
            and upto[done] - upto[start - 1] <= overlap
            and upto[done + 1] - upto[start - 1] <= room
        ):
            start -= 1


def _last(chunk: Sequence[_Part], room: int) -> list[_Part]:
    """The longest tail of whole parts that costs no more than `room` tokens."""
    start = len(chunk)
    while start > 0 and _cost(chunk[start - 1 :]) <= room:
        start -= 1

    return list(chunk[start:])


def _cost(parts: Iterable[_Part]) -> int:
    return sum(part.cost for part in parts)
