"""The calls of a sweep, summed by role and model, and their cost."""

from collections.abc import Sequence

from msgspec import Struct

from memeval.llm.budget import SpendingLimits
from memeval.records import Role, Usage
from memeval.results.prices import cost_usd
from memeval.runs.forecast.imagined import ExpectedCall
from memeval.statistics.means import sum_or_none


class RoleTotal(Struct, frozen=True):
    """The calls of one role at one model."""

    role: Role
    model: str
    address: str
    calls: float
    """The estimate: each request counts once, even if several cells send it."""
    known_calls: float
    """Those that were composed exactly as a run would send them."""
    most_calls: float
    """Assuming that no two cells send equal requests, and that tool loops take all their steps."""
    prompt_tokens: float
    completion_tokens: float
    usd: float | None
    """None if the model's price is unknown."""
    most_usd: float | None
    """The cost if all requests differed, and every reply were as long as its token limit."""
    seconds: float
    """Wall time at the request slots of the endpoint."""


class Estimate(Struct, frozen=True):
    """Requests and cost of a sweep."""

    lines: Sequence[RoleTotal]
    basis: Sequence[str]
    """Sources of the figures, a sentence each."""
    uncounted: Sequence[str] = ()
    """The sentences among them about calls that are not in `lines`: the cost is then unknown."""

    @property
    def calls(self) -> int:
        return round(sum(line.calls for line in self.lines))

    @property
    def most_calls(self) -> int:
        """Assuming that no two cells send equal requests, and that tool loops take all steps."""
        return round(sum(line.most_calls for line in self.lines))

    @property
    def tokens(self) -> int:
        return round(sum(line.prompt_tokens + line.completion_tokens for line in self.lines))

    @property
    def usd(self) -> float | None:
        """None if any part is unknown."""
        return None if self.uncounted else sum_or_none(line.usd for line in self.lines)

    @property
    def most_usd(self) -> float | None:
        """The cost if all requests differed, and every reply were as long as its token limit."""
        return None if self.uncounted else sum_or_none(line.most_usd for line in self.lines)

    @property
    def seconds(self) -> float:
        """Endpoints work in parallel: the one that takes longest counts."""
        by_address: dict[str, float] = {}
        for line in self.lines:
            by_address[line.address] = by_address.get(line.address, 0.0) + line.seconds

        return max(by_address.values(), default=0.0)


def shortfall(estimate: Estimate, limits: SpendingLimits) -> list[str]:
    """A sentence on the limit that is below the estimate, if one is."""
    name = limits.exceeded(estimate)
    if name is None:
        return []

    limit = f"budget.{name}={getattr(limits, name):.15g}"
    return [
        f"{limit} is below the estimate: the command would stop early; with a larger budget it "
        "continues"
    ]


class CallSums(Struct):
    """Sums over the calls of one role at one model."""

    slots: int
    calls: float = 0.0
    known: float = 0.0
    prompt: float = 0.0
    completion: float = 0.0
    most_completion: float = 0.0
    most_calls: float = 0.0
    most_prompt: float = 0.0
    seconds: float = 0.0

    def add(self, call: ExpectedCall, weight: float, completion: float, seconds: float) -> None:
        # Calls with different limits at one endpoint share the lowest limit.
        self.slots = min(self.slots, call.slots)
        self.calls += weight
        # The calls that it represents besides itself are extrapolated, and so not known.
        self.known += min(weight, 1.0) * call.known
        self.prompt += weight * call.prompt_tokens
        self.completion += weight * completion
        self.most_calls += weight * call.most_calls
        self.most_completion += weight * call.most_calls * call.most_completion_tokens
        most_sent = call.most_prompt_tokens
        self.most_prompt += weight * (call.prompt_tokens if most_sent is None else most_sent)
        self.seconds += weight * seconds


def line_of(key: tuple[Role, str, str, str], sums: CallSums, *, repeated: float) -> RoleTotal:
    """The line of a role, model, provider and endpoint.

    `repeated` is the number of requests that equal others, or that may be made again.
    """
    role, model, _, address = key
    prompt, completion = sums.prompt / sums.calls, sums.completion / sums.calls
    # Replies of earlier runs may have been longer than the limit that is sent now.
    most = max(sums.most_calls, sums.calls)
    most_completion = max(sums.most_completion / most, completion)
    most_prompt = max(sums.most_prompt, sums.prompt) / most
    most_calls = most + repeated
    return RoleTotal(
        role=role,
        model=model,
        address=address,
        calls=sums.calls,
        known_calls=sums.known,
        most_calls=most_calls,
        prompt_tokens=sums.prompt,
        completion_tokens=sums.completion,
        usd=_price(key, sums.calls, prompt, completion),
        most_usd=_price(key, most_calls, most_prompt, most_completion),
        seconds=sums.seconds / sums.slots,
    )


def _price(
    key: tuple[Role, str, str, str], calls: float, prompt_tokens: float, completion_tokens: float
) -> float | None:
    """The price of calls with prompts and replies of these mean lengths; None if it is unknown."""
    role, model, provider, _ = key
    # The price may depend on the length of each call's prompt. A mean length may be a fraction, but
    # only whole tokens have a price.
    whole_tokens = max(1, round(prompt_tokens))
    prompt_usd = cost_usd(Usage(role, model, provider, whole_tokens, 0))
    reply_usd = cost_usd(Usage(role, model, provider, whole_tokens, 1000))
    if prompt_usd is None or reply_usd is None:
        return None

    return calls * (
        prompt_usd * prompt_tokens / whole_tokens
        + (reply_usd - prompt_usd) / 1000 * completion_tokens
    )
