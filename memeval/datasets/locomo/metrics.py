"""LoCoMo's official scores of answers and of retrieval.

Source: Maharana et al., ACL 2024, task_eval/evaluation.py.
"""

from collections import Counter
from collections.abc import Sequence

from memeval.datasets.locomo.names import ADVERSARIAL, MULTI_HOP, OPEN_DOMAIN, SINGLE_HOP, TEMPORAL
from memeval.metrics.answer import answer_metrics
from memeval.metrics.tokens import f1, stems, token_f1
from memeval.records import EvalQuestion

# The official scorer knows only these two phrases: "I don't know" counts as an answer.
REFUSALS = ("no information available", "not mentioned")


def locomo_metrics(answer: str, question: EvalQuestion) -> dict[str, float | None]:
    """The answer metrics, of which `token_f1` is the official score of the question's category.

    A question without an answer has only that score: 1 if the answer refuses.
    """
    if question.answerable or question.choices:
        return answer_metrics(
            answer,
            question,
            official_f1=lambda prediction, gold: locomo_f1(
                prediction, gold, int(question.category)
            ),
        )

    return answer_metrics(answer, question) | {"token_f1": float(officially_refuses(answer))}


def locomo_f1(prediction: str, gold: str, category: int) -> float:
    """The official score of an answer in category 1-5, in [0, 1].

    Category 1 by `parts_f1`, 2 and 4 by `token_f1`, 3 by `token_f1` against the gold's part before
    `;`, 5 is 1 if the answer refuses in one of two phrases. Raises ValueError on any other
    category.
    """
    if category == ADVERSARIAL:
        return float(officially_refuses(prediction))
    if category == MULTI_HOP:
        return parts_f1(prediction, gold)
    if category == OPEN_DOMAIN:
        # After the `;`, golds of category 3 explain themselves: `Yes; because she likes it`.
        return token_f1(prediction, gold.partition(";")[0])
    if category in (TEMPORAL, SINGLE_HOP):
        return token_f1(prediction, gold)

    raise ValueError(f"LoCoMo has no category {category!r}")


def parts_f1(prediction: str, gold: str) -> float:
    """Mean over the gold's comma parts of the best `token_f1` among the prediction's comma parts.

    The rule of category 1.
    """
    # Repeated parts are compared once: a reply of nothing but commas may have 200,000 parts.
    predictions = [Counter(stems(part)) for part in dict.fromkeys(prediction.split(","))]
    golds = [Counter(stems(part)) for part in gold.split(",")]

    def best_f1(expected: Counter[str]) -> float:
        return max(f1(predicted, expected) for predicted in predictions)

    return sum(map(best_f1, golds)) / len(golds)


def officially_refuses(text: str) -> bool:
    """LoCoMo's rule for category 5: the lower-cased answer contains one of two phrases."""
    lowered = text.lower()
    return any(phrase in lowered for phrase in REFUSALS)


def official_evidence_recall(
    retrieved: Sequence[Sequence[str]], cited: Sequence[str], *, sessions: bool = False
) -> float:
    """Share of a question's evidence that the reader saw, as LoCoMo's own evaluation counts it.

    `retrieved` holds the turn ids of each chunk, `cited` the evidence as in the data file: no
    string is repaired. A string that is not a turn id is never found, and one that occurs twice
    counts twice. A question that cites nothing counts 1. With `sessions`, a string is found if a
    turn of the same session was retrieved.
    """
    # Four questions of category 3 cite nothing.
    if not cited:
        return 1.0

    seen = set[str]().union(*retrieved)
    if sessions:
        seen = set(map(_session_number, seen))
        cited = list(map(_session_number, cited))

    # A repeated string counts twice, as in the official code, so `cited` is not made a set.
    return sum(text in seen for text in cited) / len(cited)


def _session_number(turn_id: str) -> str:
    """`8` of `D8:6`."""
    return turn_id.partition(":")[0][1:]
