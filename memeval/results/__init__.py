"""What stages and runs leave on disk: typed rows, the records that join them, the texts that they
refer to, and a run's summary.
"""

from memeval.results.files import (
    SEAL,
    as_json,
    file_digest,
    is_sealed,
    json_line,
    sealed,
    text_digest,
    write_atomically,
)
from memeval.results.record import TIMES, Record, read_records
from memeval.results.retrieved import RetrievedChunk
from memeval.results.rows import (
    INGEST_PREFIX,
    AnswerRow,
    IngestRow,
    SentMessage,
    StepTimes,
)
from memeval.results.summary import (
    CONFIG_FILE,
    FINISHED,
    HYPOTHESES_FILE,
    RECORDS_FILE,
    RUN_FILE,
    STOPPED,
    TRACKED_FILE,
    CategoryResult,
    RepeatResult,
    RunSummary,
    hypotheses_file,
)
from memeval.results.texts import Texts, TextStore, texts_file
from memeval.results.verdict_row import VerdictRow

__all__ = [
    "CONFIG_FILE",
    "FINISHED",
    "HYPOTHESES_FILE",
    "INGEST_PREFIX",
    "RECORDS_FILE",
    "RUN_FILE",
    "SEAL",
    "STOPPED",
    "TIMES",
    "TRACKED_FILE",
    "AnswerRow",
    "CategoryResult",
    "IngestRow",
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
    "hypotheses_file",
    "is_sealed",
    "json_line",
    "read_records",
    "sealed",
    "text_digest",
    "texts_file",
    "write_atomically",
]
