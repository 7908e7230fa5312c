"""Repeats verdicts and answers of a packaged run in a separate home: nothing from the package is
written to the user's home, and no reply comes from a cache.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memeval.api.judging import from_answers
from memeval.config.classes import is_built_in
from memeval.config.paths import data_dir
from memeval.config.resolve import resolve
from memeval.config.schema import ReaderConfig, RunConfig, WriterConfig
from memeval.errors import UserError
from memeval.packages.data import config_of
from memeval.pipeline.execute.run import CellRun
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.opening import open_cell
from memeval.pipeline.open.system_source import IMPORTED
from memeval.pipeline.verify.sound import name_ids
from memeval.process.environment import environment
from memeval.results import CONFIG_FILE, Record, is_imported, json_line, read_records
from memeval.results.files import temporary_folder
from memeval.results.prices import UNKNOWN_PROVIDER, provider_of
from memeval.results.run import Run
from memeval.runs.cell import run_alone
from memeval.runs.schedule import MakeRun
from memeval.statistics.proportions import wilson_interval
from memeval.systems.registry import system_class
from memeval.text.redaction import holds_replacement
from memeval.text.shown import one_line
from memeval.text.yaml_files import load_yaml

SEED = 20_260_101
"""Seed of the sample: a second check requests the same answers."""


def judge_again(run: Run, records: Sequence[Record], count: int) -> str:
    """Asks a run's judge again about `count` answers; reports how many verdicts agree.

    Raises `UserError` for settings that can't be used here.
    """
    drawn = _draw([record for record in records if record.hypothesis is not None], count)
    with _temporary_home() as home:
        config = _config(run, drawn)
        # The answers come from a file: there are no tools, and no memory to plant turns in.
        config.reader, config.writer = ReaderConfig(), WriterConfig()
        config.dataset = {**config.dataset, "canaries": 0}
        lines = []
        for record in drawn:
            row = {"question_id": record.question_id, "hypothesis": record.hypothesis}
            lines.append(json_line(row))

        file = home / "answers.jsonl"
        file.write_text("".join(lines), encoding="utf-8")
        job = from_answers(str(file), config, "", only_listed=True, judged_by=None)
        again = _complete(job.cell, job.make_run)

    return _agreement("verdicts", drawn, again)


def answer_again(run: Run, records: Sequence[Record], count: int) -> str:
    """Answers `count` questions of a run again; reports how many verdicts agree.

    Raises `UserError` for settings that can't be used here, and for answers of another program.
    """
    if is_imported(run.summary):
        raise UserError("its answers came from another program, so they can't be repeated here")

    settings = config_of(run).system
    if _without_urls(settings) != settings:
        raise UserError("its system's settings contain a URL, or a path that was replaced")

    system = system_class(settings["name"])
    if system.settings_type.is_served or not is_built_in(system):
        raise UserError("its system is the author's own program or service, which is not called")

    drawn = _draw(records, count)
    with _temporary_home():
        again = _complete(open_cell(_config(run, drawn), ""))

    return _agreement("answers", drawn, again)


def _complete(cell: Cell, make_run: MakeRun = CellRun) -> dict[str, Record]:
    outcome = run_alone(cell, make_run=make_run, quiet=True)
    if outcome.error is not None:
        raise outcome.error

    records = read_records(cell.folder / "records.jsonl")
    return {record.question_id: record for record in records}


def _draw(records: Sequence[Record], count: int) -> list[Record]:
    # Only one repeat, because a file of answers has one answer per question.
    scored = [record for record in records if record.score is not None and record.repeat == 0]
    if not scored:
        raise UserError("it has no scored answers")

    chosen = random.Random(SEED).sample(range(len(scored)), min(count, len(scored)))
    return [scored[number] for number in sorted(chosen)]


def _config(run: Run, drawn: Sequence[Record]) -> RunConfig:
    """The settings of a run for some of its questions, with one repeat and without logging."""
    config_of(run)
    config = resolve(_without_urls(load_yaml(run.folder / CONFIG_FILE)))
    for settings in (config.llm, config.llm.ingest, config.llm.judge, config.embedder):
        if getattr(settings, "headers", None):
            raise UserError("its requests need the author's own headers, which are not sent")
        variable = getattr(settings, "api_key_env", None)
        if variable is not None and not variable.endswith("_API_KEY"):
            raise UserError(f"its api_key_env does not end in _API_KEY: {one_line(variable, 60)}")

    whole = dict.fromkeys(("limit_cases", "limit_questions", "sample", "only"))
    ids = [record.question_id for record in drawn]
    config.dataset = {**config.dataset, **whole, "question_ids": ids}
    if config.system["name"] == IMPORTED:
        config.system = {"name": IMPORTED}

    config.num_runs, config.tracking.name, config.plots = 1, "none", False
    config.confirm_above_usd = None
    config.prices = None  # a path of the package is not read
    return config


def _without_urls(value: Any) -> Any:
    """A value of a package's config without URLs, except those of known providers: the user's key
    is not sent elsewhere, and `OPENAI_BASE_URL` replaces the missing ones.
    """
    if isinstance(value, dict):
        return {name: _without_urls(member) for name, member in value.items()}
    if isinstance(value, list):
        return list(map(_without_urls, value))
    if not isinstance(value, str):
        return value

    is_theirs = "://" in value and provider_of(value) == UNKNOWN_PROVIDER
    return None if is_theirs or holds_replacement(value) else value


@contextmanager
def _temporary_home() -> Iterator[Path]:
    """A temporary home; the data folder stays the same."""
    data = str(data_dir())
    with (
        temporary_folder("again") as folder,
        environment({"MEMEVAL_HOME": folder, "MEMEVAL_DATA_DIR": data}),
    ):
        yield Path(folder)


def _agreement(noun: str, drawn: Sequence[Record], again: Mapping[str, Record]) -> str:
    """`17 of 20 answers agree (85.0 % [64.0, 94.8]); different: …`."""
    unlike = []
    scored = 0
    for record in drawn:
        other = again.get(record.question_id)
        if other is None or other.score is None:
            continue

        scored += 1
        if other.is_right != record.is_right:
            unlike.append(record.question_id)

    if not scored:
        return f"none of {len(drawn)} {noun} could be scored again"

    low, high = wilson_interval(scored - len(unlike), scored)
    share = 100 * (scored - len(unlike)) / scored
    text = (
        f"{scored - len(unlike)} of {scored} {noun} have the same verdict again "
        f"({share:.1f} % [{100 * low:.1f}, {100 * high:.1f}])"
    )
    if scored < len(drawn):
        text += f", {len(drawn) - scored} could not be scored"

    if unlike:
        text += f"; different: {name_ids(unlike)}"

    return text
