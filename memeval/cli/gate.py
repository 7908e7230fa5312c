"""`python -m memeval gate --baseline FILE [RUN | field=value …]`: fails where a run is worse than
its baseline.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.compare import check_records
from memeval.cli.comparison import metric_of
from memeval.cli.data import Parser
from memeval.comparison.finding import FinishedRun, finished_runs, named_run
from memeval.comparison.scores import ScoreReader
from memeval.config.paths import outputs_dir
from memeval.display.errors import report_damage
from memeval.errors import StorageError, UserError, WorldError
from memeval.gating.baseline import baseline_of, read_baseline, write_baseline
from memeval.gating.output import gate_json, gate_junit, gate_markdown
from memeval.gating.verdict import BROKEN_STATUS, Rules, judge_run, not_sound
from memeval.metrics.metric import POINTS, Metric
from memeval.metrics.registry import metric_named
from memeval.private import make_folder
from memeval.redaction import redacted, redacted_in
from memeval.results.files import as_json, write_atomically
from memeval.shown import one_line

EXAMPLE = "for example:  python -m memeval gate --baseline baseline.json system=rag stages=retrieve"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def gate(arguments: Sequence[str]) -> int:
    """Exit status 0 fine, 1 worse, 3 broken or not comparable; mistakes of the user's are 2."""
    options = parser().parse_intermixed_args(list(arguments))
    rules = Rules(
        margin=_share("--margin", options.margin),
        non_inferior=(
            None if options.non_inferior is None else _share("--non-inferior", options.non_inferior)
        ),
    )
    if rules.non_inferior == 0:
        raise UserError("--non-inferior must be above 0: no data can rule out every loss")

    path = Path(options.baseline)
    if not options.bless:
        read_baseline(path)  # a mistake in it is reported before anything is run or paid for

    try:
        run = _run_of(options.words, options.config_dir)
        check_records(run)
        if options.bless:
            return _bless(run, path, options)

        return _compare(run, path, options, rules)
    except WorldError as error:
        # Status 1 would say that the run is worse.
        print(f"memeval: {error}", file=sys.stderr)
        print("  finished work is kept; the same command continues it", file=sys.stderr)
        return BROKEN_STATUS


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    options = Parser(
        prog="python -m memeval gate",
        description="fails (exit status 1) where a run is worse than a baseline; 3: the two can't "
        "be compared",
    )
    options.add_argument(
        "words",
        nargs="*",
        metavar="RUN|field=value",
        help="a finished run, by key or name; or the settings of a run, which is made where it is "
        "not there; the newest finished run where nothing is said",
    )
    options.add_argument("--baseline", required=True, metavar="FILE", help="the baseline's file")
    options.add_argument(
        "--bless", action="store_true", help="write the baseline from the run, and compare nothing"
    )
    options.add_argument(
        "--margin",
        type=float,
        default=0.0,
        metavar="POINTS",
        help="a loss below this is never called worse (default 0)",
    )
    options.add_argument(
        "--non-inferior",
        type=float,
        metavar="POINTS",
        help="fail unless a loss of this size is ruled out",
    )
    options.add_argument(
        "--must-pass",
        action="append",
        default=[],
        metavar="ID,ID",
        help="questions that must be right; --bless keeps them in the baseline",
    )
    options.add_argument(
        "--metric",
        metavar="M",
        help="with --bless: accuracy (default; recall@10 after stages=retrieve), f1, recall@5 …",
    )
    options.add_argument(
        "--config-dir", metavar="FOLDER", help="options of your own, such as a system"
    )
    options.add_argument(
        "--out", metavar="FOLDER", help="for gate.md, gate.json and junit.xml (outputs/gate/RUN)"
    )
    return options


def _share(option: str, points: float) -> float:
    if not (math.isfinite(points) and 0 <= points <= 100):
        raise UserError(f"{option} must be between 0 and 100 points, not {points:g}")

    return points / 100


def _run_of(words: Sequence[str], config_dir: str | None) -> FinishedRun:
    """The run that is gated: named, made from settings, or the newest."""
    runs = outputs_dir() / "runs"
    settings = [word for word in words if "=" in word]
    if not settings:
        if config_dir is not None:
            raise UserError("--config-dir needs settings of a run, such as system=rag", EXAMPLE)
        if len(words) > 1:
            raise UserError(f"gate takes one run, not {len(words)}", EXAMPLE)

        known = finished_runs(runs, report_damage)
        if words:
            return named_run(words[0], known)
        if not known:
            raise UserError(f"no finished run below {one_line(runs)}", EXAMPLE)

        return known[-1]

    if len(settings) < len(words):
        raise UserError("gate takes a run, or settings of one, not both", EXAMPLE)

    from memeval.pipeline.opening import open_cell
    from memeval.runs.cell import run_cell
    from memeval.runs.compose.config import compose_config
    from memeval.runs.job import check_writable, is_repeated

    folder = ["--config-dir", config_dir] if config_dir else []
    config = compose_config([*folder, *settings])
    check_writable()
    command = shlex.join(["python", "-m", "memeval", *folder, *filter(is_repeated, settings)])
    cell = open_cell(config, redacted(command))
    return FinishedRun(cell.folder, run_cell(cell))


def _metric(name: str) -> Metric:
    metric = metric_named(name)
    if metric.unit != POINTS:
        raise UserError(f"gate compares shares, such as accuracy or recall@10, not {metric.name}")

    return metric


def _must_pass_ids(options: argparse.Namespace) -> list[str]:
    words = [word.strip() for listed in options.must_pass for word in listed.split(",")]
    return [word for word in words if word]


def _bless(run: FinishedRun, path: Path, options: argparse.Namespace) -> int:
    """Writes the baseline. Questions that must pass stay in it."""
    kept: tuple[str, ...] = ()
    metric = options.metric or metric_of([run.summary])
    if path.exists():
        before = read_baseline(path)
        kept, metric = before.must_pass, options.metric or before.metric

    if reasons := list(not_sound(run)):
        print(f"memeval: not blessed: {one_line(run.name)}: {'; '.join(reasons)}", file=sys.stderr)
        return BROKEN_STATUS

    chosen = _metric(metric)
    scores = ScoreReader(chosen).read(run)
    if not scores.values:
        raise UserError(f"{one_line(run.name)} has no value of {one_line(chosen.name)}")

    baseline = baseline_of(run, chosen, scores, [*kept, *_must_pass_ids(options)])
    write_baseline(baseline, path)
    print(
        f"{one_line(path)}: {len(scores.values):,} values of {chosen.name}, from "
        f"{one_line(run.name)} ({run.key})"
    )
    return 0


def _compare(run: FinishedRun, path: Path, options: argparse.Namespace, rules: Rules) -> int:
    baseline = read_baseline(path)
    metric = _metric(baseline.metric)
    if options.metric and metric_named(options.metric) != metric:
        raise UserError(
            f"the baseline holds {one_line(metric.name)}, not {one_line(options.metric)}",
            "another metric needs another baseline:  --bless",
        )

    scores = ScoreReader(metric).read(run)
    result = judge_run(
        baseline, run, scores, metric, rules=rules, must_pass=_must_pass_ids(options)
    )
    markdown = gate_markdown(result, baseline, run, metric, rules)
    folder = Path(options.out) if options.out else outputs_dir() / "gate" / run.key
    texts = {
        "gate.md": markdown,
        "gate.json": as_json(redacted_in(gate_json(result, baseline, run, metric, rules)), indent=1)
        + "\n",
        "junit.xml": gate_junit(result, metric, rules),
    }
    try:
        make_folder(folder)
        for name, text in texts.items():
            write_atomically(folder / name, text)
    except OSError as error:
        raise StorageError(f"{folder} can't be written: {error.strerror or error}") from error

    print(markdown)
    print(f"files: {folder}")
    pages = [run.folder / name for name in ("report.html", "report.md")]
    for page in pages:
        if page.is_file():
            print(f"page:  {page}")
            break

    _add_to_step_summary(markdown)
    return result.status


def _add_to_step_summary(markdown: str) -> None:
    """Shows the verdict on the page of GitHub's run, where there is one."""
    file = os.environ.get(STEP_SUMMARY)
    if not file:
        return

    try:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(markdown)
    except OSError as error:
        reason = error.strerror or error
        print(f"memeval: {STEP_SUMMARY} can't be written: {reason}", file=sys.stderr)
