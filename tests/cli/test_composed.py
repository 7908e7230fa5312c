"""Cells of a sweep that share a composition equal what Hydra's own loader composes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import ConfigCompositionException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict

from memeval.config.paths import conf_dir
from memeval.config.served import register
from memeval.runs.compose import sweep
from memeval.runs.compose.sweep import SweepComposer

JOBS = (
    ["system=bm25", "top_k='3'", "seed=1"],
    ["system=bm25", "top_k='7'", "seed=2", "dataset.limit_cases=2"],
    ["system=rag", "top_k='7'", "granularity=session"],
    ["system=bm25", "top_k=narrow", "dataset.categories=[1,2]"],
    ["system=bm25", "top_k='7'", "compression_turn='4'", "min_coverage=0.5"],
    ["system=bm25", "top_k='9'", "compression_turn='8'"],
    ["+tags.paper=x", "system=bm25", "top_k='9'"],
    ["+tags.paper=x", "system=bm25", "top_k='7'", "seed=3"],
    ["+tags.paper=y", "system=bm25", "tags.paper=z"],
    ["tags={paper: z}", "system=bm25", "+tags.year=1"],
    ["+sweep=evidence", "system=bm25", "top_k='200'", "context_tokens=500"],
    ["+sweep=evidence", "system=bm25", "top_k='200'", "context_tokens=1000", "sweep_name=mine"],
    ["+sweep=evidence", "system=rag", "top_k='200'", "context_tokens=500"],
    ["system=bm25", "+cell=smoke_endpoint-1", "seed=4"],
    ["system=bm25", "+cell=smoke_endpoint-71", "seed=4"],
    ["+sweep=smoke_endpoint", "+cell=smoke_endpoint-3", "judge=llm", "top_k='9'"],
    ["+sweep=smoke_endpoint", "+cell=smoke_endpoint-404", "dataset.limit_cases=3"],
    ["+sweep=smoke_endpoint", "dataset=demo", "+cell=smoke_endpoint-404", "llm.headers={a: B}"],
    ["+cell=cogcanvas_ablation-1", "+sweep=cogcanvas_ablation", "embedder=tfidf", "seed=2"],
    ["+sweep=smoke_endpoint", "system=bm25"],
    ["seed=5"],
    # Values of every type, including some that need more than an assignment.
    ["system=bm25", "note='a, b'", "plots=true", "fresh=null", "min_coverage=1e-3"],
    ["system=bm25", "note=${seed}", "seed=7"],
    ["system=bm25", "note=${hydra:job.num}", "seed=8"],
    ["system=bm25", "note=???"],
    ["llm=openai", "llm.headers={x-key: KEY}", "llm.temperature=0"],
    ["llm=openai", "budget={usd: 3}", "llm.judge.model=other"],
    ["system=bm25", "budget=null"],
    ["system=bm25", "dataset.categories=[[1],[2]]", "dataset.question_ids=[a,'b c',null,1.5]"],
    ["system=bm25", "dataset.categories=[]", "dataset.limit_questions=0"],
    ["++system.timeout_s=3", "hydra.job.name=own"],
    ["~objective", "system=bm25"],
    ["system=bm25", "seed=1", "seed=2", "note=int(3)"],
)
WRONG = (
    ["+cell=smoke_endpoint-1", "system=bm52"],
    ["+cell=smoke_endpoint-9999"],
    ["+cell=smoke_endpoint-1", "+cell=smoke_endpoint-2"],
    ["system=bm25", "llm.sed=1"],
    ["system=bm25", "sed.x=1"],
    ["system=bm25", "seed.x=1"],
    ["system=bm52"],
    ["system=bm25", "seed=[1"],
)


@pytest.fixture
def loader() -> Iterator[ConfigLoader]:
    register()
    with initialize_config_dir(str(conf_dir()), version_base="1.3"):
        hydra = GlobalHydra.instance().hydra
        assert hydra is not None
        yield hydra.config_loader

    HydraConfig.instance().cfg = None


@pytest.fixture
def master(loader: ConfigLoader) -> DictConfig:
    return loader.load_configuration("config", ["num_runs=2"], RunMode.RUN)


_alone: dict[tuple[str, ...], tuple[Any, Any]] = {}
"""Results of `composed_alone` by words and job number, because several tests compare with them."""


def composed_alone(
    loader: ConfigLoader, master: DictConfig, words: Sequence[str], number: int
) -> tuple[Any, Any]:
    """The fields of a job and its Hydra config, composed without sharing."""
    key = (*words, str(number))
    if key not in _alone:
        _alone[key] = _compose_alone(loader, master, words, number)

    return _alone[key]


def _compose_alone(
    loader: ConfigLoader, master: DictConfig, words: Sequence[str], number: int
) -> tuple[Any, Any]:
    config = loader.load_sweep_config(master, list(words))
    with open_dict(config):
        config.hydra.job.id, config.hydra.job.num = str(number), number

    HydraConfig.instance().set_config(config)
    with open_dict(config):
        del config["hydra"]

    return OmegaConf.to_container(config, resolve=True), hydra_itself()


def hydra_itself() -> Any:
    hydra: Any = OmegaConf.to_container(HydraConfig.get())
    # Used only for the names of folders.
    del hydra["job"]["override_dirname"]
    return hydra


def plain(fields: Any) -> Any:
    return OmegaConf.to_container(fields, resolve=True) if OmegaConf.is_config(fields) else fields


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "many"),
    [
        pytest.param(1, 1000, id="in order"),
        pytest.param(-1, 1000, id="backwards"),
        pytest.param(1, 0, id="assembled"),
    ],
)
def test_each_cell_equals_its_own_composition(
    loader: ConfigLoader,
    master: DictConfig,
    step: int,
    many: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep, "MANY", many)
    composer = SweepComposer(loader, master)
    for number, words in list(enumerate(JOBS))[::step]:
        fields_alone, hydra_alone = composed_alone(loader, master, words, number)
        fields, task = composer.compose(words, number)

        assert hydra_itself() == hydra_alone, words
        assert task == hydra_alone["overrides"]["task"]
        # 1, 1.0 and true compare equal, but must not be confused.
        assert repr(plain(fields)) == repr(fields_alone), words


@pytest.mark.parametrize(
    ("path", "names"),
    [
        # The second of each inherits it, and the third lacks it.
        ("system.threshold", ("mem0", "mem0_verbatim", "bm25")),
        ("llm.temperature", ("openai", "groq", "extractive")),
    ],
)
def test_a_field_is_set_for_all_options_that_have_it(
    path: str, names: Sequence[str], loader: ConfigLoader, master: DictConfig
) -> None:
    group, _, field = path.partition(".")
    jobs = [[f"{group}={name}", f"{path}=0.5"] for name in names]
    composer = SweepComposer(loader, master, jobs)
    composed = [plain(composer.compose(words, 0)[0])[group] for words in jobs]
    assert [option.get(field) for option in composed] == [0.5, 0.5, None]


PRODUCT = (
    ("system=bm25", "system=cogcanvas_nograph"),
    ("dataset=demo", "dataset=demo_beam", "dataset=synthetic"),
    ("llm=extractive", "llm=openai", "llm=mock"),
    ("judge=llm", "judge=exact_match"),
    ("embedder=openai", "embedder=tfidf"),
    ("reader=tools", "granularity=session", "top_k='7'", "compression_turn=middle"),
)


@pytest.fixture
def composed(loader: ConfigLoader, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each composition that the loader makes during a test."""
    words_of_each: list[list[str]] = []
    compose = loader.load_sweep_config

    def counted(config: DictConfig, words: list[str]) -> DictConfig:
        words_of_each.append(words)
        return compose(config, words)

    monkeypatch.setattr(loader, "load_sweep_config", counted)
    return words_of_each


@pytest.mark.slow
def test_most_of_a_large_product_is_assembled_from_options(
    loader: ConfigLoader, master: DictConfig, composed: list[list[str]]
) -> None:
    jobs = [("+sweep=evidence", *words, f"seed={n}") for n, words in enumerate(product(*PRODUCT))]
    composer = SweepComposer(loader, master, jobs)
    made = [(plain(composer.compose(words, 0)[0]), hydra_itself()) for words in jobs]
    options = sum(map(len, PRODUCT))
    assert len(jobs) == 288 and len(composed) == sweep.MANY + 1 + options

    for number in (*range(sweep.MANY, len(jobs), 97), len(jobs) - 1):
        alone = composed_alone(loader, master, jobs[number], 0)
        assert repr(made[number][0]) == repr(alone[0]), jobs[number]
        assert made[number][1] == alone[1], jobs[number]


@pytest.mark.slow
def test_an_option_that_depends_on_others_is_composed_by_hydra(
    loader: ConfigLoader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {
        "system/own.yaml": "defaults: [bm25, {/variant@_here_: 'of_${judge}'}, _self_]\n",
        "system/heir.yaml": "defaults: [own, _self_]\n",
        "variant/of_llm.yaml": "k1: 7\n",
        "variant/of_exact_match.yaml": "k1: 8\n",
        "judge/other.yaml": "# @package _global_\njudge: {name: llm}\nsystem: {k1: 9}\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    monkeypatch.setattr(sweep, "MANY", 0)
    path = [f"hydra.searchpath=[file://{tmp_path}]"]
    master = loader.load_configuration("config", path, RunMode.RUN)
    composer = SweepComposer(loader, master)
    for system in ("own", "heir"):
        for judge, k1 in (("llm", 7), ("exact_match", 8), ("llm", 7)):
            words = [f"system={system}", "dataset=demo", f"judge={judge}"]
            fields, _ = composer.compose(words, 0)
            assert plain(fields)["system"]["k1"] == k1

    for judge, k1 in (("other", 9), ("llm", None), ("other", 9)):
        fields, _ = composer.compose(["system=bm25", "dataset=demo", f"judge={judge}"], 0)
        assert plain(fields)["system"].get("k1") == k1


def test_values_that_need_more_than_an_assignment_share_a_composition(
    loader: ConfigLoader,
    master: DictConfig,
    composed: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep, "MANY", 0)
    composer = SweepComposer(loader, master)
    for seed in range(5):
        words = ["system=rag", "dataset=demo", "budget={usd: 3}", f"seed={seed}"]
        fields, _ = composer.compose(words, 0)
        assert (plain(fields)["budget"]["usd"], plain(fields)["seed"]) == (3, seed)

    # The base config, each of the two options alone, and then both.
    assert len(composed) == 4


@pytest.mark.slow
def test_cells_of_a_named_sweep_share_a_composition_of_their_options(
    loader: ConfigLoader, master: DictConfig, composed: list[list[str]]
) -> None:
    composer = SweepComposer(loader, master)
    for system in ("bm25", "rag"):
        for tokens in (500, 1000, 2000):
            words = ["+sweep=evidence", f"system={system}", f"context_tokens={tokens}", "+tags.a=b"]
            composer.compose(words, 0)

    assert composed == [
        ["+sweep=evidence", "system=bm25", "+tags.a=b"],
        ["+sweep=evidence", "system=rag", "+tags.a=b"],
    ]


def test_cells_of_a_union_of_grids_are_assembled_from_the_options_of_their_grids(
    loader: ConfigLoader,
    master: DictConfig,
    composed: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sweep, "MANY", 0)
    # The first 22 cells have all systems on one data set, the next 22 on another.
    numbers = [*range(1, 6), *range(23, 28)]
    jobs = [["+sweep=smoke_endpoint", f"+cell=smoke_endpoint-{number}"] for number in numbers]
    composer = SweepComposer(loader, master, jobs)
    made = [(plain(composer.compose(words, 0)[0]), hydra_itself()) for words in jobs]
    assert len(composed) == 1 + len({"llm", "embedder", "compression_turn"}) + 2 + 5

    for number in (0, 7):
        alone = composed_alone(loader, master, jobs[number], 0)
        assert (repr(made[number][0]), made[number][1]) == (repr(alone[0]), alone[1]), number


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_error_is_the_one_that_hydra_raises(
    loader: ConfigLoader, master: DictConfig, words: list[str]
) -> None:
    errors = (ConfigCompositionException, OverrideParseException)
    composer = SweepComposer(loader, master)
    with pytest.raises(errors) as own:
        composer.compose(words, 0)
    with pytest.raises(errors) as alone:
        loader.load_sweep_config(master, list(words))

    assert (type(own.value), str(own.value)) == (type(alone.value), str(alone.value))


@pytest.mark.slow
def test_interpolated_fields_follow_the_values_of_a_cell(
    loader: ConfigLoader, tmp_path: Path
) -> None:
    (tmp_path / "system").mkdir()
    text = "defaults: [bm25, _self_]\nname: own\nk1: ${retain_recent}\n"
    (tmp_path / "system" / "own.yaml").write_text(text)
    path = [f"hydra.searchpath=[file://{tmp_path}]"]
    master = loader.load_configuration("config", path, RunMode.RUN)
    composer = SweepComposer(loader, master)

    for recent in (2, 3):
        fields, _ = composer.compose(["system=own", f"retain_recent={recent}"], 0)
        assert plain(fields)["system"]["k1"] == recent


@pytest.mark.slow
def test_cells_that_differ_only_in_values_are_composed_once(
    loader: ConfigLoader, master: DictConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    composed: list[Sequence[str]] = []
    compose = loader.load_sweep_config

    def count(master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        composed.append(sweep_overrides)
        return compose(master_config, sweep_overrides)

    monkeypatch.setattr(loader, "load_sweep_config", count)
    composer = SweepComposer(loader, master)
    for number in range(20):
        words = ["system=bm25", f"top_k='{number + 1}'", f"seed={number}"]
        fields, _ = composer.compose(words, number)
        assert (fields["top_k"], fields["seed"]) == (number + 1, number)

    assert len(composed) == 1


@pytest.mark.slow
def test_field_of_an_option_applies_only_to_cells_with_that_option(
    loader: ConfigLoader, master: DictConfig
) -> None:
    judge = "llm.judge.model=judge"
    fields = ["llm.model=m", judge, "judge.threshold=0.3", "system.chunk_size=99"]
    jobs = [
        ["system=rag", "llm=openai", "judge=token_f1", *fields],
        ["system=bm25", "llm=extractive", "judge=keyword", *fields],
        ["system=bm25", "llm=mock", "judge=token_f1", *fields],
    ]
    composer = SweepComposer(loader, master, jobs)
    whole, offline, mock = (composer.compose(words, number) for number, words in enumerate(jobs))
    assert whole[1] == jobs[0]
    # The offline reader can have a judge model, but has no model that answers.
    assert offline[1] == ["system=bm25", "llm=extractive", "judge=keyword", judge]
    assert mock[1] == ["system=bm25", "llm=mock", "judge=token_f1", "judge.threshold=0.3"]
    assert plain(whole[0])["system"]["chunk_size"] == 99


def test_a_field_that_no_cell_has_is_refused(loader: ConfigLoader, master: DictConfig) -> None:
    jobs = [["system=bm25", "system.chunk_size=99"], ["system=dense", "system.chunk_size=99"]]
    with pytest.raises(ConfigCompositionException):
        SweepComposer(loader, master, jobs).compose(jobs[0], 0)
