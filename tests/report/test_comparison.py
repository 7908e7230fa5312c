"""Comparison tables: several cells side by side."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from msgspec import structs
from rich.console import Console
from sample_runs import CONTEXT, summary

from memeval.report.comparison import (
    by_dataset,
    cells,
    comparison_csv,
    comparison_markdown,
    comparison_table,
    fold,
    judged_by,
    shorten,
)
from memeval.report.differences import differing_settings, labels, unique_labels
from memeval.results import RunSummary
from memeval.results.judge import JudgeIdentity


def printed(cells: list[RunSummary], width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(comparison_table(cells, console.width))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [120, 1000])
def test_sweep_over_two_settings_fits_120_columns_by_moving_equal_figures(
    width: int,
) -> None:
    cells = [
        *(summary(system) for system in CONTEXT),
        summary("bm25", 5),
        summary("rag", 20, repeats=1, valid=False),
    ]
    lines = printed(cells, width)
    # Intervals take space: at 120 columns, figures that are equal in all rows move below the table.
    assert (len(lines) > 2 + len(cells)) is (width == 120)
    if width == 120:
        assert lines.pop().strip() == (
            "Equal in all rows: questions 1,540, tokens 1.3M, cost $ unknown"
        )

    assert len(lines) == 2 + len(cells)
    assert max(map(len, lines)) <= max(width, 120) <= 1000
    assert lines[3].split() == [
        *(
            "bm25",
            "10",
            *(() if width == 120 else ("1,540",)),
            "30.5",
            "[28.2,",
            "34.1]",
            "37.0",
            "29.4",
            "26.2",
            "31.7",
            "32.9",
            "24.8",
        ),
        *("45.0", "53.0"),
        *(("640", "100") if width == 120 else ("640", "1.3M", "unknown", "100")),
    ]
    first = 11 if width == 120 else 12
    assert lines[2].split()[first : first + 2] == ["–", "–"], "no_memory exposes no retrieval"
    assert lines[-1].split()[-1] == "INVALID"
    assert not any("…" in line for line in lines)


def test_deterministic_zero_deviation_differs_from_a_measured_one() -> None:
    cell = summary(repeats=3)
    metrics = {**cell.metrics, "accuracy_std": 0.0}
    same = tuple(replace(one, metrics={"accuracy": 0.31}) for one in cell.repeats)
    zero = replace(cell, metrics=metrics, repeats=same)
    assert "| 0 det |" in comparison_markdown([zero])
    assert "| 0.0 |" in comparison_markdown([replace(zero, tags={})])

    # A deviation that is 0 only by rounding does not mean that the repeats agree.
    other = replace(same[0], metrics={"accuracy": 0.3100001})
    assert "| 0.0 |" in comparison_markdown([replace(zero, repeats=(*same, other))])


def test_markdown_table_has_all_rows_and_columns() -> None:
    lines = comparison_markdown([summary("bm25"), summary("rag")]).splitlines()
    assert len(lines) == 4 and len({line.count("|") for line in lines}) == 1
    assert lines[0].startswith("| system | questions | accuracy [95%] | multi hop |")


def test_retrieval_only_table_has_no_accuracy_and_counts_all_questions() -> None:
    answered = summary("bm25")
    metrics = {**answered.metrics, "accuracy": None, "n_records": 1986.0, "recall_at_10": 0.5}
    tags = {**answered.tags, "stages": "retrieve"}
    retrieved = replace(answered, metrics=metrics, tags=tags)
    header, _, row = comparison_markdown([retrieved]).splitlines()
    assert "accuracy" not in header and "| 1,986 |" in row and "retrieval only" in row

    header, *_ = comparison_markdown([retrieved, summary("rag")]).splitlines()
    assert "accuracy" in header, "another run has one"


def test_csv_has_unrounded_figures_and_empty_fields_for_unknown() -> None:
    cells = [summary("no_memory"), summary("rag", 20)]
    rows = list(csv.DictReader(io.StringIO(comparison_csv(cells))))
    assert [row["system"] for row in rows] == ["no_memory", "rag"]
    assert float(rows[1]["accuracy"]) == cells[1].metrics["accuracy"]
    assert (
        rows[0]["cost_usd/total"] == ""
        and rows[0]["recall_at_5"] == ""
        and rows[1]["recall_at_5"] == "0.45"
    )


def test_empty_comparison_can_be_written_and_printed() -> None:
    assert comparison_markdown([]) == "| run |\n| --- |\n"
    assert comparison_csv([]).startswith("run_key,name,dataset")
    assert "run" in printed([], 80)[0]


def test_only_settings_that_differ_are_columns() -> None:
    assert differing_settings([summary("bm25"), summary("bm25")]) == {}
    assert differing_settings([summary("bm25", 5), summary("rag", 10)]) == {
        "system": "system",
        "top_k": "top_k",
    }


def test_table_heading_names_the_judges_own_model() -> None:
    judge = JudgeIdentity("llm", model="judges")
    cells = [summary(params={"llm.model": model}, judge=judge) for model in ("a", "b")]
    assert judged_by(cells) == "judge: llm (judges)"

    other = summary(judge=structs.replace(judge, request={"temperature": 0.7}))
    assert judged_by([*cells, other]).startswith("judges: llm (judges), llm (judges, temperature=0")


def test_setting_of_one_system_is_a_column_only_if_it_varies_there() -> None:
    rag = [
        summary("rag", params={"system": "rag", "system.chunk_size": size, "top_k": 10})
        for size in (128, 256)
    ]
    bm25 = summary("bm25", params={"system": "bm25", "top_k": 10})
    assert differing_settings([rag[0], bm25]) == {"system": "system"}
    assert differing_settings([*rag, bm25]) == {
        "system": "system",
        "system.chunk_size": "chunk_size",
    }
    assert labels([*rag, bm25]) == ["rag chunk_size=128", "rag chunk_size=256", "bm25"]


def test_a_setting_that_only_some_runs_of_a_system_have_tells_them_apart() -> None:
    bm25 = summary("bm25", params={"system": "bm25", "top_k": 10})
    shared = summary("bm25", params={"system": "bm25", "system.tenants": "shared", "top_k": 10})
    assert differing_settings([bm25, shared]) == {"system.tenants": "tenants"}
    rag = summary("rag", params={"system": "rag", "top_k": 10})
    assert labels([bm25, shared, rag]) == ["bm25", "bm25 tenants=shared", "rag"]
    assert differing_settings([shared, rag]) == {"system": "system"}


def test_a_run_with_a_label_differs_from_one_without() -> None:
    plain = summary(params={"system": "bm25", "top_k": 10})
    v2 = summary(params={"system": "bm25", "top_k": 10, "label": "v2"})
    assert differing_settings([plain, v2]) == {"label": "label"}
    rag = summary(params={"system": "rag", "top_k": 10})
    assert labels([plain, v2, rag]) == ["bm25", "bm25 v2", "rag"]


def test_a_setting_that_only_some_runs_of_a_data_set_have_tells_them_apart() -> None:
    usual = {"dataset": "demo", "system": "bm25"}
    planted = {**usual, "dataset.canaries": 5, "dataset.canary_seed": 0}
    cells = [summary(params=usual), summary(params=planted)]
    assert differing_settings(cells) == {"dataset.canaries": "canaries"}
    other = summary(params={**usual, "dataset": "locomo"})
    assert labels([*cells, other]) == ["demo", "demo canaries=5", "locomo"]


def test_label_of_many_settings_still_names_one_that_some_runs_lack() -> None:
    names = ("dataset.path", "judge", "llm", "prompt", "reader", "reranker", "top_k")
    usual: dict[str, object] = {"dataset": "demo", **dict.fromkeys(names, "a")}
    other = summary(params={"dataset": "demo", **dict.fromkeys(names, "b")})
    planted = summary(params={**usual, "dataset.canaries": 5})
    plain, with_canaries, _ = labels([summary(params=usual), planted, other])
    assert with_canaries == f"{plain} canaries=5"


def test_settings_of_the_same_last_name_keep_their_groups() -> None:
    cells = [
        summary(
            params={
                "llm.name": "openai",
                "llm.model": model,
                "embedder.name": "openai",
                "embedder.model": embedder,
            }
        )
        for model, embedder in (("a", "x"), ("a", "y"), ("b", "x"))
    ]
    assert list(differing_settings(cells).values()) == ["llm.model", "embedder.model"]


def test_models_name_the_runs_if_other_settings_follow_from_them() -> None:
    cells = []
    for name, port in (("m1", 1), ("m2", 1), ("m3", 2)):
        served = {"llm.base_url": f"http://localhost:{port}/v1", "llm.model": name}
        cells.append(summary(params={**summary().params, **served, "llm.extra_body.a": port}))

    assert labels(cells) == ["model=m1", "model=m2", "model=m3"]


def test_setting_without_a_value_is_labelled_null() -> None:
    cells = [
        summary(params={"dataset": "demo", "system": "bm25", "context_tokens": tokens})
        for tokens in (None, 100)
    ]
    assert labels(cells) == ["context_tokens=null", "context_tokens=100"]


def test_compression_is_labelled_with_its_name() -> None:
    usual = summary().params
    cells = [summary(params={**usual, "compression_turn": turn}) for turn in ("never", 20)]
    assert labels(cells) == ["compression_turn=never", "compression_turn=20"]


def test_label_of_a_single_run_is_its_name() -> None:
    assert labels([summary("bm25")]) == ["bm25 turn k=10 never keyword short extractive"]
    assert labels([summary("bm25", 5), summary("bm25", 10)]) == ["k=5", "k=10"]


def test_invalid_runs_are_last_in_markdown_and_only_figures_to_the_right() -> None:
    cells = [replace(summary("bm25"), valid=False), summary("rag")]
    *_, rule, first, last = comparison_markdown(cells).splitlines()
    assert first.startswith("| rag ") and last.startswith("| bm25 ") and "INVALID" in last
    assert rule.startswith("| --- | ---: |") and rule.endswith("| ---: | --- |")


def test_seeds_tell_runs_of_one_configuration_apart() -> None:
    runs = [summary(params={**summary().params, "seed": seed}) for seed in (0, 1)]
    name = runs[0].name
    assert labels(runs) == [f"{name} seed=0", f"{name} seed=1"]


def test_equal_labels_end_with_the_key_of_their_run() -> None:
    runs = [summary("rag"), summary("bm25", run_key="1" * 12), summary("bm25", run_key="2" * 12)]
    assert unique_labels(["rag", "bm25", "bm25"], runs) == ["rag", "bm25 111111", "bm25 222222"]


def test_imported_files_with_the_same_name_are_labelled_by_folder() -> None:
    def cells(*files: str) -> list[RunSummary]:
        return [summary(params={"system": "imported", "system.file": file}) for file in files]

    assert labels(cells("/x/mem0.jsonl", "/x/zep.jsonl")) == ["mem0", "zep"]
    assert labels(cells("/a/out.jsonl", "/x/a/out.jsonl", "out.jsonl")) == [
        "/a/out",
        "x/a/out",
        "out",
    ]
    assert labels(
        cells("/x/a/out.jsonl", "/y/a/out.jsonl", "/y/b/out.jsonl", "/y/b/zep.jsonl")
    ) == [
        "x/a/out",
        "y/a/out",
        "b/out",
        "zep",
    ]


def test_labels_over_many_settings_name_only_unusual_values() -> None:
    usual: dict[str, object] = {f"dataset.s{number}": number for number in range(7)}
    usual["stages"] = "all"
    cells = [summary(params={"system": "rag", "top_k": k, **usual}) for k in (3, 5)]
    own = {"system": "bm25", "top_k": 5, **usual}
    cells += [summary(params={**own, name: None}) for name in usual]

    assert labels(cells) == [
        "rag k=3",
        "rag k=5",
        *(f"bm25 k=5 s{n}=null" for n in range(7)),
        "bm25 k=5 stages=null",
    ]


def test_biased_cut_shared_by_all_cells_is_named_once_in_the_title() -> None:
    cut = {"biased_cut": "first 20 of each conversation"}
    cells = [
        summary("bm25", tags=cut),
        replace(summary("rag", tags=cut), valid=False),
    ]
    table = comparison_table(cells, 80)
    assert "biased cut: first 20 of each conversation" in str(table.title)
    assert [str(cell) for cell in table.columns[-1].cells] == ["", "INVALID"]
    assert [row.style for row in table.rows] == [None, "red"]
    alone = comparison_table(cells[:1], 80)
    assert "biased cut" in str(alone.title)
    assert str(alone.columns[-1].header) != "flags"


def test_of_hundreds_of_hidden_columns_the_first_are_named() -> None:
    cell = summary()
    rows = [replace(cell.categories[0], category=f"c{n}", name=f"c{n}") for n in range(300)]
    cell = replace(cell, categories=tuple(rows))
    assert "c299" in "".join(printed([cell], 5_000))
    alone = str(comparison_table([cell], 120).caption)
    assert "more (all columns in comparison.csv)" in alone and "c299" not in alone
    equal = str(comparison_table([cell, cell], 120).caption).splitlines()[0]
    assert equal.startswith("Equal in all rows: ") and equal.endswith("more")


def test_each_data_set_has_its_own_table() -> None:
    cells = [summary("bm25"), replace(summary("rag"), dataset="memory_agent_bench"), summary("rag")]
    text = comparison_markdown(cells)
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "## locomo",
        "## memory_agent_bench",
    ]
    assert by_dataset([replace(cells[0], valid=False), cells[2]])["locomo"][0] == cells[2]
    first, second = text.split("## memory_agent_bench")
    assert [
        len([line for line in part.splitlines() if line.startswith("|")])
        for part in (first, second)
    ] == [4, 3]
    assert "#" not in comparison_markdown([summary("bm25"), summary("rag")])


def test_headers_drop_the_common_prefix_and_break_long_words() -> None:
    assert shorten(["facts_mh_6k", "facts_sh_6k"]) == {
        "facts_mh_6k": "mh 6k",
        "facts_sh_6k": "sh 6k",
    }
    assert shorten(["single-hop", "single"]) == {"single-hop": "single hop", "single": "single"}
    assert shorten(["multi_hop"]) == {"multi_hop": "multi hop"}
    alike = ["multi_hop", "multi-hop"]
    assert shorten(alike) == {name: f"category {name}" for name in alike}
    assert fold("contradiction") == "contr-\nadict-\nion"
    assert fold("temporal hop") == "temporal\nhop"


@pytest.mark.parametrize("name", ["questions", "context", "F1", "coverage", "flags"])
def test_category_named_like_a_column_has_its_own(name: str) -> None:
    """People name the categories of their own data."""
    cell = summary()
    named = replace(cell, categories=(replace(cell.categories[0], name=name, accuracy=0.125),))
    settings, header, (row,) = cells([named])
    figures = dict(zip(header[settings:], row[settings:], strict=True))
    assert figures.pop(f"category {name}") == "12.5"
    _, other_header, (other_row,) = cells([replace(named, categories=())])
    other = dict(zip(other_header[settings:], other_row[settings:], strict=True))
    assert figures == other


def test_abilities_have_columns_in_the_data_sets_order() -> None:
    cell = summary()
    row = cell.categories[0]
    abilities = {"ABS": None, "TR": 0.25, "IE": 0.5}
    facets = {
        "ability": tuple(
            replace(row, category=name, name=f"ability/{name}", accuracy=accuracy)
            for name, accuracy in abilities.items()
        )
    }
    lines = comparison_markdown([replace(cell, facets=facets), summary("rag")]).splitlines()
    header = [name.strip() for name in lines[0].strip("|").split("|")]
    first = [figure.strip() for figure in lines[2].strip("|").split("|")]
    shown = dict(zip(header, first, strict=True))
    assert [name for name in header if name in abilities] == ["IE", "TR"], "no figure, no column"
    assert (shown["IE"], shown["TR"]) == ("50.0", "25.0")
