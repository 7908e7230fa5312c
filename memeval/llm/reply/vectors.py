"""The reply of an embeddings endpoint."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memeval.llm.reply.body import IndexedRow, UnsoundReplyError, batch_tokens, in_order, read

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


LARGEST_NUMBER = 1e6
"""Limit for a vector's numbers. Real vectors stay far below: their length is 1 or a few hundred."""
SHORTEST_VECTOR = 1e-6
"""A shorter vector carries no information."""


class _Row(IndexedRow, kw_only=True):
    embedding: list[float] | str
    """Numbers, or the same as float32 in base64, little-endian."""


class _Vectors(Struct):
    data: list[_Row]
    usage: Any = None


class VectorsReply(Struct, frozen=True):
    """The sound part of an embeddings reply."""

    vectors: Matrix
    """A row of length 1 for each text, in the order sent."""
    tokens: int | None
    """None if the endpoint did not report them."""
    notes: tuple[str, ...] = ()


def read_vectors(reply: Mapping[str, Any], count: int, width: int | None) -> VectorsReply:
    """The vectors of `count` texts, `width` numbers each if known. Raises `UnsoundReplyError`."""
    import numpy as np

    sent = read(reply, _Vectors)
    rows = [_numbers(row.embedding) for row in in_order(sent.data, count, "vector", "text")]
    if len({len(row) for row in rows}) != 1 or not len(rows[0]):
        raise UnsoundReplyError("the vectors are not lists of numbers of equal length")

    numbers = np.array(rows, dtype=np.float64)
    if width and numbers.shape[1] != width:
        raise UnsoundReplyError(
            f"the vectors have {numbers.shape[1]} numbers, but this model's have {width}"
        )

    if not np.isfinite(numbers).all():
        raise UnsoundReplyError("a vector contains numbers that are not finite")
    if np.abs(numbers).max() > LARGEST_NUMBER:
        raise UnsoundReplyError(f"a vector contains numbers beyond {LARGEST_NUMBER:g}")

    lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
    if lengths.min() < SHORTEST_VECTOR:
        raise UnsoundReplyError("a vector is all zeros")

    tokens, notes = batch_tokens(sent.usage, "prompt_tokens", "total_tokens")

    # Length 1, so that the cosine is a plain product, and the cache can check what it stored.
    return VectorsReply((numbers / lengths).astype(np.float32), tokens, notes)


def _numbers(embedding: list[float] | str) -> list[float] | NDArray[np.float32]:
    import numpy as np

    if not isinstance(embedding, str):
        return embedding

    try:
        return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4")
    except (binascii.Error, ValueError) as error:
        raise UnsoundReplyError("a vector is neither a list of numbers nor base64") from error


def sound_vector(packed: bytes, width: int | None) -> bool:
    """Whether a stored vector is whole, finite, of length 1, and of the known width."""
    import numpy as np

    if not packed or len(packed) % 4 or (width and len(packed) != 4 * width):
        return False

    vector = np.frombuffer(packed, dtype=np.float32)
    with np.errstate(all="ignore"):
        length = float(np.dot(vector, vector))

    return abs(length - 1.0) < 1e-3  # False for NaN, too
