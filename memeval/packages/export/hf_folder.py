"""A run as a folder that `datasets.load_dataset` reads: a Parquet file and a card."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml  # type: ignore[import-untyped]

from memeval.packages.export.rows import Row, run_identity
from memeval.packages.export.terms import DataTerms
from memeval.report.comparison import comparison_markdown
from memeval.report.escaping import fenced, inline
from memeval.results.files import write_atomically
from memeval.results.run import Run
from memeval.text.shown import one_line

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

DATA = "data/records.parquet"
CARD = "README.md"
SPLIT = "test"
METRIC = "metrics."
"""Prefix of the columns of metrics, as in `Run.records()`."""
ABOUT_COLUMNS = (
    "`label` is the verdict of `judge`; `score` is empty, not 0, if the answer could not be "
    "scored. `retrieved` is best first; `evidence` in it says whether a passage covers a "
    "turn of the column `evidence`. Shares are in [0, 1]."
)


def write_hf(run: Run, rows: Sequence[Row], terms: DataTerms, folder: Path, texts: bool) -> None:
    """Writes the records and the card; `texts` says whether the rows contain the data's texts."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    metrics: dict[str, None] = {}
    for row in rows:
        metrics |= dict.fromkeys(row["metrics"])

    flat = []
    for row in rows:
        figures = {f"{METRIC}{name}": row["metrics"].get(name) for name in metrics}
        flat.append({**row, **figures})

    path = folder / DATA
    path.parent.mkdir()
    pq.write_table(pa.Table.from_pylist(flat, schema=_schema(metrics)), path)
    write_atomically(folder / CARD, card(run, terms, texts=texts))


def card(run: Run, terms: DataTerms, *, texts: bool) -> str:
    """The card: licence, command, figures, and the meaning of the columns."""
    about = run_identity(run)
    head = {
        "license": terms.identifier,
        "pretty_name": one_line(about["name"]),
        "tags": ["memeval", "agent-memory"],
        "configs": [{"config_name": "default", "data_files": [{"split": SPLIT, "path": DATA}]}],
    }
    if not texts or not terms.identifier:
        head |= {"license": "other", "license_name": terms.licence}

    lines = [
        "---",
        yaml.safe_dump(head, sort_keys=False, allow_unicode=True).rstrip(),
        "---",
        f"# {inline(one_line(about['name']))}",
        "",
        f"Answers of a memory system to {inline(terms.title)}, measured by memeval. "
        "A row is one question of one repeat.",
        "",
        *fenced(about["command"], "bash"),
        "",
        comparison_markdown([run.summary]),
        "## Licence",
        "",
        f"The licence of the texts of {inline(terms.title)}: {inline(terms.licence)}. "
        + _about_texts(terms, texts),
        "",
    ]
    if terms.citation:
        lines += [*fenced(terms.citation, "text"), ""]

    return "\n".join([*lines, "## Columns", "", ABOUT_COLUMNS, ""])


def _about_texts(terms: DataTerms, texts: bool) -> str:
    if not texts:
        return (
            "It is not known to allow passing them on: questions, answers and passages are left "
            "out; ids, verdicts and figures are included."
        )
    if not terms.allows_texts:
        return "The person who exported them chose to include them."

    return "Anyone who passes them on must comply with it."


def _schema(metrics: Iterable[str]) -> "pa.Schema":
    import pyarrow as pa

    text, number, texts = pa.string(), pa.float64(), pa.list_(pa.string())
    passage = {"turn_ids": texts, "evidence": pa.bool_(), "score": number, "text": text}
    fields = {
        "question_id": text,
        "case_id": text,
        "category": text,
        "category_name": text,
        "repeat": pa.int64(),
        "question": text,
        "gold": texts,
        "choices": texts,
        "answerable": pa.bool_(),
        "evidence": texts,
        "status": text,
        "hypothesis": text,
        "label": text,
        "score": number,
        "judge": text,
        "reason": text,
        "retrieved": pa.list_(pa.struct(list(passage.items()))),
        "context": text,
        "context_tokens": pa.int64(),
        "answer_ms": number,
        "error": text,
    }
    for name in metrics:
        fields[f"{METRIC}{name}"] = number

    return pa.schema(list(fields.items()))
