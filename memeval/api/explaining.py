"""Published figures: why a run has another one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memeval.api.arguments import checked
from memeval.api.selecting import select_run
from memeval.errors import UserError
from memeval.results.run import Run
from memeval.text.shown import one_line

if TYPE_CHECKING:
    from memeval.comparison.claims.explaining import Explanation


@checked
def explain(run: Run | str | Path, claim: str) -> Explanation:
    """Why a run's figure differs from a published one: the differing parts, and the effect of each
    on the figure, as far as finished runs show it.

    `claim` is a name as `claims list` prints it, or `name/system` for a source with several. Raises
    `UserError` for names that are unknown, and for a claim about another data set.
    """
    from memeval.comparison.claims.explaining import explain_match
    from memeval.comparison.claims.matching import match_claim
    from memeval.comparison.claims.reading import find_figure, load_claims

    published, figure = find_figure(claim, load_claims())
    found, known = select_run(run, "explain")
    if found.summary.dataset != published.dataset:
        raise UserError(
            f"claim {published.name} is about {published.dataset}, and run {found.key} about "
            f"{one_line(found.summary.dataset)}",
            f"claims about it:  python -m memeval claims {found.key}",
        )

    (match,) = [own for own in match_claim(published, found.summary) if own.figure == figure]
    return explain_match(match, found, known)
