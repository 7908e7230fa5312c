"""The accuracy of a run, with the effect of the judge's errors."""

from memeval.metrics.formats import NONE, count, percent, span, with_interval
from memeval.metrics.metric import PAPER, REPEATS, Metric
from memeval.results import Record, RunSummary
from memeval.results.calibration import CORRECTED


def corrected_text(summary: RunSummary) -> str:
    """The accuracy corrected for the judge's errors by labels: `57.4 [31.8, 83.1]`.

    If it is a range over kinds of wrong answer: `54.5 to 64.6`. Empty without labels, see
    `memeval.results.calibration`.
    """
    get = summary.metrics.get
    value, low, high = get(CORRECTED), get(f"{CORRECTED}_low"), get(f"{CORRECTED}_high")

    if value is not None:
        return with_interval(value, low, high)

    text = span(low, high)
    return "" if text == NONE else text


def deviation(summary: RunSummary, value: float | None) -> str:
    """A standard deviation over repeats.

    The zero of a deterministic reader is marked as such: it does not show stability.
    """
    if value == 0 and summary.has_deterministic_reader:
        return "0 (deterministic reader)"

    return percent(value)


def right_phrase(summary: RunSummary, of: str = "") -> str:
    """The subject of a run's accuracy; `of` follows the questions: `122 questions are answered
    right`.

    If not all answers were scored, `the scored answers (112 of 122) are right`; under a judge that
    grades, `the possible score of 122 questions is reached`.
    """
    rows = [row for row in summary.categories if row.headline]
    scored, asked = sum(row.scored for row in rows), sum(row.asked for row in rows)
    number = count(summary.metrics.get("n_questions"))
    questions, verb = f"{number} questions{of}", "are answered right"
    if scored < asked:
        questions, verb = f"the scored answers ({scored:,} of {asked:,}){of}", "are right"
    elif number == "1":
        questions, verb = f"1 question{of}", "is answered right"

    if summary.judge is not None and summary.judge.grades:
        return f"the possible score of {questions} is reached"

    return f"{questions} {verb}"


def _score(record: Record) -> float | None:
    if record.score is None or record.verdict is None:
        return None

    return record.verdict.score


METRICS = (
    Metric(
        "accuracy",
        aliases=("acc",),
        of_record=lambda record: record.score,
        judged=True,
        is_main=True,
        columns={PAPER: "accuracy"},
        lines={REPEATS: "accuracy %"},
    ),
    Metric("score", judged=True, averaged=False, of_record=_score),
)
