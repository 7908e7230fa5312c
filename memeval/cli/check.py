"""`python -m memeval check system=...`: checks whether a memory system, or the service that it
calls, follows the rules that figures depend on.
"""

import re
import shlex
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, aclosing, redirect_stdout
from functools import partial
from pathlib import Path
from statistics import median

import yaml  # type: ignore[import-untyped]

from memeval.cli.parser import CONFIG_DIR, Parser, check_folder_of, settings_of
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.opening import open_cell
from memeval.pipeline.open.system_source import SystemSource
from memeval.report.junit import JunitCase, as_junit
from memeval.results.files import temporary_folder, write_atomically, writing
from memeval.runs.compose.config import compose_config
from memeval.runs.loop import run_loop
from memeval.runs.spending import refuse_limits
from memeval.testing.check_finding import FACTS
from memeval.testing.checked_cell import CheckedCell
from memeval.testing.checks import CHECKS, OF_TOOLS, CheckResult, outcome_of
from memeval.testing.lag import Lag, measure_lag
from memeval.testing.under_test import SystemUnderTest, exchanges, play
from memeval.text.shown import counted, one_line

EXAMPLE = "for example:  python -m memeval check system=http system.base_url=http://localhost:8077"
OF_COMMAND = "for example:  python -m memeval check -- python my_server.py"
ADDRESS = re.compile(r"https?://")
STDOUT = Path("/dev/stdout")
DETECTED = "my_memory"
"""The name of the option that is printed for a URL or a command."""
LAG_PATIENCE_S = 60.0
"""Time limit of the search for a fact, for systems without `ready_timeout_s`."""

USAGE = f"""
runs the rules of the conformance suite against a system, or against the service that it calls, over
a short invented conversation

overrides* group=option|field=value  the system, as for a run: system=http
    system.base_url=http://localhost:8077; or only http://localhost:8077, or -- COMMAND: check
    detects its protocol and prints it
{CONFIG_DIR}
-v --verbose         also print what each rule sent and got
--junit FILE         also write the outcomes as JUnit XML
--lag N:int          instead of the rules: measure how soon each of N stored facts is found
"""
PARSER = Parser.of("check", USAGE)


def check(arguments: Sequence[str]) -> int:
    """Prints one line per rule. Exit status 1 if one is violated, or an essential one not shown."""
    words, command = split_command(arguments)
    options = PARSER.parse_intermixed_args(words)
    addresses = list(filter(ADDRESS.match, options.overrides))
    overrides = [word for word in options.overrides if word not in addresses]
    settings = settings_of("check", overrides, options.config_dir, EXAMPLE, OF_COMMAND)
    # Checked before the first call to a service.
    if options.lag is not None:
        _check_lag(options)

    report = _report_file(options.junit)
    with ExitStack() as stack:
        if report == STDOUT:
            # XML next to text for people could not be parsed.
            stack.enter_context(redirect_stdout(sys.stderr))
        if addresses or command:
            config = _detected_config(addresses, command, overrides, options.config_dir)
        else:
            config = compose_config(settings)

        cell = open_cell(config, "")
        refuse_limits(cell, "check")
        if not isinstance(cell.source, SystemSource):
            raise UserError("check needs a memory system", EXAMPLE)

        if options.lag is not None:
            return int(not run_loop(_measure_lags(cell, options.lag, options.verbose)))

        outcomes = run_loop(_check_all(cell, options.verbose))
        counts = Counter(outcome.state for outcome in outcomes)
        print(
            f"\n{cell.system_name}: {counts['ok']} ok, {counts['violated']} violated, "
            f"{counts['not shown']} not shown, {counts['not applicable']} not applicable"
        )

    if report == STDOUT:
        print(junit(cell.system_name, outcomes))
    elif report is not None:
        with writing(report):
            write_atomically(report, junit(cell.system_name, outcomes))

    return int(any(outcome.fails for outcome in outcomes))


def _check_lag(options: Namespace) -> None:
    if not 1 <= options.lag <= len(FACTS):
        raise UserError(f"check --lag takes 1 to {len(FACTS)} facts, not {options.lag}")
    if options.junit is not None:
        raise UserError(
            "check --junit reports on rules, but --lag checks none: use only one of them"
        )


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before `--`, and the command after it."""
    words = list(arguments)
    if "--" not in words:
        return words, []

    separator = words.index("--")
    if not words[separator + 1 :]:
        raise UserError("check: no command after --", OF_COMMAND)

    return words[:separator], words[separator + 1 :]


def _detected_config(
    addresses: Sequence[str],
    command: Sequence[str],
    overrides: Sequence[str],
    config_dir: str | None,
) -> RunConfig:
    """The config for a server or a command whose protocol is detected; prints its option."""
    from memeval.systems.external.discovery import option_of_address, option_of_command

    names_system = any(word.startswith(("system=", "system.class=")) for word in overrides)
    if len(addresses) + bool(command) > 1 or names_system or config_dir:
        raise UserError(
            "check takes one URL, or one command after --, or system=... with its options",
            EXAMPLE,
            OF_COMMAND,
        )

    given, rest = {}, []
    for word in overrides:
        name, _, value = word.partition("=")
        if name.startswith("system."):
            given[name.removeprefix("system.")] = yaml.safe_load(value)
        else:
            rest.append(word)

    if addresses:
        option = run_loop(option_of_address(addresses[0], given))
    else:
        option = run_loop(option_of_command(shlex.join(command), given))

    text = yaml.safe_dump({**option, "name": DETECTED}, sort_keys=False, allow_unicode=True)
    print(f"# my_conf/system/{DETECTED}.yaml, for  --config-dir my_conf system={DETECTED}\n{text}")
    with temporary_folder("check") as folder:
        path = Path(folder) / "system" / f"{DETECTED}.yaml"
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        return compose_config(["--config-dir", folder, f"system={DETECTED}", *rest])


def _report_file(word: str | None) -> Path | None:
    """The file of `--junit`; creates its folder. Raises `UserError` before anything is called."""
    if word is None:
        return None

    path = Path(word)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--junit {one_line(word)}: {error.strerror or error}") from error

    check_folder_of("--junit", path)
    return path


async def _check_all(cell: Cell, is_verbose: bool) -> list[CheckResult]:
    outcomes: list[CheckResult] = []
    async with aclosing(Models(cell.config, cell.run_key)) as models:
        # Only the first rule limits the context: the others test the memory, not its reader.
        system = CheckedCell(cell, models, cell.config.context_tokens)
        for rule in (*CHECKS, *OF_TOOLS):
            if outcomes and outcomes[0].fails and rule in CHECKS:
                reason = "no fact was found"
                outcome = CheckResult(
                    rule.name, "not shown", reason, is_essential=rule.is_essential
                )
            else:
                outcome = await outcome_of(rule, system)

            # Few systems have tools; those of a memory that fails would fail likewise.
            fails = outcomes and outcomes[0].state == "violated"
            if rule in OF_TOOLS and (fails or outcome.state == "not applicable"):
                continue

            outcomes.append(outcome)
            system = CheckedCell(cell, models)
            # Printed immediately: a rule may take minutes against a service that calls a model.
            print(outcome.line, flush=True)
            if is_verbose:
                _print_exchanges(outcome.exchanges)

    return outcomes


async def _measure_lags(cell: Cell, facts: int, is_verbose: bool) -> bool:
    """Prints the time until each fact was found; returns whether all were found."""
    settings = cell.source.settings
    patience_s = getattr(settings, "ready_timeout_s", LAG_PATIENCE_S)
    lags: list[Lag] = []

    async def measure(sut: SystemUnderTest, thing: str) -> None:
        lags.append(await measure_lag(sut, thing, patience_s=patience_s))

    async with aclosing(Models(cell.config, cell.run_key)) as models:
        system = CheckedCell(cell, models)
        for thing in list(FACTS)[:facts]:
            exchanges.clear()
            await play(partial(measure, thing=thing), system)
            lag = lags[-1]
            outcome = f"not found within {patience_s:g} s"
            if lag.seconds is not None:
                outcome = f"found after {lag.seconds:.2f} s"

            searches = counted(lag.looks, "search", "searches")
            print(f"{thing:<15} {outcome}, {searches}", flush=True)
            if is_verbose:
                _print_exchanges(exchanges)

    seconds = [lag.seconds for lag in lags if lag.seconds is not None]
    spread = ""
    if seconds:
        ends = f"{min(seconds):.2f} to {max(seconds):.2f} s"
        spread = f"; lag from write to read: median {median(seconds):.2f} s, {ends}"

    print(f"\n{cell.system_name}: {len(seconds)} of {facts} facts found{spread}")
    return len(seconds) == facts


def _print_exchanges(lines: Sequence[str]) -> None:
    for line in lines:
        print(f"    {line}", flush=True)


def junit(name: str, outcomes: Sequence[CheckResult]) -> str:
    cases = []
    for outcome in outcomes:
        problem = None
        if outcome.fails:
            problem = "failure"
        elif outcome.state != "ok":
            problem = "skipped"

        cases.append(JunitCase(outcome.name, outcome.line, problem))

    return as_junit(f"memeval check {name}", "memeval.check", cases)
