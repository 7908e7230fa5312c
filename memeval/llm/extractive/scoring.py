"""Scores candidate spans of the best sentences by a sum of weighted features."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memeval.llm.extractive.questions import ExpectedAnswer, ParsedQuestion
from memeval.llm.extractive.ranking import EVIDENCE, ContextIndex, Ranking
from memeval.llm.extractive.sentences import Sentence
from memeval.llm.extractive.spans import STATIC, Spans, spans

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

DYNAMIC = tuple(
    """
        asked_inside new_words near_left near_right right_after alone speaker_name top_sentence
        rarity topic_inside topic_next topic_before topic_last after_verb close_left
        pictured_caption
    """.split()
)
"""Features that depend on the question."""

BY_KIND: dict[ExpectedAnswer, tuple[str, ...]] = {
    ExpectedAnswer.COUNT: ("log_length", "number"),
    ExpectedAnswer.DURATION: ("log_length", "number", "time_unit"),
    ExpectedAnswer.WHERE: ("log_length", "capital", "place", "starts_preposition"),
    ExpectedAnswer.WHO: ("log_length", "capital", "after_preposition"),
    ExpectedAnswer.NAME: ("log_length", "capital", "quoted"),
    ExpectedAnswer.WHY: ("log_length", "reason", "first", "pronoun"),
    ExpectedAnswer.HOW: ("log_length", "evaluative", "means", "starts_ing", "first"),
    ExpectedAnswer.DO: tuple(
        "log_length after_pronoun starts_ing starts_ed after_auxiliary pronoun".split()
    ),
    ExpectedAnswer.LIST: ("log_length", "comma", "and", "after_preposition", "capital"),
    ExpectedAnswer.WHAT: ("log_length", "after_determiner", "capital", "quoted"),
}
"""Static features that get a separate weight for each kind of question."""

_OF_KINDS = [f"{kind}:{name}" for kind, names in BY_KIND.items() for name in names]
NAMES = (*STATIC, *DYNAMIC, *EVIDENCE, *_OF_KINDS)
"""All features, in the order of the columns of `features`."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The candidate spans of the best sentences, in parallel arrays."""

    sentences: tuple[Sentence, ...]
    owner: NDArray[np.int64]
    """Index in `sentences` of each candidate's sentence."""
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    features: Matrix

    def text(self, number: int) -> str:
        """A candidate as written in its sentence."""
        sentence = self.sentences[int(self.owner[number])]
        span = sentence.text[
            sentence.spans[self.starts[number]][0] : sentence.spans[self.ends[number]][1]
        ]
        return span.removesuffix("'s").removesuffix("’s")


def candidates(question: ParsedQuestion, context: ContextIndex, ranking: Ranking) -> Candidates:
    """All candidates of the ranking's sentences with their features."""
    chosen = tuple(context.sentences[number] for number in ranking.best)
    owners, starts, ends, statics, dynamics = [], [], [], [], []
    for rank, sentence in enumerate(chosen):
        part = spans(sentence)
        owners.append(np.full(len(part.starts), rank))
        starts.append(part.starts)
        ends.append(part.ends)
        statics.append(part.features)
        dynamics.append(_dynamic(question, context, ranking, rank, part))

    static: Matrix = np.concatenate(statics)
    return Candidates(
        sentences=chosen,
        owner=np.concatenate(owners),
        starts=np.concatenate(starts),
        ends=np.concatenate(ends),
        features=np.hstack([static, np.concatenate(dynamics), _by_kind(question.kind, static)]),
    )


def scores(candidates: Candidates) -> Vector:
    """The score of each candidate; only the order and the differences of scores are meaningful."""
    result: Vector = candidates.features @ _VECTOR
    return result


_WEIGHTS = tomllib.loads(Path(__file__).with_name("scoring.toml").read_text(encoding="utf-8"))
"""The weights by name of the feature; a feature that is not listed has weight 0."""
_VECTOR = np.array([_WEIGHTS.get(name, 0.0) for name in NAMES])
_STATIC_COLUMN = {name: column for column, name in enumerate(STATIC)}


def _by_kind(kind: ExpectedAnswer, static: Matrix) -> Matrix:
    blocks = []
    for each, names in BY_KIND.items():
        columns = static[:, [_STATIC_COLUMN[name] for name in names]]
        if each is not kind:
            columns = np.zeros_like(columns)

        blocks.append(columns)

    return np.hstack(blocks)


def _dynamic(
    question: ParsedQuestion, context: ContextIndex, ranking: Ranking, rank: int, part: Spans
) -> Matrix:
    """Columns `DYNAMIC` and `EVIDENCE` for candidates of the sentence at a rank."""
    sentence = context.sentences[ranking.best[rank]]
    weights, stems = ranking.weights, sentence.stems
    total = sum(weights.values()) or 1.0
    asked, fresh, rare, topic, verb = _by_token(question, context, weights, stems)
    spoken = np.array(
        [word.removesuffix("'s") in context.spoken for word in sentence.words], dtype=float
    )
    left, right = _leftward(asked > 0), _leftward((asked > 0)[::-1])[::-1]
    inside, new = _sums(asked, part), _sums(fresh, part)
    near_left, near_right = left[part.starts], right[part.ends]
    after = np.append(topic, [0.0, 0.0, 0.0])
    caption = float(question.pictured and sentence.caption)
    ones = np.ones(len(part.starts))

    return np.column_stack(
        [
            inside / total,
            np.log1p(new),
            near_left,
            near_right,
            near_left >= 0.5,
            (near_left == 0) & (near_right == 0),
            _sums(spoken, part) > 0,
            ones * (rank == 0),
            _sums(rare, part) / np.maximum(new, 1.0),
            _sums(topic, part) > 0,
            after[part.ends + 1],
            np.where(part.starts > 0, topic[part.starts - 1], 0.0),
            topic[part.ends],
            _follows(verb > 0, stems)[part.starts],
            _follows(asked > 0, stems)[part.starts],
            ones * caption,
            *(ones * value for value in ranking.evidence[rank]),
        ]
    )


def _by_token(
    question: ParsedQuestion,
    context: ContextIndex,
    weights: Mapping[str, float],
    stems: Sequence[str],
) -> Matrix:
    """Per token: its weight if it is asked; whether it is new, and then its rarity; whether it is
    of the question's topic; whether it is the question's verb. A row of each.
    """
    values = np.zeros((5, len(stems)))
    asked, fresh, rare, topic, verb = values
    for token, term in enumerate(stems):
        if not term:
            continue

        if term in weights:
            asked[token] = weights[term]
        else:
            fresh[token], rare[token] = 1, context.idf(term)

        topic[token] = term in question.topic
        verb[token] = term == question.verb

    return values


def _follows(marked: NDArray[np.bool_], stems: Sequence[str]) -> Vector:
    """1 for tokens that follow a marked one with no other content word between."""
    follows = np.zeros(len(stems))
    open_ = False

    for token, term in enumerate(stems):
        follows[token] = open_
        if term:
            open_ = bool(marked[token])

    return follows


def _sums(values: Vector, part: Spans) -> Vector:
    """The sum of the values of each candidate's tokens."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    result: Vector = running[part.ends + 1] - running[part.starts]
    return result


def _leftward(asked: NDArray[np.bool_]) -> Vector:
    """Per token, 1 / distance to the nearest asked token on the left; 0 if there is none."""
    near = np.zeros(len(asked))
    last = -1

    for token, is_asked in enumerate(asked):
        if last >= 0:
            near[token] = 1 / (token - last)
        if is_asked:
            last = token

    return near
