"""`python -m memeval gate --baseline FILE [RUN | field=value …]`: fails if a run is worse than
its baseline.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from memeval.api.gating import UnsoundError, bless, rules_of
from memeval.api.gating import gate as gate_run
from memeval.api.running import run_here
from memeval.cli.parser import Parser, check_folder_of, settings_of
from memeval.comparison.finding import finished_runs, labels_of, named_run
from memeval.comparison.gating.baseline import read_baseline
from memeval.comparison.gating.verdict import BROKEN_STATUS, GateRules
from memeval.config.paths import outputs_dir
from memeval.errors import UserError, WorldError
from memeval.report.stamp import PAGE_FILE, REPORT_FILE
from memeval.results.files import as_json, write_atomically, writing
from memeval.results.private import make_folder
from memeval.results.run import Run
from memeval.runs.display.terminal import print_folded, report_damage
from memeval.text.shown import counted, one_line

EXAMPLE = "for example:  python -m memeval gate --baseline baseline.json system=rag stages=retrieve"
STEP_SUMMARY = "GITHUB_STEP_SUMMARY"

USAGE = """
fails if a run is worse than a baseline (exit status 1; 3 if the two can't be compared)

words* RUN|field=value  a finished run, by key or name; or the settings of a run, which is made if
    it does not exist (default: the newest finished run)
--baseline! FILE        the baseline's file
--bless                 write the baseline from the run, and compare nothing
--margin POINTS:float   a loss below this never counts as worse (default: 0)
--non-inferior POINTS:float  fail unless a loss of this size is ruled out
--must-pass* ID,ID      questions that must be right; --bless keeps them in the baseline
--metric M              with --bless: accuracy (default; recall@10 after stages=retrieve), f1,
    recall@5 …
--config-dir FOLDER     folder with your own options, such as a system
-o --output FOLDER      for gate.md, gate.json and junit.xml (default: outputs/gate/RUN)
"""
PARSER = Parser.of("gate", USAGE, margin=0.0)


def gate(arguments: Sequence[str]) -> int:
    """Exit status 0: fine, 1: worse, 2: a mistake by the user, 3: broken or not comparable."""
    options = PARSER.parse_intermixed_args(list(arguments))
    rules = rules_of(options.margin, options.non_inferior)
    if options.bless and (rules != GateRules() or options.output):
        raise UserError(
            "gate --bless compares nothing: it takes no --margin, --non-inferior or --output",
            "leave them out, and use them in a comparison with the new baseline",
        )

    path = Path(options.baseline)
    if options.output and Path(options.output).is_file():
        raise UserError(f"gate: --output {one_line(options.output)} is a file, not a folder")

    # A mistake in the baseline is reported before anything is run or paid for.
    if not options.bless:
        read_baseline(path)
    else:
        check_folder_of("--baseline", path)

    try:
        run = _run_of(options.words, options.config_dir)
        if options.bless:
            return _bless(run, path, options)

        return _judge(run, path, options)
    except WorldError as error:
        # Status 1 would mean that the run is worse.
        print(f"memeval: {error}", file=sys.stderr)
        print("  finished work is kept; the same command continues it", file=sys.stderr)
        return BROKEN_STATUS


def _run_of(words: Sequence[str], config_dir: str | None) -> Run:
    """The run to check: a named run, one made from settings, or the newest."""
    runs = outputs_dir() / "runs"
    settings = [word for word in words if "=" in word and not _is_label(word)]
    if not settings:
        if config_dir is not None:
            raise UserError("--config-dir needs settings of a run, such as system=rag", EXAMPLE)
        if len(words) > 1:
            raise UserError(f"gate takes one run, not {len(words)}", EXAMPLE)

        known = finished_runs(runs, report_damage)
        if words:
            return named_run(words[0], known)
        if not known:
            raise UserError(f"no finished runs in {one_line(runs)}", EXAMPLE)

        return known[-1]

    if len(settings) < len(words):
        raise UserError("gate takes either a run or the settings of one, not both", EXAMPLE)

    return run_here(settings_of("gate", settings, config_dir, EXAMPLE), progress=True)


def _is_label(word: str) -> bool:
    """Whether the word is not a setting but a run's name as `list` prints it, like `bm25 k=3`."""
    return " " in word and word in labels_of(finished_runs(outputs_dir() / "runs"))


def _must_pass_ids(options: argparse.Namespace) -> list[str]:
    words = ",".join(options.must_pass).split(",")
    return list(filter(None, map(str.strip, words)))


def _bless(run: Run, path: Path, options: argparse.Namespace) -> int:
    try:
        baseline = bless(run, path, must_pass=_must_pass_ids(options), metric=options.metric)
    except UnsoundError as error:
        print(f"memeval: {error.message}", file=sys.stderr)
        return BROKEN_STATUS

    counts = f"{counted(len(baseline.values), 'value')} of {baseline.metric}"
    print_folded(f"{one_line(path)}: {counts}, from {one_line(run.name)} ({run.key})")
    return 0


def _judge(run: Run, path: Path, options: argparse.Namespace) -> int:
    judged = gate_run(
        run,
        path,
        margin=options.margin,
        non_inferior=options.non_inferior,
        must_pass=_must_pass_ids(options),
        metric=options.metric,
    )
    folder = Path(options.output or outputs_dir() / "gate" / run.key)
    texts = {
        "gate.md": judged.markdown,
        "gate.json": as_json(judged.to_json(), indent=1) + "\n",
        "junit.xml": judged.junit,
    }
    with writing(folder):
        make_folder(folder)
        for name, text in texts.items():
            write_atomically(folder / name, text)

    print_folded(judged.markdown)
    print(f"files: {folder}")
    for name in (PAGE_FILE, REPORT_FILE):
        if (run.folder / name).is_file():
            print(f"page:  {run.folder / name}")
            break

    _add_to_step_summary(judged.markdown)
    return judged.status


def _add_to_step_summary(markdown: str) -> None:
    """Adds the verdict to the summary page of the GitHub workflow run, if there is one."""
    file = os.environ.get(STEP_SUMMARY)
    if not file:
        return

    try:
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(markdown)
    except OSError as error:
        reason = error.strerror or error
        print(f"memeval: {STEP_SUMMARY} can't be written: {reason}", file=sys.stderr)
