"""`python -m memeval explain RUN CLAIM`: why a run's figure differs from a published one."""

from collections.abc import Iterator, Sequence
from typing import Any

from memeval.api.comparing import explain as explain_run
from memeval.cli.claims import dispute_lines, fold
from memeval.cli.parser import RUN, Parser, print_json
from memeval.comparison.claims.effects import DifferingPart, Effect
from memeval.comparison.claims.explaining import Explanation
from memeval.metrics.formats import figure
from memeval.metrics.metric import POINTS
from memeval.results.fields import as_plain

USAGE = f"""
explains the gap between a run and a published figure: the parts that differ, and the effect of
each of them, if finished runs show it

{RUN}
claim CLAIM  a name of `claims list`; NAME/SYSTEM if it has several
--json       print everything as JSON
"""
PARSER = Parser.of("explain", USAGE)


def explain(arguments: Sequence[str]) -> int:
    """Prints the parts that differ, and the effect of each on the figure."""
    options = PARSER.parse_args(list(arguments))
    explanation = explain_run(options.run, options.claim)
    if options.json:
        print_json(as_json(explanation))
        return 0

    print(*lines_of(explanation), sep="\n")
    return 0


def lines_of(explanation: Explanation) -> Iterator[str]:
    """The gap, then part by part the differences and their effects."""
    match = explanation.match
    published = match.figure
    text = f"{published.system}, {published.metric} {published.value:g}"
    yield from fold(match.claim.name, text)
    if explanation.own is None or explanation.gap is None:
        yield from fold("this run", f"has no {published.metric} on the claim's questions")
    else:
        gap = figure(explanation.gap / 100, POINTS.name, signed=True)
        yield from fold("this run", f"{explanation.own:.1f}, a gap of {gap} points")

    if match.allowed_difference:
        yield from fold("compared", match.allowed_difference)
    yield from dispute_lines(match.claim)

    for part in DifferingPart:
        lines = list(part_lines(explanation, part))
        if lines:
            yield ""
            yield str(part)
            yield from lines

    if explanation.effects:
        yield ""
        yield from fold(
            "note", "each change is tried on its own, so the changes don't add up to the gap"
        )


def part_lines(explanation: Explanation, part: DifferingPart) -> Iterator[str]:
    """Known facts about a part."""
    for aspect in explanation.aspects(part):
        yield from fold(str(aspect.sameness), aspect.text)
    for effect in explanation.effects:
        if effect.part is part:
            yield from fold(change_text(effect), effect.text)

    if part in explanation.missing:
        step = explanation.missing[part]
        yield from fold("not measured here", f"it takes {step}" if step else "memeval can't")


def change_text(effect: Effect) -> str:
    """`−12.3 points [−15.0, −9.1], to 41.5`."""
    change = figure(effect.change / 100, POINTS.name, signed=True)
    ends = ""
    if effect.low is not None and effect.high is not None:
        low = figure(effect.low / 100, POINTS.name)
        high = figure(effect.high / 100, POINTS.name)
        ends = f" [{low}, {high}]"

    return f"{change} points{ends}, to {effect.value:.1f}"


def as_json(explanation: Explanation) -> dict[str, Any]:
    match = explanation.match
    content = as_plain(explanation)
    return {
        "run_key": explanation.run_key,
        "claim": match.claim.name,
        "figure": as_plain(match.figure),
        "own": explanation.own,
        "gap": explanation.gap,
        "verdict": match.verdict,
        "aspects": content["match"]["aspects"],
        "effects": content["effects"],
        "not_measured": content["missing"],
    }
