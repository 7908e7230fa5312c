"""A table fits its width: setting values fold, dropped columns are named, and no figure is cut."""

from __future__ import annotations

import pytest

from memeval.report.comparison import fold
from memeval.report.fitting import DROPPED_LAST, GAP, KEPT, fit

FIGURES = ["questions", "accuracy [95%]", "re-run std", "single hop", "temporal", "F1",
           "turn R@5", "turn R@10", "context", "tokens", "cost $", "billed $", "coverage",
           "flags"]  # fmt: skip
VALUES = ["115", "35.5 [20.7, 50.3]", "–", "37.8", "70.0", "28.5", "64.6", "71.8", "314", "54.7k",
          "0.0123", "0.0004", "100", "own prompt, unpinned"]  # fmt: skip


@pytest.mark.parametrize("width", [80, 100, 120, 400])
@pytest.mark.parametrize("varied", [0, 1, 4, 9])
def test_any_number_of_settings_fits(width: int, varied: int) -> None:
    names = ["top_k", "system", *(f"system.a_long_setting_{n}" for n in range(varied))]
    row = ["10", "cogcanvas_without_temporal_graph", *("a value of many letters",) * varied]
    header = [*names, *FIGURES]
    fitted = fit(header, [[*row, *VALUES]], settings=len(names), width=width, fold=fold)
    assert sum(fitted.widths) + GAP * (len(fitted.widths) - 1) <= width
    shown = [header[column] for column in fitted.columns]
    assert set(shown) | set(fitted.dropped) == set(header)
    assert set(shown) & set(fitted.dropped) == set()
    assert set(KEPT) - {"run"} <= set(shown)

    # Figures keep their full width; only words fold.
    for column, size in zip(fitted.columns, fitted.widths, strict=True):
        if column >= len(names) and header[column] != "flags":
            assert size >= len(VALUES[column - len(names)])


@pytest.mark.parametrize(
    ("header", "lines"),
    [
        ("top_k", "top_k"),
        ("num_runs", "num_|runs"),
        ("open domain", "open|domain"),
        ("adversarial", "adver-|sarial"),
        ("contradiction", "contr-|adict-|ion"),
    ],
)
def test_long_headers_are_on_short_lines(header: str, lines: str) -> None:
    assert fold(header).split("\n") == lines.split("|")


def test_least_important_columns_are_dropped_first() -> None:
    header = ["system", *FIGURES]
    fitted = fit(header, [["rag", *VALUES]], settings=1, width=80, fold=fold)
    assert fitted.dropped[0] not in ("cost $", "coverage", "re-run std")
    assert {"context", "tokens"} <= set(fitted.dropped)


def test_categories_are_dropped_before_the_most_important_figures_and_settings_last() -> None:
    header, figures = ["system", "top_k", *FIGURES], {*DROPPED_LAST} - {"accuracy corrected"}
    counts = set()
    for width in range(30, 140):
        fitted = fit(header, [["rag", "10", *VALUES]], settings=2, width=width, fold=fold)
        dropped = set(fitted.dropped)
        counts.add(len(dropped))
        if not {"single hop", "temporal"} <= dropped:
            assert not figures & dropped
        if "top_k" in dropped:
            assert figures <= dropped

    assert counts == set(range(13))


def test_wide_table_drops_nothing() -> None:
    header = ["system", *FIGURES]
    fitted = fit(header, [["rag", *VALUES]], settings=1, width=400, fold=fold)
    assert fitted.dropped == () and fitted.columns == tuple(range(len(header)))


def test_columns_equal_in_all_rows_are_removed_first_and_reported() -> None:
    header = ["system", *FIGURES]
    other = ["115", "36.5 [21.7, 51.3]", "–", "38.8", "71.0", "29.5", "65.6", "72.8", "315",
             "55.7k", "0.0123", "0.0004", "100", ""]  # fmt: skip
    fitted = fit(header, [["rag", *VALUES], ["bm25", *other]], settings=1, width=100, fold=fold)
    assert fitted.equal.items() >= {"questions": "115", "cost $": "0.0123"}.items()
    assert fitted.dropped == () and "accuracy [95%]" not in fitted.equal
