"""The pipeline's progress reports; the command line displays them."""

from collections.abc import Sequence

from memeval.pipeline.open.connections import Connections
from memeval.records import Usage


class Progress:
    """Receives reports on each stage's work; `stage` is one of prepare, answer, judge.

    This class ignores them; displays are subclasses.
    """

    def expect(self, stage: str, count: int) -> None:
        """A stage has `count` more items."""

    def done(self, stage: str, *, reused: bool = False, failed: bool = False) -> None:
        """One item has ended: `reused` if an earlier run had done it, `failed` without a result."""

    def spent(self, usages: Sequence[Usage]) -> None:
        """Usages of the calls that an item took."""

    def scored(self, score: float) -> None:
        """A question that counts for the accuracy was judged, in this pass or before."""

    def watch(self, connections: Connections) -> None:
        """Counts failures and retries of the endpoints that are called."""

    def say(self, message: str) -> None:
        """Shows a message to the user on a separate line."""
