"""The groups that accept any positive integer, as Hydra composes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra.core.object_type import ObjectType
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from memeval.config.integers import (
    INTEGER_GROUPS,
    option_value,
    quote_integers,
    unquote_integer,
)
from memeval.config.options import options
from memeval.config.served import ServedConfigs
from memeval.errors import UserError
from memeval.runs.compose.config import compose_config


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(
    ("override", "field", "value"),
    [
        ("top_k=7", "top_k", 7),
        ("top_k=007", "top_k", 7),
        ("top_k='7'", "top_k", 7),
        ("top_k=1_000", "top_k", 1000),
        ("top_k=wide", "top_k", 20),
        ("seed=3", "top_k", 10),
        ("compression_turn=40", "compression_turn", 40),
        ("compression_turn=middle", "compression_turn", "middle"),
        ("seed=3", "compression_turn", "never"),
    ],
)
def test_option_sets_the_value_of_its_field(override: str, field: str, value: Any) -> None:
    assert getattr(compose_config([override]), field) == value


@pytest.mark.parametrize(
    ("typed", "given_to_hydra"),
    [
        ("top_k=7", "top_k='7'"),
        ("top_k=3,wide,12", "top_k='3',wide,'12'"),
        ("top_k=range(1,10,4)", "top_k='1','5','9'"),
        ("top_k=choice(3,wide)", "top_k='3',wide"),
        ("compression_turn=sort(40,8)", "compression_turn='8','40'"),
        ("+top_k=7", "+top_k='7'"),
        ("top_k=-7.5", "top_k='-7.5'"),
        ("top_k=007", "top_k=007"),
        ("top_k=wide", "top_k=wide"),
        ("top_k=glob(*)", "top_k=glob(*)"),
        ("top_k=interval(1,5)", "top_k=interval(1,5)"),
        ("~top_k", "~top_k"),
        ("num_runs=3", "num_runs=3"),
        ("llm.max_tokens=7", "llm.max_tokens=7"),
        ("top_k==7", "top_k==7"),
    ],
)
def test_only_integers_of_integer_groups_are_quoted(typed: str, given_to_hydra: str) -> None:
    assert quote_integers([typed, typed]) == [given_to_hydra] * 2
    assert quote_integers([given_to_hydra]) == [given_to_hydra], "a sweeper's words pass twice"


@pytest.mark.parametrize(
    ("override", "shown"),
    [
        ("top_k='7'", "top_k=7"),
        ("+compression_turn='40'", "+compression_turn=40"),
        ("prompt.file='a, b.txt'", "prompt.file='a, b.txt'"),
        ("top_k='a b'", "top_k='a b'"),
        ("top_k=wide", "top_k=wide"),
    ],
)
def test_only_quotes_around_integers_of_these_groups_are_removed(override: str, shown: str) -> None:
    assert unquote_integer(override) == shown


served = ServedConfigs("memeval", "memeval://served")


@given(st.sampled_from(INTEGER_GROUPS), st.integers(1, 10**12), st.integers(0, 5))
def test_every_positive_integer_is_served(group: str, number: int, zeros: int) -> None:
    option = "0" * zeros + str(number)
    assert served.is_config(f"{group}/{option}")
    assert served.load_config(f"{group}/{option}.yaml").config == {group: number}
    assert option_value(group, option) == number


@given(
    st.sampled_from(INTEGER_GROUPS),
    st.text() | st.integers(max_value=0).map(str) | st.floats().map(str),
)
def test_only_positive_integers_are_served(group: str, option: str) -> None:
    positive = option.isascii() and option.isdecimal() and option.strip("0") != ""
    assert (
        served.is_config(f"{group}/{option}") == positive or option.removesuffix(".yaml") != option
    )


def test_integers_are_served_only_to_integer_groups_and_not_listed() -> None:
    assert not served.is_config("judge/7")
    for group in INTEGER_GROUPS:
        assert served.list(group, ObjectType.CONFIG) == [] == served.list(group, None)
        assert not served.is_group(group)
        assert all(isinstance(option_value(group, option), int | str) for option in options(group))
    assert option_value("top_k", "a users own") is None


def test_a_named_sweep_is_served_with_its_header() -> None:
    assert {"baselines", "top_k_curve"} <= set(served.list("sweep", None))
    loaded = served.load_config("sweep/top_k_curve")
    assert loaded.header["package"] == "_global_" and loaded.config.sweep_name == "top_k_curve"
    assert not served.is_config("sweep/../pyproject")


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parents[2].glob("sweeps/*.yaml")), ids=lambda path: path.stem
)
def test_shipped_sweep_has_the_name_of_its_file(file: Path) -> None:
    assert OmegaConf.load(file).sweep_name == file.stem


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["top_k=[wide]"], "takes one option"),
        (["system=[rag,bm25]"], "takes one option"),
    ],
)
def test_list_of_options_is_refused(overrides: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compose_config(overrides)


def test_the_last_of_several_choices_wins() -> None:
    assert compose_config(["top_k=3", "top_k=wide", "top_k=5"]).top_k == 5
