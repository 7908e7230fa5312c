"""Files that stages and runs write: typed rows, the records that join them, the texts that they
refer to, and a run's summary.
"""

from memeval.results.files import (
    SEAL,
    as_json,
    file_digest,
    json_line,
    sealed,
    unsealed,
    write_atomically,
)
from memeval.results.judge import JudgeIdentity, is_same_judge, judge_shown
from memeval.results.note import Note, NoteKind
from memeval.results.record import Record, read_records
from memeval.results.rows import (
    INGEST_PREFIX,
    AnswerRow,
    IngestRow,
    RetrievedChunk,
    SentMessage,
    StepTimes,
)
from memeval.results.summary import (
    CONFIG_FILE,
    FEWEST_SESSIONS,
    FINISHED,
    FOUND_NOTHING,
    HYPOTHESES_FILE,
    RECORDS_FILE,
    RUN_FILE,
    STOPPED,
    TRACKED_FILE,
    CategoryResult,
    RepeatResult,
    RunSummary,
    fresh_cost_usd,
    hypotheses_file,
    is_imported,
    read_tracked,
    run_cost_usd,
)
from memeval.results.texts import Texts, TextStore, texts_file
from memeval.results.verdict_row import VerdictRow

__all__ = [
    "CONFIG_FILE",
    "FEWEST_SESSIONS",
    "FINISHED",
    "FOUND_NOTHING",
    "HYPOTHESES_FILE",
    "INGEST_PREFIX",
    "RECORDS_FILE",
    "RUN_FILE",
    "SEAL",
    "STOPPED",
    "TRACKED_FILE",
    "AnswerRow",
    "CategoryResult",
    "IngestRow",
    "JudgeIdentity",
    "Note",
    "NoteKind",
    "Record",
    "RepeatResult",
    "RetrievedChunk",
    "RunSummary",
    "SentMessage",
    "StepTimes",
    "TextStore",
    "Texts",
    "VerdictRow",
    "as_json",
    "file_digest",
    "fresh_cost_usd",
    "hypotheses_file",
    "is_imported",
    "is_same_judge",
    "json_line",
    "judge_shown",
    "read_records",
    "read_tracked",
    "run_cost_usd",
    "sealed",
    "texts_file",
    "unsealed",
    "write_atomically",
]
