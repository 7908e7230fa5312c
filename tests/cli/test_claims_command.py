"""`python -m memeval claims`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import completed, memeval, runs
from doubles.endpoint import ScriptedEndpoint
from made_runs import in_conversations, made_run

from memeval.cli.claims import cost_lines
from memeval.comparison.claims.reading import find_figure, load_claims
from memeval.comparison.claims.reproducing import reproduce
from memeval.comparison.tables import WIDTH


def test_claims_without_a_run_lists_all_claims(tmp_path: Path) -> None:
    done = completed(tmp_path, "claims")
    assert done.out == completed(tmp_path, "claims", "list").out
    one = completed(tmp_path, "claims", "list", "mem0_paper").out
    assert "  mem0_paper " in one and "mem0_platform_2026" not in one
    assert re.search(r"^  mem0_platform_2026 +accuracy 92.5 +91, 35$", done.out, re.MULTILINE)
    assert max(map(len, done.out.split("\n"))) <= WIDTH
    assert json.loads(completed(tmp_path, "claims", "--json").out)[0]["name"]


def assert_fits_but_for_urls(text: str) -> None:
    for line in text.split("\n"):
        assert len(line) <= WIDTH or len(line.split()) == 1


def test_show_prints_source_figures_and_disputes_of_claims(tmp_path: Path) -> None:
    done = completed(
        tmp_path, "claims", "show", "cogcanvas_v2", "zep_2025_first", "lightmem_locomo"
    )
    assert "arXiv 2601.00821" in done.out and "accuracy 32.4" in done.out
    text = " ".join(done.out.split())
    assert "questions: 699 (categories 1, 2, 3) judge" in text
    assert "questions: not disclosed judge" in text
    assert "disputed: Recomputed by a founder of mem0" in text
    assert "retrieval: not disclosed; k: not disclosed error: not disclosed; repeats: not" in text
    # A URL is not broken, so that it can be copied.
    assert "really-sota-in-agent-memory\n" in done.out
    assert_fits_but_for_urls(done.out)


def test_reproduce_prints_the_command_and_what_is_not_matched(
    tmp_path: Path,
) -> None:
    done = completed(tmp_path, "claims", "reproduce", "truememory_beam")
    assert done.out.startswith("python -m memeval dataset=beam system=YOURS num_runs=3 llm=")
    assert "not matched:" in done.out and "cost: unknown: " in done.out
    missing = re.search(r"^cost: unknown: .* (\S+) is missing", done.out, re.MULTILINE)
    assert missing is not None and missing[1].startswith("/"), "a path is not broken"
    as_json = completed(tmp_path, "claims", "reproduce", "truememory_beam", "--json")
    assert json.loads(as_json.out)["command"] in done.out
    done = memeval(tmp_path, "claims", "reproduce", "precisionmembench/mem0")
    assert done.status == 2 and "memeval has no data set precisionmembench" in done.message
    done = memeval(tmp_path, "claims", "reproduce")
    assert done.status == 2 and "needs one claim" in done.message


@pytest.mark.slow
@pytest.mark.real_data
def test_explain_measures_the_effect_of_the_recorded_judge(tmp_path: Path, data_dir: Path) -> None:
    """GPT-4o-mini on the full context, judged by its recorded judge and by keyword."""
    answers = str(data_dir.parent / "outputs/locomo/full_context_gpt_4o_mini.jsonl")
    data = {"MEMEVAL_DATA_DIR": str(data_dir)}
    for judge in ("recorded", "keyword"):
        words = ("dataset=locomo", f"judge={judge}", "tracking=none", "plots=false")
        completed(tmp_path, "evaluate", answers, *words, **data)

    (recorded,) = [run["run_key"] for run in runs(tmp_path) if run["judge"]["name"] == "recorded"]
    done = completed(tmp_path, "explain", recorded, "zep_2025_first")
    text = " ".join(done.out.split())
    assert "zep_2025_first: Zep, accuracy 84.61" in text
    assert "this run: 74.4, a gap of −10.3 points" in text
    assert "−20.3 points [−23.6, −17.0], to 54.0: the same answers by keyword (run " in text
    assert "−8.2 points, to 66.2: mean of the categories' means" in text
    assert "reading model not disclosed" in text and "not measured here: memeval can't" in text
    assert_fits_but_for_urls(done.out)

    content = json.loads(completed(tmp_path, "explain", recorded, "zep_2025_first", "--json").out)
    assert content["own"] == pytest.approx(74.35, abs=0.01) and content["not_measured"]["file"]


@pytest.mark.real_data
@pytest.mark.slow
def test_reproduce_prints_the_cost_of_a_run_on_all_of_locomo(
    tmp_path: Path, data_dir: Path
) -> None:
    key = {"OPENAI_API_KEY": "sk-test-0123456789abcdef", "MEMEVAL_DATA_DIR": str(data_dir)}
    done = completed(tmp_path, "claims", "reproduce", "cogcanvas_v2/RAG", **key)
    assert "system=rag 'dataset.categories=[1,2,3]' top_k=20" in done.out
    assert re.search(r"1,398 calls .*, \$0\.\d+ \(at most", done.out)


def test_cost_of_a_reproduction_is_that_of_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    made = reproduce(*find_figure("cogcanvas_v2/RAG", load_claims()))
    assert "system=rag 'dataset.categories=[1,2,3]' top_k=20" in made.command

    # On the demonstration set, which is in every checkout.
    others = [word for word in made.cost_overrides if not word.startswith("dataset")]
    lines = cost_lines(["dataset=demo", "dataset.limit_questions=3", *others])
    assert lines[0].startswith("cost, by python -m memeval plan dataset=demo ")
    assert re.search(r"60 calls .*, \$0\.\d+ \(at most", lines[-1])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing", "zep_2025_first"), "unknown run 'nothing'"),
        (("nothing", "zep"), "unknown claim 'zep'"),
        (("nothing", "cogcanvas_v2"), "claim cogcanvas_v2 has 4 figures"),
        (("nothing",), "the following arguments are required: CLAIM"),
    ],
)
def test_explain_refuses_bad_arguments(
    words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    made_run(tmp_path / "outputs" / "runs", "rag", in_conversations([2] * 6), dataset="demo")
    done = memeval(tmp_path, "explain", *words)
    assert done.status == 2 and message in done.message

    done = memeval(tmp_path, "explain", "system=rag", "zep_2025_first")
    assert done.status == 2 and "is about locomo, but run" in done.message


def test_unknown_arguments_of_claims_are_refused(tmp_path: Path) -> None:
    done = memeval(tmp_path, "claims", "--dataset", "locomoo")
    assert done.status == 2 and "Did you mean: locomo?" in done.message
    done = memeval(tmp_path, "claims", "nothing")
    assert done.status == 2 and "unknown run" in done.message
    done = memeval(tmp_path, "claims", "show", "zep_2025_frist")
    assert done.status == 2 and "Did you mean: zep_2025_first" in done.message


@pytest.mark.slow
def test_a_run_on_models_discloses_judge_and_reader(tmp_path: Path) -> None:
    template = tmp_path / "own.txt"
    template.write_text("Be short.\n---\n{context}\n\n{question}\n", encoding="utf-8")
    with ScriptedEndpoint() as endpoint:
        for system, prompt in (("bm25", "prompt=auto"), ("rag", f"prompt.file={template}")):
            completed(
                tmp_path,
                *(f"system={system}", "dataset=demo", "llm=openai", "llm.model=small"),
                *("judge=mem0", "dataset.limit_questions=1", "tracking=none", prompt),
                f"llm.base_url={endpoint.base_url}",
                OPENAI_API_KEY="sk-test-0123456789abcdef",
            )

    done = completed(tmp_path, "claims", "system=bm25")
    text = " ".join(done.out.split())
    assert "judge: mem0, small, prompt sha256" in text
    assert "reader: small, temperature 0.0, prompt auto sha256" in text
    assert "claims: memeval has no claims about demo" in text and "sk-test" not in text

    done = completed(tmp_path, "claims", "system=rag")
    assert "prompt own.txt sha256" in " ".join(done.out.split())


@pytest.mark.real_data
@pytest.mark.slow
def test_bm25_reproduces_the_reference_recall(tmp_path: Path, data_dir: Path) -> None:
    words = ("dataset=locomo", "dataset.categories=null", "dataset.images=none", "tracking=none")
    completed(tmp_path, "system=bm25", *words, MEMEVAL_DATA_DIR=str(data_dir))
    (content,) = json.loads(completed(tmp_path, "claims", "system=bm25", "--json").out)
    rows = [row for row in content["claims"] if row["claim"] == "bm25_turns"]
    assert {row["verdict"] for row in rows} == {"comparable"}
    for row in rows:
        assert row["own"] == pytest.approx(row["figure"]["value"], abs=1e-3)
