"""Whether the texts of a data set may be redistributed, according to its registered licence."""

import re

from msgspec import Struct

from memeval.datasets.registry import DATASETS
from memeval.results import RunSummary
from memeval.text.shown import one_line

_LICENCE = re.compile(r"(CC0 1\.0|CC BY(?:-NC)?(?:-SA)? 4\.0|MIT|Apache 2\.0)(?=$|,| by )")
"""A licence with an identifier, at the beginning of an entry."""
UNKNOWN = "not known"


class DataTerms(Struct, frozen=True):
    """The licence of the texts of a run."""

    title: str
    licence: str
    """As stated in the registry; `not known` for data that is not registered."""
    identifier: str | None
    """`cc-by-nc-4.0`; None for a licence without one."""
    citation: str = ""
    allows_texts: bool = False
    """Whether questions, answers and passages may be redistributed for any purpose."""


def terms_of(summary: RunSummary) -> DataTerms:
    """The terms of the data that a run asked about; unknown for a user's own file, and for the data
    set of an installed package, which others need not have.
    """
    title = one_line(summary.dataset)
    unknown = DataTerms(title=title, licence=UNKNOWN, identifier=None)
    # The licence is that of the registered file, read by memeval's own class.
    is_registered = summary.tags.get("data_pinned") == "true"
    info = DATASETS.get(str(summary.params.get("dataset")))
    if info is None or not is_registered or summary.params.get("dataset.class") is not None:
        return unknown

    licence = _LICENCE.match(info.licence)
    identifier = licence[0].lower().replace(" ", "-") if licence else None
    return DataTerms(
        title=one_line(info.title),
        licence=one_line(info.licence),
        identifier=identifier,
        citation=one_line(info.citation, 1_000),
        allows_texts=info.redistribution,
    )
