"""Command-line words are translated to Hydra overrides; contradictions are refused."""

from __future__ import annotations

import pytest

from memeval.config.grids import cells
from memeval.config.overrides import check_given_once, full_override
from memeval.config.schema import RunConfig
from memeval.errors import UserError
from memeval.runs.compose.config import compose_config
from memeval.runs.launch.application import words_to_plan


def test_tags_need_no_plus() -> None:
    assert dict(compose_config(["tags.paper=table1"]).tags) == {"paper": "table1"}
    assert full_override("tags={a: b}") == "tags={a: b}"


@pytest.mark.parametrize(
    ("group", "name"),
    [("system", "embedding_only"), ("granularity", "exchange"), ("dataset", "memae")],
)
def test_names_of_version_0_1_are_unknown(group: str, name: str) -> None:
    with pytest.raises(UserError, match=f"unknown {group} '{name}'"):
        compose_config([f"{group}={name}"])


@pytest.mark.parametrize(("group", "name"), [("system", "bm52"), ("dataset", "dmo")])
def test_unknown_name_suggests_the_nearest(group: str, name: str) -> None:
    with pytest.raises(UserError, match="Did you mean: "):
        compose_config([f"{group}={name}"])


def test_default_config_prints_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(compose_config([]), RunConfig)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "form"),
    [
        (["-m", "system=bm25", "system=rag"], "-m system=bm25,rag"),
        (["system=bm25", "+system=rag"], "-m system=bm25,rag"),
        (["top_k=3", "++top_k=5"], "-m top_k=3,5"),
        (["-m", "system=bm25,rag", "system=dense"], "-m system=bm25,rag,dense"),
        (["sample=5", "dataset.sample=6"], "-m dataset.sample=5,6"),
        (["seed=range(3)", "seed=5"], "-m 'seed=range(3),5'"),
    ],
)
def test_setting_given_twice_is_refused_with_the_sweep_form(words: list[str], form: str) -> None:
    with pytest.raises(UserError, match="is given twice") as refused:
        check_given_once(words)

    assert f"to compare both:  python -m memeval {form}" in refused.value.hints


def test_repeated_identical_words_are_accepted() -> None:
    words = ["system=bm25", "tracking=none", "tracking=none", "tags.a=1", "tags.b=2"]
    check_given_once(words)


def test_plan_takes_the_last_of_two_overrides_if_a_single_run_does() -> None:
    words = ["top_k=5", "--config-dir", "tests", "sample=1", "+top_k=6", "dataset.sample=2"]
    assert words_to_plan(words) == ["--config-dir", "tests", "+top_k=6", "dataset.sample=2"]
    assert words_to_plan(["-m", *words]) == ["-m", *words]
    folders = ["--config-dir", "tests", "--config-dir", "tests"]
    assert words_to_plan(folders) == folders


@pytest.mark.parametrize("word", ["system=bm25,rag", "top_k=range(3,5)"])
def test_plan_refuses_several_values_without_m_as_a_run_does(word: str) -> None:
    with pytest.raises(UserError, match="has several values, but a single run takes only one"):
        words_to_plan([word])
    assert words_to_plan(["--multirun", word]) == ["--multirun", word]
    assert words_to_plan([word, "hydra/launcher=ray"]) == [word, "hydra/launcher=ray"]


def test_plan_refuses_a_word_that_hydra_cannot_parse_as_a_run_does() -> None:
    with pytest.raises(UserError, match=r"'prompt\.file=x\(1\)\.txt' can't be read as") as refused:
        words_to_plan(["system=bm25", "prompt.file=x(1).txt"])
    assert refused.value.hints == ("quote the value twice:  \"prompt.file='x(1).txt'\"",)


def test_grid_with_a_setting_given_twice_is_refused() -> None:
    with pytest.raises(UserError, match="system is given twice"):
        cells(("system=bm25 system=rag",))
