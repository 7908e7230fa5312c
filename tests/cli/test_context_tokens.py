"""`context_tokens=…`: every system shows the reader at most the same amount of context."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import completed, memeval, records, runs

from memeval.llm.tokens import count_tokens
from memeval.results.texts import TextStore


def texts(home: Path) -> Callable[[str], str]:
    """Looks up the texts of a home's only run by reference."""
    (path,) = home.glob("outputs/answers/*.texts.jsonl")
    with TextStore(path) as store:
        return {ref: store.get(ref) or "" for ref in store.references()}.__getitem__


ANSWERING = ("system=http", "system.base_url=http://127.0.0.1:9", "system.answers=true")
FEW = ("dataset.limit_cases=2", "tracking=none", "plots=false")


@pytest.mark.slow
def test_reader_sees_whole_chunks_by_rank_within_the_budget(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    completed(whole, "system=bm25", "top_k=50", *FEW)
    completed(cut, "system=bm25", "top_k=50", "context_tokens=60", *FEW)
    text_in_whole, text_in_cut = texts(whole), texts(cut)
    for all_shown, shown in zip(records(whole), records(cut), strict=True):
        assert 0 < shown["context_tokens"] <= 60 < all_shown["context_tokens"]
        assert shown["evidence_ranks"] == all_shown["evidence_ranks"], "the ranking stays"
        kept = [text_in_cut(chunk["text"]) for chunk in shown["retrieved"]]
        found = [text_in_whole(chunk["text"]) for chunk in all_shown["retrieved"]]
        assert kept == found[: len(kept)]
        assert sum(map(count_tokens, kept)) == shown["context_tokens"]
        assert shown["context_tokens"] + count_tokens(found[len(kept)]) > 60

    (before,), (after,) = runs(whole), runs(cut)
    assert after["metrics"]["recall_shown"] < before["metrics"]["recall_shown"]
    assert "context=60" in after["name"]
    assert "context_tokens" not in before["name"]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["last_k", "full_history", "summarization"])
def test_budget_keeps_the_latest_text_of_chronological_systems(system: str, tmp_path: Path) -> None:
    completed(tmp_path, f"system={system}", "context_tokens=120", "dataset.limit_cases=1", *FEW[1:])
    (run,) = runs(tmp_path)
    assert 0 < run["metrics"]["context_tokens"] <= 120
    home = tmp_path / "all"
    completed(home, f"system={system}", "dataset.limit_cases=1", *FEW[1:])
    text_in_cut, text_in_whole = texts(tmp_path), texts(home)
    for cut, whole in zip(records(tmp_path), records(home), strict=True):
        shown, in_all = text_in_cut(cut["context"]), text_in_whole(whole["context"])
        assert len(shown) < len(in_all)
        assert shown.splitlines()[-1] == in_all.splitlines()[-1]


@pytest.mark.slow
def test_sweep_draws_accuracy_against_shown_tokens(tmp_path: Path) -> None:
    words = ("system=bm25,rag", "top_k=100", "context_tokens=150,400", "tracking=none", *FEW[:1])
    done = completed(tmp_path, "-m", *words)
    assert "4 of 4 runs finished" in done.err + done.out
    assert {run["params"]["context_tokens"] for run in runs(tmp_path)} == {150, 400}
    (page,) = tmp_path.glob("outputs/sweeps/*/comparison.html")
    html = page.read_text(encoding="utf-8")
    assert "maximum tokens shown to the reader" in html, "the curve"
    assert "on average over" in html, "the area of the frontier"
    assert "per 1,000 tok" in html


def test_budget_too_small_for_any_text_is_noted(tmp_path: Path) -> None:
    done = memeval(tmp_path, "system=bm25", "granularity=session", "context_tokens=5", *FEW)
    assert done.status == 1 and "no text fits into context_tokens=5" in done.err + done.out
    assert {record["context_tokens"] for record in records(tmp_path)} == {0}
    assert all("none was shown" in str(record["notes"]) for record in records(tmp_path))


def test_system_budget_too_small_for_any_text_is_not_an_empty_search(
    tmp_path: Path,
) -> None:
    done = memeval(tmp_path, "system=cogcanvas", "system.context_budget=3", *FEW)
    output = done.err + done.out
    assert done.status == 1 and "found nothing" not in output
    count = len(records(tmp_path))
    assert f"its search found something for {count} of {count} answers" in output
    assert f"larger than system.context_budget=3, so none was shown ({count} of {count}" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("system=bm25", "context_tokens=0"), "context_tokens must be at least 1, not 0"),
        ((*ANSWERING, "context_tokens=9"), "context_tokens needs a system that answers with"),
    ],
)
def test_invalid_budgets_are_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = memeval(tmp_path, *words, *FEW)
    assert (done.status, done.message.startswith(f"memeval: {message}")) == (2, True), done.err
