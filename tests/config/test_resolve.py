"""From a composition to the typed config: what is accepted, and the message of each refusal."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from memeval.config.checks import check_plain, check_tracking
from memeval.config.identity import field_stages
from memeval.config.leaves import flatten
from memeval.config.names import known_names, unknown_name
from memeval.config.options import options
from memeval.config.paths import conf_dir, outputs_dir
from memeval.config.plugins import read_yaml
from memeval.config.resolve import check_choices, resolve
from memeval.config.schema import RunConfig
from memeval.config.settings import NOT_SETTINGS, read_settings
from memeval.datasets.locate import adapter_class
from memeval.errors import UserError
from memeval.runs.compose.config import compose_config
from memeval.systems.base import INGEST, SystemSettings


def resolved(**values: Any) -> RunConfig:
    return resolve(
        OmegaConf.create({"dataset": {"name": "demo"}, "system": {"name": "bm25"}, **values})
    )


def refusal(**values: Any) -> str:
    with pytest.raises(UserError) as caught:
        resolved(**values)
    return caught.value.message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_runs": 0}, "num_runs must be at least 1, not 0"),
        ({"num_runs": "three"}, "num_runs must be a whole number, not 'three'"),
        ({"num_runs": 2.5}, "num_runs must be a whole number, not '2.5'"),
        ({"num_runs": True}, "num_runs must be a whole number, not 'True'"),
        ({"num_runs": None}, "num_runs must be a whole number, not 'null'"),
        ({"min_coverage": 10**400}, f"min_coverage must be a number, not '1{'0' * 58}…'"),
        ({"min_coverage": "most"}, "min_coverage must be a number, not 'most'"),
        ({"min_coverage": 1.01}, "min_coverage must be at most 1, not 1.01"),
        ({"min_coverage": math.nan}, "min_coverage must be a finite number, not nan"),
        ({"llm": {"timeout_s": math.inf}}, "llm.timeout_s must be a finite number, not inf"),
        (
            {"llm": {"timeout_s": 0}},
            "llm.timeout_s must be above 0, not 0",
        ),
        ({"llm": {"temperature": -1}}, "llm.temperature must be at least 0, not -1"),
        ({"num_runs": -(10**400)}, f"num_runs must be at least 1, not {-(10**400):,}"),
        ({"llm": {"send_seed": "perhaps"}}, "llm.send_seed must be true or false, not 'perhaps'"),
        (
            {"llm": {"name": "opnai"}},
            "unknown llm.name 'opnai'. Did you mean: openai?",
        ),
        (
            {"llm": {"modell": "x"}},
            "unknown field or group 'llm.modell'. Did you mean: llm.model, llm.judge.model, "
            "llm.draft.model?",
        ),
        (
            {"tracking": {"name": "mlfow"}},
            "unknown tracking.name 'mlfow'. Did you mean: mlflow? Available: mlflow, none",
        ),
        ({"judge": {"threshold": 2}}, "judge.threshold must be at most 1, not 2"),
        ({"top_k": 0}, "top_k must be at least 1, not 0"),
        ({"top_k": 10**14}, "top_k must be at most 1,000,000,000, not 100,000,000,000,000"),
        ({"num_runs": 10**6}, "num_runs must be at most 10,000, not 1,000,000"),
        (
            {"compression_turn": 0},
            "compression_turn must be never, middle, rolling or a positive integer, not '0'",
        ),
        (
            {"compression_turn": "sometimes"},
            "compression_turn must be never, middle, rolling or a positive integer, not "
            "'sometimes'",
        ),
        (
            {"granularity": {"size": 8, "overlap": 8}},
            "granularity.overlap (8) must be smaller than granularity.size (8)",
        ),
        ({"seed": "${sed}"}, "seed: Interpolation key 'sed' not found"),
        ({"system": {"top": 1}}, "the config of a system needs a `name`"),
        ({"system": None}, "the config of a system needs a `name`"),
        ({"dataset": {"limit_cases": 1}}, "the config of a dataset needs a `name`"),
        (
            {"extra": 1},
            "unknown field or group 'extra'. Did you mean: llm.extra_body, llm.judge.extra_body?",
        ),
    ],
)
def test_a_refusal_names_field_and_value(values: dict[str, Any], message: str) -> None:
    assert refusal(**values) == message


@pytest.mark.parametrize(
    "address",
    [
        "http://",
        "http://[::1",
        "http://host:0",
        "http://host:99999",
        "http://host..",
        "http://host/a b",
        "http://host/a\\b",
        "http://host/\u200b",
        f"http://{'h.' * 127}h",
    ],
)
def test_url_whose_host_or_port_cannot_be_read_is_refused(address: str) -> None:
    message = "llm.base_url is not a URL: host or port can't be read"
    assert refusal(llm={"name": "openai", "base_url": address}) == message


@pytest.mark.parametrize("address", ["me:word@host/runs", "//me:word@host", "http://me:word@host"])
def test_password_in_a_url_is_refused_with_or_without_a_scheme(address: str) -> None:
    with pytest.raises(UserError, match="contains a user name or a password"):
        check_plain("store.url", address)


@pytest.mark.parametrize("address", ["sqlite:////home/me@work/a?b.db", "file:///a#b", "me@work/a"])
def test_file_of_a_tracking_store_may_have_any_name(address: str) -> None:
    check_tracking("tracking.uri", address)
    with pytest.raises(UserError, match=r"tracking\.uri contains a user name or a password"):
        check_tracking("tracking.uri", "http://me@work/a")


def test_defaults_are_those_of_the_schema() -> None:
    config = resolved()
    assert config == RunConfig(system={"name": "bm25"})
    assert all(
        is_dataclass(getattr(config, group))
        for group in ("llm", "embedder", "judge", "prompt", "tracking")
    )


def test_values_of_the_environment_are_strings_and_are_converted() -> None:
    config = resolved(
        top_k="7",
        num_runs="2",
        min_coverage="0.5",
        plots="false",
        label=2,
        compression_turn=40,
        llm={"temperature": 1, "send_seed": "no", "ingest": {"max_tokens": "9"}},
    )
    assert (config.top_k, config.num_runs, config.min_coverage) == (7, 2, 0.5)
    assert config.plots is False
    assert config.label == "2"
    assert config.compression_turn == 40
    assert isinstance(config.llm.temperature, float)
    assert config.llm.send_seed is False
    assert config.llm.ingest.max_tokens == 9


def test_a_mapping_is_not_a_number() -> None:
    assert refusal(llm={"extra_body": 5}) == "llm.extra_body must be a mapping, not '5'"
    assert refusal(judge="llm") == "judge is a group of settings, but is 'llm'"


def test_base_url_resolves_to_option_env_or_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    remote = {"llm": {"name": "openai", "model": "m"}, "embedder": {"name": "openai", "model": "e"}}
    assert (
        resolved(**remote).llm.base_url
        == resolved(**remote).embedder.base_url
        == "https://api.openai.com/v1"
    )
    assert resolved().llm.base_url is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1/")
    assert (
        resolved(**remote).llm.base_url
        == resolved(**remote).embedder.base_url
        == "http://localhost:8000/v1"
    )
    named = {"llm": {"name": "openai", "model": "m", "base_url": "http://elsewhere/"}}
    assert resolved(**named).llm.base_url == "http://elsewhere"


def test_embedder_without_a_url_uses_that_of_the_answering_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    answers = {"name": "openai", "model": "m", "base_url": "http://elsewhere/", "api_key_env": "K"}
    embedder = {"name": "openai", "model": "e"}
    config = resolved(llm=answers, embedder=embedder)
    assert (config.embedder.base_url, config.embedder.api_key_env) == ("http://elsewhere", "K")

    alone = resolved(embedder=embedder).embedder
    assert (alone.base_url, alone.api_key_env) == ("https://api.openai.com/v1", "OPENAI_API_KEY")


def test_embedder_at_another_url_gets_no_key_unless_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    answers = {"name": "openai", "model": "m", "base_url": "http://elsewhere/"}
    for llm in (answers, answers | {"api_key_env": "K"}, {"name": "extractive"}):
        with pytest.raises(UserError, match=r"differs from llm\.base_url") as error:
            resolved(llm=llm, embedder={"name": "openai", "model": "e", "base_url": "http://third"})

        assert "embedder.api_key_env=MY_KEY" in error.value.hints[0]

    def key(llm: dict[str, Any], **own: Any) -> str | None:
        return resolved(
            llm=llm, embedder={"name": "openai", "model": "e", **own}
        ).embedder.api_key_env

    third, local = {"base_url": "http://third"}, {"base_url": "http://127.0.0.1:9/v1"}
    openai = {"base_url": "https://api.openai.com/v1"}
    assert key(answers, **third, api_key_env="THIRD") == "THIRD"
    assert key(answers, **third, headers={"api-key": "THIRD"}) is None
    assert key(answers, **local) is key({"name": "extractive"}, **local) is None
    assert key(answers | {"api_key_env": "K"}, **openai) == "OPENAI_API_KEY"
    with pytest.raises(UserError, match="so llm's key is not sent"):
        # Here OPENAI_API_KEY is the key for the gateway of the answering model.
        key(answers, **openai)


@pytest.mark.slow
@given(st.integers(-3, 3), st.floats(-0.5, 1.5))
def test_accepted_values_are_within_their_bounds(num_runs: int, coverage: float) -> None:
    try:
        config = resolved(num_runs=num_runs, min_coverage=coverage)
    except UserError:
        assert num_runs < 1 or not 0 <= coverage <= 1
    else:
        assert config.num_runs == num_runs >= 1 and 0 <= config.min_coverage <= 1


LEAVES = st.none() | st.integers() | st.text() | st.lists(st.integers())
NAMES = st.text(st.characters(exclude_characters=".", exclude_categories=("Cs",)), min_size=1)


@given(
    st.recursive(
        st.dictionaries(NAMES, LEAVES, max_size=3),
        lambda inner: st.dictionaries(NAMES, inner | LEAVES, max_size=3),
    )
)
def test_flattening_keeps_every_leaf(tree: dict[str, Any]) -> None:
    def leaf(path: str) -> Any:
        place: Any = tree
        for step in path.split("."):
            place = place[step]
        return place

    def count(value: Any) -> int:
        return sum(map(count, value.values())) if isinstance(value, dict) else 1

    flat = flatten(tree)
    assert len(flat) == count(tree)
    assert all(leaf(path) == value for path, value in flat.items())


def test_config_file_must_agree_with_a_chosen_option() -> None:
    check_choices(RunConfig(top_k=20), ["top_k=wide"])
    check_choices(RunConfig(top_k=20), ["top_k='020'", "judge=keyword"])
    check_choices(RunConfig(top_k=99), ["top_k=from_a_folder_of_the_users"])
    for choice in ("top_k=narrow", "top_k='5'", "+top_k=5"):
        with pytest.raises(
            UserError,
            match=r"top_k=\w+ has no effect: a config file sets top_k: 20",
        ):
            check_choices(RunConfig(top_k=20), [choice])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["system.name=rag"], "system.name=rag does not choose system=rag"),
        (["system={name: rag}"], "system.name=rag does not choose system=rag"),
        (["embedder={name: openai}"], "embedder.name=openai does not choose embedder=openai"),
        (["reranker=lexical", "reranker.name=none"], "does not choose reranker=none"),
        (["judge=keyword", "judge.name=contains"], "does not choose judge=contains"),
        (["embedder.name=opnai"], r"unknown embedder.name 'opnai'\. Did you mean: openai"),
        (["reranker=lexical", "reranker.name=lexicl"], "Did you mean: lexical"),
    ],
)
def test_a_name_does_not_give_an_option_the_class_of_another(
    words: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        compose_config(words)


def test_a_name_without_a_class_chooses_and_a_new_name_is_allowed() -> None:
    assert compose_config(["judge.name=contains"]).judge.class_ is None
    assert compose_config(["system=rag", "system.name=mine"]).system["name"] == "mine"


FILES = sorted(
    path for path in conf_dir().glob("*/*.yaml") if path.parent.name not in ("dataset", "system")
)


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_field_of_a_config_file_is_in_the_schema(file: Path) -> None:
    known = {*field_stages(RunConfig), "embedder.class"}  # read as `embedder.class_path`
    loaded: Any = OmegaConf.to_container(OmegaConf.load(file))
    whole = "@package _global_" in file.read_text(encoding="utf-8")
    loaded.pop("defaults", None)
    assert {name if whole else f"{file.parent.name}.{name}" for name in flatten(loaded)} <= known


@pytest.mark.parametrize(
    "file", sorted(conf_dir().glob("dataset/*.yaml")), ids=lambda path: path.stem
)
def test_every_field_of_a_data_set_option_is_one_of_its_settings(file: Path) -> None:
    loaded: Any = OmegaConf.to_container(OmegaConf.load(file))
    assert loaded["name"] == file.stem
    settings = read_settings(adapter_class(file.stem).settings_type, loaded, "dataset")
    assert all(name in NOT_SETTINGS or hasattr(settings, name) for name in loaded)


@dataclass(frozen=True)
class NeedsAFolder(SystemSettings):
    folder: str = field(kw_only=True, metadata=INGEST)


def test_setting_without_a_default_needs_a_value() -> None:
    given = {"name": "mine", "folder": "notes"}
    assert read_settings(NeedsAFolder, given, "system") == NeedsAFolder(folder="notes")
    with pytest.raises(UserError, match=r"system\.folder has no default and no value"):
        read_settings(NeedsAFolder, {"name": "mine"}, "system")


def test_names_are_read_without_omegaconf() -> None:
    """OmegaConf takes 0.2 s of CPU for the files of conf/, in every sweep over a setting of an
    option.
    """
    known_names.cache_clear()
    read_yaml.cache_clear()
    known_names()
    assert read_yaml.cache_info().misses == 0


def test_field_of_another_option_names_that_option() -> None:
    assert known_names()["granularity.size"] == ["granularity=chunk"]
    assert known_names()["judge"] == []
    assert (
        unknown_name("granularity.size").message
        == "'granularity.size' is a field of granularity=chunk only"
    )
    assert unknown_name("granularity.sice").message.startswith(
        "unknown field or group 'granularity.sice'. Did you mean: granularity.size"
    )
    assert unknown_name("zzz").message == "unknown field or group 'zzz'."
    assert "Did you mean: hydra.launcher.keep_going?" in unknown_name("keep_going").message
    assert "field of hydra/launcher=ray only" in unknown_name("hydra.launcher.workers").message
    within = unknown_name("system.template").message
    assert "Did you mean: system.working_memory.template, " in within
    homes = [f"system={name}" for name in options("system")]
    assert sorted(known_names()["system.name"]) == homes
    assert (
        unknown_name("system.name").message
        == f"'system.name' is a field of system=bm25, system=cogcanvas, system=combined and "
        f"{len(homes) - 3} more only"
    )


@pytest.mark.parametrize("header", ["api key", "bad name_env"])
def test_invalid_header_name_is_refused(header: str) -> None:
    named = {"name": "openai", "headers": {header: "MY_KEY"}}
    message = "headers has a key that is not a valid header name"
    assert refusal(llm=named) == f"llm.{message}"
    assert refusal(llm={"judge": {"headers": {header: "MY_KEY"}}}) == f"llm.judge.{message}"
    assert refusal(embedder=named) == f"embedder.{message}"


def test_variable_named_by_the_output_dir_hint_moves_the_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = unknown_name("output_dir").hints[0]
    variable = hint.partition("export ")[2].removesuffix("=FOLDER")
    monkeypatch.setenv(variable, str(tmp_path))
    assert outputs_dir() == tmp_path / "outputs"
