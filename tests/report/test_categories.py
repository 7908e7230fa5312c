"""A category column contains the same questions in all runs, under any name."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from sample_runs import summary

from memeval.datasets.locomo.names import category_names
from memeval.report.categories import category_titles, columns_of, rows_of, titles_of
from memeval.report.comparison import comparison_csv, comparison_markdown
from memeval.report.page.build import category_data
from memeval.results import RunSummary


def named(naming: str) -> RunSummary:
    """A run that names its categories by the given naming, with a different accuracy per category
    id.
    """
    names = category_names(naming)
    rows = [
        replace(row, name=names[int(row.category)], accuracy=int(row.category) / 10)
        for row in summary().categories
    ]
    metrics = {f"accuracy/{row.name}": row.accuracy for row in rows}
    params = {"system": "bm25", "dataset.category_names": naming}
    return summary(params=params, categories=tuple(rows), metrics=metrics)


@pytest.fixture
def runs() -> list[RunSummary]:
    return [named("official"), named("mem0_paper")]


def test_runs_with_one_naming_keep_its_names() -> None:
    titles = titles_of([named("official"), named("official")])
    assert columns_of(titles)[:2] == ["multi_hop", "temporal"]


def test_two_namings_share_a_column_by_category_id(runs: list[RunSummary]) -> None:
    titles = titles_of(runs)
    assert columns_of(titles) == [
        "1: multi_hop / single_hop",
        "temporal",
        "3: open_domain / multi_hop",
        "4: single_hop / open_domain",
        "adversarial",
    ]
    for run in runs:
        shares = [row.accuracy for row in rows_of(run, titles).values()]
        assert sorted(share or 0 for share in shares) == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_tables_page_and_csv_share_columns_across_namings(
    runs: list[RunSummary],
) -> None:
    header, _, *rows = comparison_markdown(runs).splitlines()
    column = header.split(" | ").index("4: single hop / open domain")
    assert [row.split(" | ")[column] for row in rows] == ["40.0", "40.0"]

    (first, *_) = category_data(runs)
    assert first.name == "1: multi_hop / single_hop"
    assert [share and share.value for share in first.shares] == [0.1, 0.1]

    read = list(csv.DictReader(io.StringIO(comparison_csv(runs))))
    assert [row["accuracy/4: single_hop / open_domain"] for row in read] == ["0.4", "0.4"]
    assert "accuracy/single_hop" not in read[0]


def test_data_sets_keep_their_own_category_names() -> None:
    titles = category_titles([("a", "1", "recall"), ("b", "1", "temporal"), ("a", "1", "recall")])
    assert titles == {("a", "1"): "recall", ("b", "1"): "temporal"}


def test_columns_are_grouped_by_data_set_in_natural_order() -> None:
    first = summary().categories[0]

    def sizes(dataset: str, *categories: str) -> RunSummary:
        rows = (replace(first, category=category, name=category) for category in categories)
        return summary(dataset=dataset, categories=tuple(rows))

    cells = [sizes("b", "262k", "32k"), sizes("a", "100k", "9"), sizes("b", "64k")]
    assert columns_of(titles_of(cells)) == ["32k", "64k", "262k", "9", "100k"]
