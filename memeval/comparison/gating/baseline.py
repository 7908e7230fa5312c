"""The baseline of a gate: a small file to commit, which is read as untrusted data."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from memeval.comparison.protocol import LABELS
from memeval.comparison.scores import RunScores
from memeval.config.identity import result_settings
from memeval.datasets.io.fields import unique_fields
from memeval.errors import UserError
from memeval.metrics.metric import Metric
from memeval.metrics.registry import metrics
from memeval.results import JudgeIdentity, RunSummary, run_cost_usd
from memeval.results.fields import Number, Share, Weight, as_plain, read_as
from memeval.results.files import SEAL, as_json, sealed, unsealed, write_atomically, writing
from memeval.results.run import Run
from memeval.results.summary import as_yaml
from memeval.text.redaction import redacted, redacted_in
from memeval.text.shown import in_shell, one_line

VERSION = 1
LARGEST = 64 * 2**20
"""Maximum bytes of a baseline: a hundred times those of LoCoMo's."""


class BaselineQuestion(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A question as the run of the baseline asked it."""

    case_id: str = field(name="case")
    category: str
    value: Share | None
    """Mean over the repeats; None if it was not scored."""
    weight: Weight = 1.0


class Baseline(Struct, frozen=True, forbid_unknown_fields=True):
    """Figures that a run is compared with."""

    metric: str
    run_key: str
    name: str
    dataset: str
    protocol: str
    """Displayed, not compared: values that must be equal have separate members."""
    data_sha256: str
    labels: str
    judge: JudgeIdentity | None
    """None if the metric does not depend on the judge."""
    settings: Mapping[str, str]
    """Settings that identify the run, in YAML notation; shown if they differ."""
    tokens: Number | None
    cost_usd: Number | None
    must_pass: tuple[str, ...]
    questions: Mapping[str, BaselineQuestion]

    def __repr__(self) -> str:
        return f"<Baseline {self.run_key}: {self.metric} of {one_line(self.name, 100)}>"

    @property
    def values(self) -> dict[str, float]:
        """The values of the scored questions."""
        values = {}
        for name, question in self.questions.items():
            value = question.value
            if value is not None:
                values[name] = value

        return values


def judge_of(run: Run, metric: Metric) -> JudgeIdentity | None:
    """Judge of a run, if the metric depends on it."""
    return run.summary.judge if metric.judged else None


def settings_of(run: Run) -> dict[str, str]:
    """The settings of a run that can change a result, by dotted path, in YAML."""
    settings = result_settings(run.summary.params, run.summary.identity)
    return {name: redacted(as_yaml(value)) for name, value in settings.items()}


def tokens_and_usd(summary: RunSummary) -> tuple[float | None, float | None]:
    """Tokens and US dollars of a run; None if unknown, as for imported answers."""
    return metrics()["tokens"].of_summary(summary), run_cost_usd(summary)


def baseline_of(run: Run, metric: Metric, scores: RunScores, must_pass: Iterable[str]) -> Baseline:
    """The baseline of a run. Raises `UserError` for a question that must pass and was not asked."""
    named = tuple(sorted(set(must_pass)))
    for name in named:
        if name not in scores.questions:
            raise UserError(
                f"{one_line(run.name)} did not ask '{one_line(name)}', which must pass",
                "if you did not name it, the baseline does: move that file away, then bless again",
            )

    questions = {}
    for name, asked in scores.questions.items():
        value = scores.values.get(name)
        question = BaselineQuestion(asked.case_id, asked.category_name, value, asked.weight)
        questions[name] = question

    summary = run.summary
    tokens, cost_usd = tokens_and_usd(summary)
    return Baseline(
        metric=metric.name,
        run_key=run.key,
        name=redacted(summary.name),
        dataset=summary.dataset,
        # Redacted: the file is committed.
        protocol=redacted(summary.tags.get("protocol", "")),
        data_sha256=summary.data_sha256,
        labels=str(summary.params.get(LABELS, "")),
        judge=judge_of(run, metric),
        settings=settings_of(run),
        tokens=tokens,
        cost_usd=cost_usd,
        must_pass=named,
        questions=questions,
    )


def write_baseline(baseline: Baseline, path: Path) -> None:
    """Writes the file: one question per line, sorted, so that a diff shows what changed.

    Raises `StorageError` if the disk can't be written.
    """
    content = as_plain(baseline)
    written = content.pop("questions")
    head = {"memeval_baseline": VERSION, **content, "judge": redacted_in(content["judge"])}
    # json.dumps would put each member of a question on its own line: a diff would be long.
    lines = [f" {as_json(name)}: {as_json(value)}," for name, value in head.items()]
    written = dict(sorted(written.items()))
    rows = [f"  {as_json(name)}: {as_json(row)}" for name, row in written.items()]
    digest = sealed({**head, "questions": written})[SEAL]
    end = [" },", f" {as_json(SEAL)}: {as_json(digest)}", "}", ""]
    text = "\n".join(["{", *lines, ' "questions": {', ",\n".join(rows), *end])
    with writing(path):
        write_atomically(path, text)


def read_baseline(path: Path) -> Baseline:
    """Reads and checks a baseline. Raises `UserError` with the problem."""
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError(f"it is larger than {LARGEST // 2**20} MB")

        # A merge of two branches may leave a question twice.
        content = json.loads(path.read_bytes(), object_pairs_hook=unique_fields)
        return _baseline_from(content)
    except FileNotFoundError:
        raise UserError(
            f"the baseline {one_line(path)} is missing",
            f"make it from a run:  python -m memeval gate --baseline {in_shell(path)} --bless RUN",
        ) from None
    except OSError as error:
        raise UserError(f"{one_line(path)} can't be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{one_line(path)} is not a baseline: {one_line(error)}",
            "move it away, then recreate it:  python -m memeval gate --baseline FILE --bless RUN",
        ) from error


def _baseline_from(content: Any) -> Baseline:
    content = unsealed(content)
    if content.pop("memeval_baseline", None) != VERSION:
        raise ValueError(f"memeval_baseline is not {VERSION}")

    if isinstance(content.get("questions"), dict):
        for name, row in content["questions"].items():
            # One by one, for an error that names the question.
            question = read_as(row, BaselineQuestion, at=f"$.questions.{name}")
            content["questions"][name] = question

    baseline = read_as(content, Baseline)
    for name in baseline.must_pass:
        if name not in baseline.questions:
            raise ValueError(f"must_pass names '{one_line(name)}', which is not a question")

    return baseline
