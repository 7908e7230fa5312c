"""The data that a packaged run asked about, if it is on this machine."""

import json
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial

from msgspec import Struct
from msgspec.structs import replace

from memeval.config.classes import is_built_in
from memeval.config.paths import data_dir
from memeval.config.resolve import read_config
from memeval.config.schema import RunConfig
from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.errors import UserError
from memeval.packages.form import withheld
from memeval.packages.rows import RunRows
from memeval.pipeline.execute.metrics import measure_answer
from memeval.pipeline.execute.repeat import ingest_id
from memeval.pipeline.execute.timeline import id_until, operations_done, timeline_events
from memeval.pipeline.execute.turns import CaseTurns
from memeval.pipeline.measure.provenance import DATA, data_tags
from memeval.pipeline.measure.records import members_of_data, write_recall
from memeval.pipeline.measure.run_notes import shortened_notes
from memeval.pipeline.open.code import OtherMetrics
from memeval.pipeline.open.opening import open_dataset
from memeval.pipeline.verify.figures import figure_problems
from memeval.records import EvalCase, EvalQuestion
from memeval.results import CONFIG_FILE, AnswerRow, Record, RunSummary
from memeval.results.note import remarks
from memeval.results.rows import OperationDone
from memeval.results.run import Run
from memeval.text.shown import one_line

MAX_KNOWN = 4
"""Maximum number of data sets kept in memory: a board uses few, one after the other."""


class PackagedData(Struct, frozen=True):
    config: RunConfig
    dataset: Dataset
    loaded: LoadedDataset
    cases: dict[str, EvalCase]
    questions: dict[str, EvalQuestion]
    """Those that the settings of the run ask."""
    turns: dict[str, CaseTurns]


_known: dict[str, PackagedData] = {}
"""Data sets by their settings, the most recently requested one last."""


# Read for the data, for the figures, and for the file of the findings.
@lru_cache(maxsize=MAX_KNOWN)
def config_of(run: Run) -> RunConfig:
    """The config of a packaged run.

    Raises `UserError` if it names the author's own class or file: nothing from a package is
    imported or read.
    """
    try:
        config = read_config(run.folder / CONFIG_FILE)
    except UserError:
        raise
    except Exception as error:
        # The file may have any content, and its readers may raise any error.
        raise UserError(f"its config.yaml can't be read: {one_line(error)}") from error

    classes = [config.judge.class_, config.dataset.get("class"), config.system.get("class")]
    classes += [config.embedder.class_, config.reranker.class_]
    if any(classes):
        raise UserError("it uses the author's own class, which is not loaded")
    if config.dataset.get("path"):
        raise UserError("it used the author's own data file, which is not in the package")
    if config.judge.prompt_file or config.prompt.file:
        raise UserError("it used the author's own prompt, which is not in the package")

    return config


def data_of(run: Run) -> PackagedData:
    """The data of a run. Raises `UserError` if it is not on this machine, or differs."""
    config = config_of(run)
    # As a string, since a config can't be a key. The seed matters for canaries.
    asked = json.dumps([config.dataset, config.seed, str(data_dir())], sort_keys=True, default=str)
    material = _known.pop(asked, None) or _read(config)
    while len(_known) >= MAX_KNOWN:
        _known.pop(next(iter(_known)))

    _known[asked] = material
    if material.loaded.sha256 != run.summary.data_sha256:
        raise UserError(
            f"the data on this machine has a different sha256 ({material.loaded.sha256[:8]})"
        )

    return replace(material, config=config)


def _read(config: RunConfig) -> PackagedData:
    try:
        dataset = open_dataset(config)
        if not is_built_in(type(dataset)):
            raise UserError(
                "its data set's class is from an installed package, which is not loaded"
            )

        loaded = dataset.load()
    except UserError as error:
        raise UserError(
            f"the data is not on this machine ({one_line(error.message, 200)})"
        ) from error

    data = PackagedData(config, dataset, loaded, cases={}, questions={}, turns={})
    for case in dataset.cases():
        data.cases[case.case_id] = case
        data.turns[case.case_id] = CaseTurns.of(case)
        for question in case.questions:
            data.questions[question.question_id] = question

    return data


def unlike_records(
    records: list[Record], rows: RunRows, data: PackagedData, others: OtherMetrics
) -> Iterator[str]:
    """Ids of the records that differ from those made again from the data and the rows; figures of
    `others` are not compared.
    """
    done_in = cache(partial(_operations_done, rows, data))
    for record in records:
        question = data.questions.get(record.question_id)
        row = rows.answers.get((record.repeat, record.question_id))
        done = done_in(record.repeat, record.case_id)
        if question is None or row is None or done is None:
            yield record.question_id
            continue

        row = _with_values(row, question)
        measured = measure_answer(row, question, data.turns[record.case_id], data.dataset)
        case = data.cases[record.case_id]
        part = id_until(case, question)
        memory = rows.ingests.get((record.repeat, ingest_id(part)))
        figures = {**measured.metrics, **write_recall(memory, question)}
        recorded = dict(record.metrics)
        for name in {*figures, *recorded}:
            if others.include(name, figures):
                recorded[name] = figures[name] = None

        timeline = tuple(timeline_events(case, question, done))
        members = members_of_data(question, measured)
        made = replace(record, metrics=figures, timeline=timeline, **members)
        if made != replace(with_texts(record, question), metrics=recorded):
            yield record.question_id


def _operations_done(
    rows: RunRows, data: PackagedData, repeat: int, case_id: str
) -> dict[int, OperationDone] | None:
    """Results of a case's operations, by position; None for an unknown case, and if a row has more
    operations than its case.
    """

    def done_until(memory: str) -> Sequence[OperationDone]:
        row = rows.ingests.get((repeat, ingest_id(memory)))
        return row.operations if row else ()

    try:
        return operations_done(data.cases[case_id], done_until)
    except (KeyError, ValueError):
        return None


def _with_values(row: AnswerRow, question: EvalQuestion) -> AnswerRow:
    """A row with the values that were found in the memory: a package without texts has digests."""
    if row.seen is None or question.traces is None:
        return row

    values = {withheld(value): value for value in question.traces.values}
    seen = {}
    for depth, seen_values in row.seen.items():
        seen[depth] = tuple(values.get(value, value) for value in seen_values)

    return replace(row, seen=seen)


def unlike_members(summary: RunSummary, records: list[Record], data: PackagedData) -> Iterator[str]:
    """Members of `run.json` that differ from those made from the data."""
    tags = {name: value for name, value in summary.tags.items() if name.startswith(DATA)}
    if tags != data_tags(data.loaded):
        yield "run.json: its data tags differ from the data on this machine"
    if dict(summary.facet_titles) != dict(data.dataset.facet_names):
        yield "run.json: its facet titles differ from those of the data set"

    texts_of_notes = {note.text for note in summary.notes}
    notes = shortened_notes(remarks((*data.loaded.notes, *data.dataset.notes())))
    if any(note.text not in texts_of_notes for note in notes):
        yield "run.json: a note of the data set is missing"

    measures = data.dataset.measures
    if tuple(measures(records)) != summary.protocol_metrics:
        yield "run.json: the data set's own metrics have different names"
    elif summary.protocol_metrics:
        yield from figure_problems(summary, records, None, measures)


def with_texts(record: Record, question: EvalQuestion) -> Record:
    """The record with the question's texts in place of their digests."""
    texts = (question.text, *question.gold, *question.choices)
    known = {withheld(text): text for text in texts}
    return replace(
        record,
        question=known.get(record.question, record.question),
        gold=tuple(known.get(text, text) for text in record.gold),
        choices=tuple(known.get(text, text) for text in record.choices),
    )
