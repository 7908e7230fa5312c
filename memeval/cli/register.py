"""`python -m memeval register [overrides] -o FILE`: registers runs before they are made."""

import sys
from collections.abc import Sequence
from pathlib import Path

from memeval.cli.parser import Parser, check_folder_of, one_of
from memeval.errors import UserError, unknown
from memeval.metrics.registry import metric_named, metrics
from memeval.packages.register import DIFFERENT, DIRECTIONS, make_statement, statement_bytes
from memeval.packages.signing import sign
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.retrieving import retrieves_only
from memeval.results import RUN_FILE, SEAL, write_atomically
from memeval.results.files import writing
from memeval.text.shown import in_shell, one_line

USAGE = f"""
registers runs before they are made; runs nothing

words* OVERRIDE           settings, as a run takes them
-o --output! FILE:path    a new file
--systems A,B             the systems to compare, the baseline first (default: that of the
    settings)
--metric METRIC           the metric to compare
--direction {one_of(DIRECTIONS)}  the expected direction of the others against the baseline
--smallest POINTS:points  the smallest difference that matters
--stopping TEXT           the stopping rule
--sign KEYFILE:file       sign it with an SSH key, as FILE.sig
"""
PARSER = Parser.of(
    "register",
    USAGE,
    metric="accuracy",
    direction=DIFFERENT,
    smallest=0.0,
    stopping="when all questions are done",
)


def register(arguments: Sequence[str]) -> int:
    """Opens the chosen runs without running them, and writes the registration."""
    options = PARSER.parse_intermixed_args(list(arguments))
    if options.output.exists():
        raise UserError(
            f"register: {one_line(options.output)} already exists",
            "use a new file: a registration is never overwritten",
        )

    check_folder_of("--output", options.output)

    from memeval.packages.cleaning import Cleaner

    metric = metric_named(options.metric).name
    if metric not in metrics():
        raise unknown("metric", one_line(options.metric), metrics())

    cells = _open_cells(options.words, (options.systems or "").split(","))
    if metric == "accuracy" and any(retrieves_only(cell.config) for cell in cells):
        raise UserError(
            "register: runs with stages=retrieve have no accuracy",
            "name a metric of the retrieval:  --metric recall_at_10",
        )

    statement = make_statement(
        cells,
        metric=metric,
        direction=options.direction,
        smallest_difference=options.smallest,
        stopping=options.stopping,
        clean=Cleaner({}).clean_own,
    )
    _write(statement_bytes(statement), options.output, options.sign)
    print(f"wrote:  {options.output}, digest {statement[SEAL]}")
    for cell in cells:
        print(f"  {cell.run_key}  {one_line(cell.name)}")

    _print_notes(cells)
    print("prove:  to prove the date, commit the file and push the commit before the first run")
    print(f"later:  python -m memeval pack … --register {in_shell(options.output)}")
    return 0


def _write(content: bytes, path: Path, key_file: Path | None) -> None:
    """Writes the registration, and its signature if there is a key."""
    # The signature first: a key may be refused, and a registration is never overwritten.
    texts: dict[Path, str] = {}
    if key_file is not None:
        texts[path.with_name(f"{path.name}.sig")] = sign(content, key_file).decode()

    for target, text in {**texts, path: content.decode()}.items():
        with writing(target):
            write_atomically(target, text)


def _open_cells(overrides: Sequence[str], systems: Sequence[str]) -> list[Cell]:
    from memeval.api.running import compose_cell

    if len(set(systems)) < len(systems):
        raise UserError(f"register: --systems {one_line(','.join(systems))} names a system twice")

    cells = []
    for system in systems:
        words = list(overrides)
        if system:
            words.append(f"system={system}")

        cells.append(compose_cell(words))

    return cells


def _print_notes(cells: Sequence[Cell]) -> None:
    """Prints the findings that `verify` will report about runs begun before their registration."""
    for cell in cells:
        if (cell.folder / RUN_FILE).exists():
            print(
                f"note: {cell.run_key} has already run here: verify will report it", file=sys.stderr
            )
        elif any(cell.answers_file(seed).exists() for seed in cell.seeds):
            print(
                f"note: {cell.run_key} will reuse stored answers: verify will report those from "
                "unregistered runs",
                file=sys.stderr,
            )
