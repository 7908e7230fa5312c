"""The figures of a run so far: accuracy, cost, retries and failed calls."""

from collections.abc import Sequence

from msgspec import Struct

from memeval.llm.load import Load, sum_of
from memeval.metrics.formats import dollars
from memeval.pipeline.open.connections import Connections
from memeval.records import Usage
from memeval.results.prices import total_cost_usd
from memeval.statistics.means import sum_or_none
from memeval.text.shown import counted


class LiveFigures(Struct):
    """The figures of a run or a sweep at one moment."""

    score: float = 0.0
    scored: int = 0
    tokens: int = 0
    calls: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0
    """Cost billed; None if a price is unknown."""
    connections: Connections | None = None

    @property
    def loads(self) -> Sequence[Load]:
        return self.connections.loads() if self.connections else []

    @property
    def load(self) -> Load:
        """The load of all endpoints together."""
        return sum_of(self.loads)

    def add_usages(self, usages: Sequence[Usage]) -> None:
        paid = []
        for usage in usages:
            if usage.cached:  # costs nothing now
                self.cached += usage.calls
                continue

            paid.append(usage)
            self.tokens += (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
            if usage.provider != "offline":  # which makes no call at all
                self.calls += usage.calls

        # Unknown stays unknown: a sum without the unknown part would look like the total.
        self.cost_usd = sum_or_none([self.cost_usd, total_cost_usd(paid, billed=True)])

    @property
    def text(self) -> str:
        """`acc 45.2, $0.01, 3 retries, 1 failed`, without the parts that are empty; before the
        first reply, the number of calls under way.
        """
        parts, load = [], self.load
        if load.under_way and not self.calls:
            parts.append(f"{counted(load.under_way, 'call')} under way")
        if self.scored:
            parts.append(f"acc {100 * self.score / self.scored:.1f}")
        if self.calls:
            parts.append(cost(self.cost_usd))
        if load.retries:
            parts.append(counted(load.retries, "retry", "retries"))
        if load.failures:
            parts.append(f"{load.failures} failed")

        return ", ".join(parts)


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s` or `2 h 5 min`."""
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"

    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


def cost(usd: float | None) -> str:
    """Cost billed so far, as a line of progress shows it."""
    return "cost unknown" if usd is None else f"${dollars(usd)}"
