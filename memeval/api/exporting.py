"""Exports finished runs as files of other tools."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memeval.api.arguments import check_types
from memeval.api.selecting import select_run
from memeval.comparison.finding import check_records
from memeval.config.paths import outputs_dir
from memeval.errors import UserError, require_library, unknown
from memeval.packages.export.hf_folder import write_hf
from memeval.packages.export.inspect_log import write_inspect
from memeval.packages.export.rows import export_rows
from memeval.packages.export.terms import DataTerms, terms_of
from memeval.packages.export.wandb_files import write_wandb
from memeval.results.files import folder_beside, writing
from memeval.results.run import Run
from memeval.text.shown import one_line

INSPECT, HF, WANDB = "inspect", "hf", "wandb"
TOOLS = (INSPECT, HF, WANDB)


@dataclass(frozen=True)
class Export:
    """Files written for another tool."""

    folder: Path
    tool: str
    has_texts: bool
    """Whether the files contain the texts of questions, answers and passages."""
    terms: DataTerms
    """The licence of these texts."""


@check_types
def export(
    run: Run | str | Path, to: str, *, output: str | Path | None = None, with_texts: bool = False
) -> Export:
    """Writes a finished run for another tool: `"inspect"` a log of inspect_ai, `"hf"` a folder of
    `datasets` with a card, `"wandb"` an offline run of Weights & Biases.

    `output` is a new or empty folder; by default below `outputs/exports`, where an earlier export
    of the run is replaced. Texts are left out if the data's licence is not known to allow passing
    them on, unless `with_texts`.

    Raises `UserError` for an unknown tool or run, a folder that is not empty, and a library that is
    not installed, `StorageError` if the disk refuses.
    """
    if to not in TOOLS:
        raise unknown("tool", one_line(to), TOOLS)
    if to == WANDB:
        require_library("wandb", "export --to wandb needs the wandb library", "wandb")

    selected = run if isinstance(run, Run) else select_run(run, "export")[0]
    check_records(selected)
    folder = outputs_dir() / "exports" / selected.key / to
    if output is not None:
        folder = Path(output)
        is_empty = folder.is_dir() and not any(folder.iterdir())
        if folder.exists() and not is_empty:
            raise UserError(f"{one_line(folder)} is not an empty folder", "use:  a new folder")

    terms = terms_of(selected.summary)
    has_texts = with_texts or terms.allows_texts
    rows = list(export_rows(selected, with_texts=has_texts))
    with writing(folder):
        if to == INSPECT:
            _replace(folder, lambda part: write_inspect(selected, rows, terms, part))
        elif to == HF:
            _replace(folder, lambda part: write_hf(selected, rows, terms, part, texts=has_texts))
        else:
            _write_in_place(folder, lambda part: write_wandb(selected, rows, terms, part))

    return Export(folder=folder, tool=to, has_texts=has_texts, terms=terms)


def _replace(folder: Path, write: Callable[[Path], None]) -> None:
    """Writes a folder under a temporary name, and renames it when it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder_beside(folder) as name:
        part = Path(name)
        write(part)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)


def _write_in_place(folder: Path, write: Callable[[Path], None]) -> None:
    """Writes a folder whose files contain its path, so it can't be renamed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    try:
        write(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
