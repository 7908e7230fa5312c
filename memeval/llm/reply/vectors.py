"""The reply of an embeddings endpoint."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memeval.llm.reply.body import UnsoundReplyError, batch_tokens, in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]


LARGEST_NUMBER = 1e6
"""Limit for a vector's numbers. Real vectors stay far below: their length is 1 or a few hundred."""
SHORTEST_VECTOR = 1e-6
"""A shorter vector carries no information."""


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

    rows = in_order(reply.get("data"), count, "vector", "text")
    numbers = _numbers([row.get("embedding") for row in rows])
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

    tokens, notes = batch_tokens(reply.get("usage"), "prompt_tokens", "total_tokens")

    # Length 1, so that the cosine is a plain product, and the cache can check what it stored.
    return VectorsReply((numbers / lengths).astype(np.float32), tokens, notes)


def _numbers(embeddings: Sequence[object]) -> NDArray[np.float64]:
    import numpy as np

    rows = list(map(_decode, embeddings))
    if not all(isinstance(row, list | np.ndarray) and len(row) for row in rows):
        raise UnsoundReplyError("a vector is not a list of numbers")

    try:
        numbers = np.array(rows)
    except (ValueError, TypeError, OverflowError) as error:
        raise UnsoundReplyError("the vectors are not lists of numbers of equal length") from error

    # `np.array` also takes booleans and strings of digits, and rows of unequal length as objects.
    if numbers.dtype.kind not in "fiu" or numbers.ndim != 2:
        raise UnsoundReplyError("the vectors are not lists of numbers of equal length")

    return numbers.astype(np.float64)


def _decode(embedding: object) -> Any:
    """A vector in base64 as float32, little-endian; anything else as it is."""
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
