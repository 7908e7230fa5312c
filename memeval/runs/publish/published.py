"""Finds the finished cells that already have their report and their run, without loading MLflow."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from memeval.config.filing import Filing, read_filing
from memeval.pipeline.measure.provenance import own_tags
from memeval.pipeline.open.cell import Cell
from memeval.process.root import project_root
from memeval.report.stamp import has_report
from memeval.results import RunSummary
from memeval.results.files import writing
from memeval.tracking.known import logged_urls
from memeval.tracking.store import check_store, locate


def find_published(cells: Iterable[Cell], sweep: str | None) -> dict[Path, str]:
    """URLs in MLflow, by run folder, of the finished cells whose report and run are up to date; an
    empty URL if a cell is not tracked. `sweep` is the digest of the sweep's overrides.

    Raises `UserError` for a string that is not a tracking URI.
    """
    urls: dict[Path, str] = {}
    by_store: dict[str | None, dict[Path, Filing]] = {}
    for cell in filter(is_reported, cells):
        tracking = cell.config.tracking
        if tracking.name == "none":
            urls[cell.folder] = ""
            continue

        filings = by_store.setdefault(tracking.uri, {})
        filings[cell.folder] = read_filing(cell.config, sweep)

    for uri, filings in by_store.items():
        store = locate(project_root(), uri)
        check_store(store)
        urls |= logged_urls(filings, store)

    return urls


def is_reported(cell: Cell) -> bool:
    """Whether a finished cell's report is up to date, and tagged with the sweep requesting it."""
    try:
        summary = RunSummary.read(cell.folder)
    except (OSError, ValueError, RecursionError):
        return False

    # `run.json` names the sweep: a new sweep that requests the run rewrites it, then the report.
    tagged = cell.config.sweep_name in (None, summary.sweep)
    return tagged and has_report(cell.folder, plots=cell.config.plots is not False)


def refile(cell: Cell, summary: RunSummary) -> RunSummary:
    """A finished run's summary, stored with the sweep and the tags of the current request."""
    tags = own_tags(cell.config)
    sweep = cell.config.sweep_name or summary.sweep
    if sweep is not None:
        tags["sweep"] = sweep

    filed = replace(summary, sweep=sweep, tags={**summary.tags, **tags})
    if filed == summary:
        return summary

    with writing(cell.folder):
        filed.write(cell.folder)

    return filed
