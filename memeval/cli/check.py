"""`python -m memeval check system=...`: whether a memory system, or the service behind it, keeps
the rules that figures rest on.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from memeval.cli.parser import Parser
from memeval.errors import UserError
from memeval.pipeline.cell import Cell
from memeval.pipeline.models import Models
from memeval.results import write_atomically
from memeval.retrieval.embedding.contract import Embedder
from memeval.runs.compose.config import compose_config
from memeval.runs.interrupt import run_loop
from memeval.systems.base import MemorySystem, SystemContext
from memeval.testing.checks import CHECKS, Outcome, SystemUnderTest, outcome_of
from memeval.testing.model import ScriptedModel
from memeval.text.shown import one_line

EXAMPLE = "for example:  python -m memeval check system=http system.base_url=http://localhost:8077"
LONGEST_TEXT = 2000
CONSTANT = "constant"
WITHOUT_MEMORY = (CONSTANT, "no_memory")
"""Controls that drop all they are given."""


def check(arguments: Sequence[str]) -> int:
    """Prints one line per rule. Exit status 1 if one is violated, or an essential one not shown."""
    from memeval.pipeline.declared import Declared
    from memeval.pipeline.opening import open_cell

    options = parser().parse_intermixed_args(list(arguments))
    for word in options.overrides:
        if "=" not in word:
            raise UserError(f"check: '{one_line(word)}' is not an override", EXAMPLE)

    # Before the first call: a service is not asked in vain.
    report = None if options.junit is None else _report_file(options.junit)
    folder = ["--config-dir", options.config_dir] if options.config_dir else []
    cell = open_cell(compose_config([*folder, *options.overrides]), "")
    if not isinstance(cell.source, Declared):
        raise UserError("check takes a memory system", EXAMPLE)

    outcomes = run_loop(_check_all(cell, options.verbose))
    counts = Counter(outcome.state for outcome in outcomes)
    print(
        f"\n{cell.system_name}: {counts['ok']} ok, {counts['violated']} violated, "
        f"{counts['not shown']} not shown, {counts['not applicable']} not applicable"
    )
    if report is not None:
        write_atomically(report, junit(cell.system_name, outcomes))

    return int(any(outcome.fails for outcome in outcomes))


def parser() -> argparse.ArgumentParser:
    """The command's arguments."""
    options = Parser.of(
        "check",
        "runs the rules of the conformance suite against a system, or against the "
        "service behind it, over a short invented conversation",
    )
    options.add_argument(
        "overrides",
        nargs="*",
        metavar="group=option|field=value",
        help="which system, as for a run: system=http system.base_url=http://localhost:8077",
    )
    options.add_argument("--config-dir", metavar="FOLDER", help="options of your own")
    options.add_argument(
        "-v", "--verbose", action="store_true", help="also print what each rule sent and got"
    )
    options.add_argument("--junit", metavar="FILE", help="also write the outcomes as JUnit's XML")
    return options


def _report_file(word: str) -> Path:
    """The file of `--junit`, whose folder is made. Raises `UserError` before anything is called."""
    path = Path(word)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--junit {one_line(word)}: {error.strerror or error}") from error

    if path.is_dir():
        raise UserError(f"--junit {one_line(word)} is a folder, and must be a file")

    return path


class CheckedCell(SystemUnderTest):
    """The system of a cell, with the cell's own models and embedder."""

    def __init__(self, cell: Cell, models: Models) -> None:
        self._cell, self._models = cell, models
        source = cell.source
        self._name = cell.config.system["name"]
        self.remembers = self._name not in WITHOUT_MEMORY
        self.bound_by_top_k = source.settings.shown_at_most is None and not source.wants_evidence

    def build(self, parts: SystemContext) -> MemorySystem:
        source = self._cell.source
        system: MemorySystem = source.system_class(source.settings, parts)  # type: ignore[attr-defined]
        return system

    def model(self) -> ScriptedModel:
        return ScriptedModel(inner=self._models.reader)

    def embedder(self) -> Embedder:
        return self._models.embedder()

    def silent(self) -> bool:
        return self._cell.source.own_prompt or self._name == CONSTANT


async def _check_all(cell: Cell, is_verbose: bool) -> list[Outcome]:
    outcomes: list[Outcome] = []
    models = Models(cell.config, cell.run_key)
    try:
        system = CheckedCell(cell, models)
        for rule in CHECKS:
            if outcomes and outcomes[0].state == "not shown":
                why = "nothing is found at all"
                outcome = Outcome(rule.name, "not shown", why, is_essential=rule.is_essential)
            else:
                outcome = await outcome_of(rule, system)

            outcomes.append(outcome)
            # At once: a rule may take minutes against a service that calls a model.
            print(outcome.line, flush=True)
            for line in outcome.exchanges if is_verbose else ():
                print(f"    {line}", flush=True)
    finally:
        await models.aclose()

    return outcomes


def junit(name: str, outcomes: Sequence[Outcome]) -> str:
    """The outcomes as JUnit's XML."""
    suite = ElementTree.Element("testsuite", name=f"memeval check {name}")
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="memeval.check", name=outcome.name
        )
        message = one_line(outcome.line, LONGEST_TEXT)
        if outcome.fails:
            ElementTree.SubElement(case, "failure", message=message)
        elif outcome.state != "ok":
            ElementTree.SubElement(case, "skipped", message=message)

    suite.set("tests", str(len(outcomes)))
    failed = sum(outcome.fails for outcome in outcomes)
    sound = sum(outcome.state == "ok" for outcome in outcomes)
    suite.set("failures", str(failed))
    suite.set("skipped", str(len(outcomes) - failed - sound))

    ElementTree.indent(suite)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suite, "unicode")}\n'
