"""`python -m memeval judge probe [overrides]`: tests a judge on known right and wrong answers."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from memeval.api.judging import probe as probe_of
from memeval.calibration.injection import FlipRate
from memeval.calibration.probe import KindResult, ProbeResult
from memeval.cli.parser import CONFIG_DIR, Parser, print_json, settings_of
from memeval.comparison.tables import align
from memeval.errors import UserError
from memeval.metrics.formats import count, interval, paid_calls, percent
from memeval.results import json_line, write_atomically
from memeval.results.files import writing
from memeval.results.private import make_folder
from memeval.text.shown import counted, one_line

EXAMPLE = "for example:  python -m memeval judge probe judge=keyword"
USAGE = f"""
tests a judge on known right answers and several kinds of wrong ones

overrides* group=option|field=value  the judge: judge=llm llm=openai llm.model=gpt-4o-mini, or
    judge=keyword
--items* [KIND=]FILE  JSON lines {{question_id, kind, answer}} about the data set dataset=NAME; KIND
    is for rows without a kind; may be given several times (default: the built-in items)
--inject              also attack the judge: a hundred texts in answer, question and reference try
    to make it call wrong answers right
-o --output FILE      also write labels and verdicts (.jsonl), for judge calibrate --labels
{CONFIG_DIR}
--json                print the result as JSON
"""
PARSER = Parser.of("judge probe", USAGE)


def probe(arguments: Sequence[str]) -> int:
    """Prints the number of answers of each kind that a judge accepts.

    Exit status 1 if the judge gave no verdict at all.
    """
    options = PARSER.parse_intermixed_args(list(arguments))
    settings = settings_of("judge probe", options.overrides, options.config_dir, EXAMPLE)
    out = check_out(options.output)
    result = probe_of(settings, options.items, inject=options.inject)
    if out is not None:
        with writing(out):
            make_folder(out.parent)
            write_atomically(out, "".join(map(json_line, result.labels())))

    if options.json:
        print_json(result.to_json())
    else:
        for line in probe_lines(result):
            print(line)

        if options.inject and not result.flips:
            print("no attack was tried: the judge rejects no wrong answer")
        if out is not None:
            print(f"labels and verdicts: {one_line(out)}")

    # A judge without any verdict was not tested: most likely its endpoint refused.
    return int(not any(kind.judged for kind in result.kinds))


def check_out(word: str | None) -> Path | None:
    """The file of `--output`. Raises `UserError` for a wrong suffix, before any call."""
    if word is None:
        return None

    if not word.endswith(".jsonl"):
        raise UserError(f"--output {one_line(word)}: the file must end in .jsonl")

    return Path(word)


def probe_lines(result: ProbeResult) -> Iterator[str]:
    """A line per kind, and the cost."""
    yield f"judge: {one_line(result.judge.shown)}"
    yield f"{counted(len(result.items), 'answer')} to questions of {one_line(result.dataset)}"
    yield ""

    rows = [["answers", "items", "accepted", "share %", "95 % (Wilson)", "unparsed", "failed"]]
    yield from align([*rows, *map(kind_row, result.kinds)])
    yield ""
    yield "A good judge accepts all right answers and no others."
    if result.flips:
        yield from flip_lines(result.flips)

    for item in result.items:
        if item.row.error:
            yield f"first failure: {one_line(item.row.error)}"
            break

    if result.calls:
        yield paid_calls(result.calls, result.cached, result.cost_usd)


def flip_lines(flips: Sequence[FlipRate]) -> Iterator[str]:
    """The attacks by technique, and the number that flipped a verdict."""
    yield ""
    rows = [["attacks", "in", "tried", "flipped", "share %", "95 % (Wilson)", "unparsed, failed"]]
    for rate in flips:
        lost = rate.attacks - rate.judged
        rows.append(
            [
                rate.technique,
                rate.place,
                count(rate.attacks),
                f"{rate.flipped:,} of {rate.judged:,}",
                percent(rate.share),
                interval(rate.low, rate.high),
                count(lost or None),
            ]
        )

    yield from align(rows)
    yield ""
    yield "Flipped: a wrong answer that the judge rejects, but accepts with the attack."


def kind_row(kind: KindResult) -> list[str]:
    return [
        one_line(kind.kind),
        count(kind.items),
        f"{kind.accepted:,} of {kind.judged:,}",
        percent(kind.share),
        interval(kind.low, kind.high),
        count(kind.unparsed or None),
        count(kind.failed or None),
    ]
