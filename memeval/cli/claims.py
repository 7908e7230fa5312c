"""`python -m memeval claims [RUN ...]`: published figures, and which compare with a run."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from memeval.api.selecting import select_runs
from memeval.cli.parser import Parser
from memeval.comparison.claims import Claim, Match, load_claims, match_claim
from memeval.comparison.claims.records import NOT_DISCLOSED
from memeval.comparison.finding import FinishedRun
from memeval.comparison.tables import WIDTH
from memeval.errors import unknown
from memeval.metrics.formats import NONE
from memeval.report.disclosure import disclosed
from memeval.text.redaction import redacted_in
from memeval.text.shown import one_line


def claims(arguments: Sequence[str]) -> int:
    """Prints the claims, or each named run beside those of its data set."""
    options = parser().parse_args(list(arguments))
    known = load_claims()
    datasets = {claim.dataset for claim in known}
    if options.dataset is not None and options.dataset not in datasets:
        raise unknown("data set with claims", one_line(options.dataset), datasets)

    chosen = [claim for claim in known if options.dataset in (None, claim.dataset)]
    runs = select_runs(options.runs).chosen if options.runs else []
    if options.json:
        content = [run_json(run, chosen) for run in runs] or list(map(asdict, chosen))
        print(json.dumps(redacted_in(content), indent=1))
        return 0

    lines = [line for run in runs for line in run_lines(run, chosen)]
    for line in lines or listing(chosen):
        print(line)

    return 0


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    options = Parser.of(
        "claims",
        "lists published figures with their protocol; with a run, says which of them "
        "it may be compared with, and why not",
    )
    options.add_argument(
        "runs", nargs="*", metavar="RUN", help="key, its beginning, name, MLflow run id, or filter"
    )
    options.add_argument("--dataset", metavar="NAME", help="only claims about this data set")
    options.add_argument("--json", action="store_true", help="print everything as JSON")
    return options


def listing(chosen: Sequence[Claim]) -> Iterator[str]:
    """The claims with what their sources disclose."""
    for claim in chosen:
        protocol = claim.protocol
        asked = NOT_DISCLOSED if protocol.questions is None else f"{protocol.questions:,}"
        categories = ", ".join(map(str, protocol.categories or ("all",)))
        repeats = NOT_DISCLOSED if protocol.repeats is None else str(protocol.repeats)
        judge = [protocol.judge, protocol.judge_model]
        reader = [protocol.reader_model, protocol.reader_prompt]
        yield f"{claim.name}: {claim.title}"
        yield from fold("source", claim.source)
        yield from fold("data", f"{claim.dataset}, sha256 {protocol.data_sha256 or NOT_DISCLOSED}")
        yield from fold("questions", f"{asked} (categories {categories})")
        yield from fold("judge", _known(judge))
        yield from fold("reader", _known(reader))
        yield from fold("retrieval", protocol.retrieval or NOT_DISCLOSED)
        yield from fold("error", f"{repeats} repeats, {protocol.error or NOT_DISCLOSED}")
        for figure in claim.figures:
            error = "" if figure.error is None else f" ± {figure.error}"
            yield from fold("figure", f"{figure.system}, {figure.metric} {figure.value}{error}")

        for caveat in claim.caveats:
            yield from fold("caveat", caveat)

        yield ""


def _known(parts: Sequence[str | None]) -> str:
    return ", ".join(part for part in parts if part) or NOT_DISCLOSED


def run_lines(run: FinishedRun, chosen: Sequence[Claim]) -> Iterator[str]:
    """What a run discloses, and each claim about its data set."""
    yield f"{one_line(run.name)}  {run.key}"
    for name, text in disclosed(run.summary).items():
        yield from fold(name, text)

    own = claims_of(run, chosen)
    if not own:
        yield from fold("claims", f"none are known about {one_line(run.summary.dataset)}")

    for claim in own:
        yield ""
        yield f"{claim.name}: {claim.title}"
        yield from fold("source", claim.source)
        matches = match_claim(claim, run.summary)
        for match in matches:
            yield from fold(match.figure.system, figure_words(match))

        yield from verdict_lines(matches)
        for caveat in claim.caveats:
            yield from fold("caveat", caveat)

    yield ""


def verdict_lines(matches: Sequence[Match]) -> Iterator[str]:
    """What holds of the figures of a claim: once where it holds of all of them."""
    shown: dict[str, None] = {}
    for match in matches:
        reasons = "; ".join(match.reasons)
        but_for = f", but for {match.but_for}" if match.verdict == "comparable" else ""
        but_for = but_for if match.but_for else ""
        shown[f"{match.verdict}{but_for}{': ' if reasons else ''}{reasons}"] = None

    for text in shown:
        yield from fold("verdict", text)


def figure_words(match: Match) -> str:
    """`accuracy 32.4 published; this run 25.7`, on the categories of the claim."""
    figure = match.figure
    error = "" if figure.error is None else f" ± {figure.error}"
    own = NONE if match.own is None else f"{match.own:.4g}"
    micro = "" if figure.micro is None else f" ({figure.micro} over questions)"
    return f"{figure.metric} {figure.value}{error}{micro} published; this run {own}"


def claims_of(run: FinishedRun, chosen: Sequence[Claim]) -> list[Claim]:
    """The claims about the data set of a run."""
    return [claim for claim in chosen if claim.dataset == run.summary.dataset]


def run_json(run: FinishedRun, chosen: Sequence[Claim]) -> dict[str, object]:
    """A run beside the claims, for programs."""
    matches = [
        match for claim in claims_of(run, chosen) for match in match_claim(claim, run.summary)
    ]
    return {
        "run_key": run.key,
        "name": run.name,
        "disclosed": disclosed(run.summary),
        "claims": [
            {
                "claim": match.claim.name,
                "source": match.claim.source,
                "figure": asdict(match.figure),
                "own": match.own,
                "verdict": match.verdict,
                "but_for": match.but_for,
                "aspects": list(map(asdict, match.aspects)),
                "caveats": list(match.claim.caveats),
            }
            for match in matches
        ],
    }


def fold(name: str, text: str) -> list[str]:
    """A named text in lines of the terminal's width."""
    return textwrap.wrap(f"{name}: {text}", WIDTH, initial_indent="  ", subsequent_indent="    ")
