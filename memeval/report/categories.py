"""The categories of several runs, side by side.

A column contains the same questions for all runs. It is chosen by the category's id, since names
differ (`dataset.category_names`): `single_hop` in one run may be `multi_hop` in another.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from memeval.results import CategoryResult, RunSummary
from memeval.text.shown import natural_order

Titles = Mapping[tuple[str, str], str]
"""Title of a category, by data set and id."""


def category_titles(named: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], str]:
    """Titles from data set, id and name of each category: its name, or its id with all its names.

    `1: multi_hop / single_hop` is the category 1, whose name differs between runs.
    """
    names: dict[tuple[str, str], dict[str, None]] = {}
    for dataset, category, name in named:
        names.setdefault((dataset, category), {})[name] = None

    titles = {}
    for key, titles_of_key in names.items():
        titles[key] = " / ".join(titles_of_key)
        if len(titles_of_key) > 1:
            titles[key] = f"{key[1]}: {titles[key]}"

    return titles


def titles_of(summaries: Sequence[RunSummary]) -> Titles:
    """The titles of all categories of some runs, those of the headline first, in the natural
    order of their ids; of several data sets, one after the other.
    """
    places: dict[str, int] = {}
    rows = []
    for summary in summaries:
        for row in summary.categories:
            dataset_index = places.setdefault(summary.dataset, len(places))
            order = (not row.headline, dataset_index, natural_order(row.category))
            rows.append((order, (summary.dataset, row.category, row.name)))

    rows.sort(key=itemgetter(0))
    return category_titles(named for _, named in rows)


def columns_of(titles: Titles) -> list[str]:
    return list(dict.fromkeys(titles.values()))


def rows_of(summary: RunSummary, titles: Titles) -> dict[str, CategoryResult]:
    return {titles[summary.dataset, row.category]: row for row in summary.categories}
