"""`python -m memeval claims [list | show NAME | reproduce NAME | RUN ...]`: published figures."""

import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from memeval.api.selecting import select_runs
from memeval.cli.parser import Parser, print_json
from memeval.comparison.claims.matching import Match, match_claim
from memeval.comparison.claims.reading import find_figure, load_claims
from memeval.comparison.claims.records import NOT_DISCLOSED, Claim
from memeval.comparison.claims.reproducing import reproduce
from memeval.comparison.tables import WIDTH, align
from memeval.errors import UserError, unknown
from memeval.metrics.formats import NONE
from memeval.report.disclosure import disclosures
from memeval.results.fields import as_plain
from memeval.results.run import Run
from memeval.runs.display.terminal import print_folded
from memeval.text.shown import one_line

LIST, SHOW, REPRODUCE = "list", "show", "reproduce"

USAGE = """
lists published figures; shows the protocol of one; shows which of them are comparable with a run,
and why others are not; composes a comparable run

words* WORD     `list` (default), `show NAME`, `reproduce NAME`, or runs: a key, its beginning, a
    name, an MLflow run id, or a filter
--dataset NAME  only claims about this data set
--json          print everything as JSON
"""
PARSER = Parser.of("claims", USAGE)


def claims(arguments: Sequence[str]) -> int:
    """Prints the claims, one of them, the command to reproduce one, or runs next to the claims."""
    options = PARSER.parse_args(list(arguments))
    known = load_claims()
    datasets = {claim.dataset for claim in known}
    if options.dataset is not None and options.dataset not in datasets:
        raise unknown("data set with claims", one_line(options.dataset), datasets)

    chosen = [claim for claim in known if options.dataset in (None, claim.dataset)]
    action, *names = options.words or [LIST]
    if action == REPRODUCE:
        return reproduce_claims(names, chosen, as_json=options.json)

    content: Iterable[Any]
    lines: Iterable[str]
    if action in (LIST, SHOW):
        named = _named(names, chosen)
        content = map(as_plain, named)
        lines = table_of(named) if action == LIST else listing(named)
    else:
        runs = select_runs(options.words).chosen
        content = (run_json(run, chosen) for run in runs)
        lines = chain.from_iterable(run_lines(run, chosen) for run in runs)

    if options.json:
        print_json(list(content))
    else:
        print(*lines, sep="\n")

    return 0


def _named(names: Sequence[str], claims: Sequence[Claim]) -> Sequence[Claim]:
    """The claims with these names; all if there are no names."""
    by_name = {claim.name: claim for claim in claims}
    for name in names:
        if name not in by_name:
            raise unknown("claim", one_line(name), by_name)

    return [by_name[name] for name in names] or claims


def table_of(chosen: Sequence[Claim]) -> list[str]:
    """One line per figure below its data set, with values measured by others."""
    rows = [["claim", "published", "others"]]
    for dataset in dict.fromkeys(claim.dataset for claim in chosen):
        rows.append([dataset, "", ""])
        for claim in chosen:
            if claim.dataset == dataset:
                rows += _rows_of(claim)

    return [*align(rows), "", f"python -m memeval claims {SHOW} NAME prints its whole protocol."]


def _rows_of(claim: Claim) -> Iterator[list[str]]:
    values = [f"{dispute.value:g}" for dispute in claim.disputes if dispute.value is not None]
    others = ", ".join(values)
    if claim.disputes and not values:
        others = "disputed"

    first, *further = claim.figures
    yield [f"  {claim.name}", f"{first.metric} {first.value:g}", others]
    for figure in further:
        yield [f"    {figure.system}", f"{figure.metric} {figure.value:g}", ""]


def reproduce_claims(names: Sequence[str], chosen: Sequence[Claim], *, as_json: bool) -> int:
    """Prints the command, its cost (not as JSON), and the settings that memeval can't match."""
    if len(names) != 1:
        raise UserError(
            f"claims {REPRODUCE} needs one claim", "to list their names:  python -m memeval claims"
        )

    recipe = reproduce(*find_figure(names[0], chosen))
    if as_json:
        print_json({"command": recipe.command, "unmatched": recipe.unmatched})
        return 0

    unmatched = "not matched:" if recipe.unmatched else "not matched: nothing"
    lines = [recipe.command, "", unmatched, *(f"- {text}" for text in recipe.unmatched)]
    print_folded("\n".join(lines))
    # Printed first: the estimate may take minutes.
    sys.stdout.flush()
    print_folded("\n".join(["", *cost_lines(recipe.cost_overrides)]))
    return 0


def cost_lines(words: Sequence[str]) -> list[str]:
    """Cost of a run, as `plan` reports it, or the reason why it is unknown."""
    from memeval.api.sweeping import plan
    from memeval.cli.plan_text import call_lines

    try:
        forecast = plan(*words)
    except UserError as error:
        return [f"cost: unknown: {error.message}", *(f"  {hint}" for hint in error.hints)]

    command = shlex.join(["python", "-m", "memeval", "plan", *words])
    return [f"cost, by {command}", "", *call_lines(forecast.estimate)]


def listing(chosen: Sequence[Claim]) -> Iterator[str]:
    """The claims with the disclosures of their sources."""
    for claim in chosen:
        protocol = claim.protocol
        asked = NOT_DISCLOSED if protocol.questions is None else f"{protocol.questions:,}"
        if protocol.categories is not None:
            asked += f" (categories {', '.join(map(str, protocol.categories))})"

        judge = filter(None, [protocol.judge, protocol.judge_model])
        reader = filter(None, [protocol.reader_model, protocol.reader_prompt])
        yield f"{claim.name}: {claim.title}"
        yield from fold("source", claim.source)
        yield from fold("data", f"{claim.dataset}, sha256 {protocol.data_sha256 or NOT_DISCLOSED}")
        yield from fold("questions", asked)
        yield from fold("judge", ", ".join(judge) or NOT_DISCLOSED)
        yield from fold("reader", ", ".join(reader) or NOT_DISCLOSED)
        k, repeats = protocol.k or NOT_DISCLOSED, protocol.repeats or NOT_DISCLOSED
        yield from fold("retrieval", f"{protocol.retrieval or NOT_DISCLOSED}; k: {k}")
        yield from fold("error", f"{protocol.error or NOT_DISCLOSED}; repeats: {repeats}")
        for figure in claim.figures:
            text = f"{figure.system}, {figure.metric} {figure.value:g}"
            if figure.error is not None:
                text += f" ± {figure.error:g}"
            if figure.note:
                text += f" ({figure.note})"

            yield from fold("figure", text)

        for caveat in claim.caveats:
            yield from fold("caveat", caveat)
        yield from dispute_lines(claim)
        yield ""


def dispute_lines(claim: Claim) -> Iterator[str]:
    """Findings by others, each with its source."""
    for dispute in claim.disputes:
        yield from fold("disputed", f"{dispute.text} ({dispute.source})")


def run_lines(run: Run, chosen: Sequence[Claim]) -> Iterator[str]:
    """Disclosures of a run, and each claim about its data set."""
    yield f"{one_line(run.name)}  {run.key}"
    for name, text in disclosures(run.summary).items():
        yield from fold(name, text)

    comparable = claims_of(run, chosen)
    if not comparable:
        yield from fold("claims", f"memeval has no claims about {one_line(run.summary.dataset)}")

    for claim in comparable:
        yield ""
        yield f"{claim.name}: {claim.title}"
        yield from fold("source", claim.source)
        matches = match_claim(claim, run.summary)
        for match in matches:
            yield from fold(match.figure.system, figure_words(match))

        yield from verdict_lines(matches)
        for caveat in claim.caveats:
            yield from fold("caveat", caveat)
        yield from dispute_lines(claim)

    yield ""


def verdict_lines(matches: Sequence[Match]) -> Iterator[str]:
    """Remarks about the figures of a claim; a remark about all figures is printed once."""
    shown: dict[str, None] = {}
    for match in matches:
        text = match.verdict
        if match.verdict == "comparable" and match.allowed_difference:
            text += f", except for {match.allowed_difference}"
        if reasons := "; ".join(match.reasons):
            text += f": {reasons}"

        shown[text] = None

    for text in shown:
        yield from fold("verdict", text)


def figure_words(match: Match) -> str:
    """`accuracy 32.4 published; this run 25.7`, on the categories of the claim."""
    figure = match.figure
    published = f"{figure.metric} {figure.value}"
    if figure.error is not None:
        published += f" ± {figure.error}"
    if figure.micro is not None:
        published += f" ({figure.micro} over questions)"

    measured = NONE if match.own is None else f"{match.own:.1f}"
    return f"{published} published; this run {measured}"


def claims_of(run: Run, chosen: Sequence[Claim]) -> list[Claim]:
    """The claims about the data set of a run."""
    return [claim for claim in chosen if claim.dataset == run.summary.dataset]


def run_json(run: Run, chosen: Sequence[Claim]) -> dict[str, object]:
    """A run and the claims about its data set, as JSON."""
    matches: list[Match] = []
    for claim in claims_of(run, chosen):
        matches += match_claim(claim, run.summary)

    return {
        "run_key": run.key,
        "name": run.name,
        "disclosed": disclosures(run.summary),
        "claims": list(map(_match_json, matches)),
    }


def _match_json(match: Match) -> dict[str, object]:
    return {
        "claim": match.claim.name,
        "source": match.claim.source,
        "figure": as_plain(match.figure),
        "own": match.own,
        "verdict": match.verdict,
        "but_for": match.allowed_difference,
        "aspects": list(map(as_plain, match.aspects)),
        "caveats": list(match.claim.caveats),
        "disputes": list(map(as_plain, match.claim.disputes)),
    }


def fold(name: str, text: str) -> list[str]:
    """A named text, wrapped to the terminal's width; a URL or a key stays in one piece."""
    return textwrap.wrap(
        f"{name}: {text}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
