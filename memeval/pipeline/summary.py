"""From a finished cell to its run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any

from memeval import __version__
from memeval.config.resolve import as_yaml, fields_of, flatten
from memeval.config.roles import INGEST, JUDGE, settings_of_role
from memeval.config.schema import ANSWER, JudgeConfig
from memeval.config.settings import TIMEOUT
from memeval.datasets.contract import DatasetSettings
from memeval.errors import StorageError
from memeval.pipeline.cell import Cell
from memeval.pipeline.imported_source import IMPORTED
from memeval.pipeline.measure import (
    measure_categories,
    measure_cell,
    measure_facets,
    measure_repeat,
    statuses,
)
from memeval.pipeline.memory import CUT_REPLIES
from memeval.pipeline.records import (
    Ingest,
    as_lines,
    hypotheses,
    ingests,
    records,
    rows_digests,
)
from memeval.pipeline.rows import RETRYABLE
from memeval.pipeline.run import Finished
from memeval.pipeline.surroundings import git_state, versions
from memeval.private import make_folder
from memeval.records import IngestHealth, Status
from memeval.redaction import redacted_in
from memeval.results import (
    CONFIG_FILE,
    RECORDS_FILE,
    RUN_FILE,
    Record,
    RepeatResult,
    RunSummary,
    hypotheses_file,
    read_records,
    text_digest,
    write_atomically,
)
from memeval.shown import one_line

LONGEST_NOTE = 1000
"""Characters of a note: what follows in an error or a note of a system is in the records."""
_COMMON = frozenset(
    {
        "name",
        *(field.name for field in fields(DatasetSettings)),
        "category_names",
        "evidence_recall",
    }
)
"""Settings of a data set that say nothing of its own protocol, or that `protocol` names apart."""
FIGURES_CODE = "figures_code"
"""Tag that holds the identity of the code which made the figures from the rows."""
SYSTEM_FLAGS = "system_flags"
"""Tag that holds the words which a system adds to the column `flags`, joined by commas."""
_OF_IMPORTED = ("dataset", "system", "judge", "llm", "seed", "min_coverage")
"""Groups and fields that mean something for answers that another program gave."""


def finish(cell: Cell, finished: Finished) -> RunSummary:
    """Measures a finished cell and writes its run folder, `run.json` last.

    Raises `StorageError` where the disk refuses.
    """
    rows, ingest_rows = list(records(cell, finished)), list(ingests(cell, finished))
    summary = summarise(cell, finished, rows, ingest_rows)
    files = {
        CONFIG_FILE: config_yaml(cell),
        RECORDS_FILE: as_lines([row.to_json() for row in rows]),
    }
    for repeat in summary.repeats:
        files[hypotheses_file(repeat.repeat)] = as_lines(hypotheses(rows, repeat.repeat))

    summary = replace(
        summary,
        files={name: text_digest(text) for name, text in files.items()},
        rows=rows_digests(finished),
        identity=identity(cell),
    )
    try:
        make_folder(cell.folder)
        for name, text in files.items():
            write_atomically(cell.folder / name, text)

        summary.write(cell.folder)
    except OSError as error:
        raise StorageError(f"{cell.folder} can't be written: {error.strerror or error}") from error

    return summary


def identity(cell: Cell) -> dict[str, Any]:
    """What the run key is made of beside the config: so it can be made again without the data."""
    keys = [{"seed": seed, **asdict(cell.keys(seed))} for seed in cell.seeds]
    return {"version": __version__, "inputs": asdict(cell.identity), "keys": keys}


@dataclass(frozen=True)
class Earlier:
    """What an earlier run of a cell left."""

    summary: RunSummary | None = None
    """Its summary, where it is whole and nothing is left to try again."""
    damage: tuple[str, ...] = ()
    """What does not fit, and so is made again from the rows, a line each."""


def earlier(cell: Cell) -> Earlier:
    """What there is of a cell that was finished before."""
    try:
        summary = RunSummary.read(cell.folder)
    except FileNotFoundError:
        return Earlier()
    except (OSError, ValueError, RecursionError) as error:
        return Earlier(damage=(one_line(error.strerror if isinstance(error, OSError) else error),))

    misfits = summary.misfits(cell.folder)
    if summary.run_key != cell.run_key:
        misfits.insert(0, f"{RUN_FILE} is that of another run, {summary.run_key}")
    if misfits:
        return Earlier(damage=tuple(misfits))

    if summary.tags.get(FIGURES_CODE) != cell.figures_code:
        return Earlier()  # the figures are made again from the rows, without a call

    left = RETRYABLE.intersection(summary.statuses) or _unread_verdicts(cell, summary)
    whole = sum(summary.statuses.values()) > 0 and not left
    return Earlier(summary if whole else None)


def _unread_verdicts(cell: Cell, summary: RunSummary) -> bool:
    """Whether a judge's reply could not be read, and is to be asked for again."""
    if Status.UNPARSED not in summary.statuses:
        return False

    return any(record.tries for record in read_records(cell.folder / RECORDS_FILE))


def summarise(
    cell: Cell, finished: Finished, rows: Sequence[Record], ingest_rows: Sequence[Ingest]
) -> RunSummary:
    """The results of a cell."""
    headline = cell.dataset.headline
    repeats = []
    for number, repeat in enumerate(finished.repeats):
        own = [row for row in rows if row.repeat == number]
        made = [row for row in ingest_rows if row.seed == repeat.seed]
        protocol = cell.dataset.measures(own)
        repeats.append(
            RepeatResult(number, repeat.seed, measure_repeat(own, made, headline) | dict(protocol))
        )

    measured = [dict(repeat.metrics) for repeat in repeats]
    metrics = measure_cell(measured, rows, headline) | {"duration_s": finished.seconds}
    coverage = metrics["coverage"]
    return RunSummary(
        run_key=cell.run_key,
        name=cell.name,
        dataset=cell.config.dataset["name"],
        sweep=cell.config.sweep_name,
        command=cell.command,
        params=params(cell),
        tags=tags(cell) | _tags_of_ingests(ingest_rows),
        metrics=metrics,
        categories=measure_categories(rows, measured, headline),
        protocol_metrics=tuple(protocol),
        facets=measure_facets(rows, measured),
        facet_titles=dict(cell.dataset.facet_names),
        repeats=tuple(repeats),
        notes=tuple(
            one_line(note, LONGEST_NOTE) for note in notes(cell, finished, rows, ingest_rows)
        ),
        valid=coverage is not None and coverage >= cell.config.min_coverage,
        started_at=finished.started_at.isoformat(timespec="milliseconds"),
        finished_at=_end(finished).isoformat(timespec="milliseconds"),
        statuses=statuses(rows),
    )


def _end(finished: Finished) -> datetime:
    return finished.started_at + timedelta(seconds=finished.seconds)


def params(cell: Cell) -> dict[str, str | int | float | bool | None]:
    """The resolved config, flattened; the name of a group's option is filed under the group itself.

    Fields that the chosen options do not have, such as the temperature of the offline reader, are
    left out.
    """
    leaves = {path.removesuffix(".name"): value for path, value in flatten(cell.config).items()}
    leaves = {path: value for path, value in leaves.items() if _applies(cell, path)}
    # What a role leaves open is as the answers' model has it.
    leaves = {
        path: value
        for path, value in leaves.items()
        if value is not None or not path.startswith((f"{INGEST}.", f"{JUDGE}.", "llm.judge_model"))
    }
    if cell.config.system["name"] == IMPORTED:
        leaves = {
            path: value for path, value in leaves.items() if path.split(".")[0] in _OF_IMPORTED
        }

    leaves |= flatten(asdict(cell.source.settings), "system.")
    return {
        path: ",".join(map(str, value)) if isinstance(value, list) else value
        for path, value in leaves.items()
    }


def _applies(cell: Cell, path: str) -> bool:
    """Whether a field is one of the option that its group has chosen."""
    group, dot, field = path.partition(".")
    if not dot:
        return group not in ("tracking", "fresh", "plots", "sweep_name")
    if group in ("system", "tracking"):
        return False
    if group == "dataset":
        return True
    if path == "judge.class":
        return cell.config.judge.class_ is not None

    known = fields_of(group, getattr(cell.config, group).name)
    is_parameter = "extra_body" in field.split(".")
    return not known or field in known or is_parameter


def tags(cell: Cell) -> dict[str, str]:
    """Where a run comes from, and what it may be compared with."""
    imported = cell.config.system["name"] == IMPORTED
    found = {
        "run_key": cell.run_key,
        "protocol": protocol(cell),
        "data_sha256": cell.loaded.sha256,
        "data_pinned": str(cell.loaded.pinned).lower(),
        "prompt_sha256": cell.identity.digests[ANSWER]["prompt"],
        "deterministic": str(_reads_offline(cell)).lower(),
        "own_prompt": str(cell.source.own_prompt or cell.style != cell.config.prompt.name).lower(),
        "imported": str(imported).lower(),
        "command": cell.command,
        FIGURES_CODE: cell.figures_code,
        **git_state(),
        **{f"version.{package}": number for package, number in versions().items()},
    }
    if cell.judge_template:
        found["judge_prompt_sha256"] = cell.judge_template.sha256
    if cell.config.system.get("only_listed"):
        found["partial"] = "true"
    if cell.config.llm.name == "mock":
        found["mock"] = "true"
    if cell.source.flags:
        found[SYSTEM_FLAGS] = ", ".join(cell.source.flags)
    if cell.source.ranks_part:
        found["ranks_part"] = "true"
    if cell.loaded.excerpt:
        found["data_excerpt"] = "true"
    if cell.loaded.derived:
        found["data_derived"] = "true"
    if cell.config.sweep_name:
        found["sweep"] = cell.config.sweep_name

    return found


def _tags_of_ingests(ingest_rows: Sequence[Ingest]) -> dict[str, str]:
    """Tags of a cell whose memories rest on replies that were cut."""
    is_cut = any(CUT_REPLIES in ingest.row.notes for ingest in ingest_rows)
    return {"cut_at_ingest": "true"} if is_cut else {}


def _reads_offline(cell: Cell) -> bool:
    """Whether the answers come from the offline reader."""
    return (
        cell.config.llm.name == "extractive"
        and cell.config.system["name"] != IMPORTED
        and not cell.source.own_prompt
    )


def protocol(cell: Cell) -> str:
    """The choices that make two figures comparable, in one line."""
    config = cell.config
    dataset = config.dataset
    judge = config.judge.name
    if config.judge.class_:
        judge += f"@{config.judge.class_}"

    if cell.judge_template:
        judged_by = [
            str(settings_of_role(config.llm, JUDGE).model),
            cell.judge_template.sha256[:8],
        ]
        defaults = JudgeConfig()
        for name in ("repeats", "reading", "fence"):
            value = getattr(config.judge, name)
            if value != getattr(defaults, name):
                judged_by.append(f"{name}={value}".lower())

        judge += f"({', '.join(judged_by)})"

    asked = dataset["categories"]
    own = [f"{name}={value}" for name, value in dataset.items() if name not in _COMMON]
    parts = [
        dataset["name"],
        cell.loaded.sha256[:8],
        *own,
        f"categories={','.join(map(str, asked)) if asked else 'all'}",
    ]
    limits = [
        f"{name}={dataset[name]}" for name in ("limit_cases", "limit_questions") if dataset[name]
    ]
    return " ".join([*parts, f"prompt={config.prompt.name}", f"judge={judge}", *limits])


def notes(
    cell: Cell, finished: Finished, rows: Sequence[Record], ingest_rows: Sequence[Ingest]
) -> Iterator[str]:
    """What a reader of the figures must know."""
    if not cell.loaded.pinned:
        pin = cell.loaded.info.sha256 or cell.loaded.info.files
        why = "is not the registered one" if pin else "is unpinned: no sha256 is registered for it"
        yield (
            f"The data file {why} (sha256 {cell.loaded.sha256[:12]}…): its figures can't be "
            "compared with others."
        )

    if _reads_offline(cell):
        yield (
            "Answers come from the offline extractive reader: it is deterministic, and not a "
            "language model. Repeats agree by construction."
        )

    if cell.judge_template and not cell.judge_settings.fences(cell.judge_template):
        yield (
            "The judge gets each answer without marks around it, as its prompt template is "
            "written: judge.fence=true sets them."
        )

    if cell.config.llm.name == "mock":
        yield "The mock model replaces a language model: its figures mean nothing."

    yield from _failures(rows)
    yield from _losses(ingest_rows)
    yield from _compressions(cell, ingest_rows)
    cut = Counter(key for row in rows for key in row.notes if key.startswith("cut_"))
    if cut["cut_chunks"]:
        yield f"The context was cut at its old end for {cut['cut_chunks']} of {len(rows)} answers."

    said = {
        f"{key}: {value}"
        for row in rows
        for key, value in row.notes.items()
        if not key.startswith("cut_")
    }
    said |= {
        f"{key}, at ingest: {value}"
        for ingest in ingest_rows
        for key, value in ingest.row.notes.items()
    }
    yield from sorted(said)[:20]
    dropped = sum(repeat.answers.dropped + repeat.verdicts.dropped for repeat in finished.repeats)
    if dropped:
        yield (
            f"{dropped} lines of an earlier pass were torn, damaged, edited or of another key: "
            "they were left out and made again."
        )

    unsealed = sum(
        repeat.answers.unsealed + repeat.verdicts.unsealed for repeat in finished.repeats
    )
    if unsealed:
        yield (
            f"{unsealed} rows were written by an earlier version without a seal: an edit of them "
            "would not be seen."
        )

    yield from finished.notes
    yield from cell.loaded.notes
    yield from cell.dataset.notes()


def _failures(rows: Sequence[Record]) -> Iterator[str]:
    for status, count in statuses(rows).items():
        if status != Status.OK:
            example = next(filter(None, (_why(row) for row in rows if row.status == status)), "")
            reason = f": {example}" if example else ""
            yield f"{count} of {len(rows)} records are {status} and have no score{reason}."


def _why(record: Record) -> str:
    """Why a record has no score, as far as it says."""
    if record.tries and record.verdict:
        return f"the judge's reply {one_line(record.verdict.reason)}; the same command asks again"

    return record.error or ""


def _losses(ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    healths = [ingest.health for ingest in ingest_rows if ingest.health]
    hurt = [health for health in healths if health.lost]
    if not hurt:
        return

    total = IngestHealth(
        asked=sum(health.asked for health in healths),
        stored=sum(health.stored for health in healths),
        lost=sum(health.lost for health in healths),
    )
    yield (
        f"{total.summary}, in {len(hurt)} of {len(healths)} conversations: their answers rest on "
        "less than was said."
    )


def _compressions(cell: Cell, ingest_rows: Sequence[Ingest]) -> Iterator[str]:
    turn = cell.config.compression_turn
    if turn == "never" or not ingest_rows:
        return

    idle = sum(ingest.row.compressions == 0 for ingest in ingest_rows)
    if idle:
        yield (
            f"compression_turn={turn} lies past the end of {idle} of {len(ingest_rows)} "
            "conversations and never fired there."
        )


def config_yaml(cell: Cell) -> str:
    """The resolved config as YAML, but for where runs are logged: it changes no result."""
    system = {"name": cell.config.system["name"], **asdict(cell.source.settings)}
    system |= {
        name: cell.config.system[name] for name in ("class", TIMEOUT) if name in cell.config.system
    }
    settings = {
        name: value
        for name, value in asdict(cell.config).items()
        if name not in ("tracking", "fresh", "plots")
    }
    settings["judge"] = {name.removesuffix("_"): value for name, value in settings["judge"].items()}
    return as_yaml(redacted_in({**settings, "system": system}))
