"""Errors in what Hydra reads from a user's words and files, explained in the user's terms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir

from memeval.runs.compose.errors import explain
from memeval.runs.compose.words import reorder_arguments


@pytest.mark.parametrize("comment", ["@my own notes on this file", "@todo"])
def test_a_comment_with_an_at_sign_is_named_with_its_file(tmp_path: Path, comment: str) -> None:
    (tmp_path / "system").mkdir()
    file = tmp_path / "system" / "noted.yaml"
    file.write_text(f"# {comment}\nname: bm25\n", encoding="utf-8")
    with (
        pytest.raises(Exception, match="@") as raised,
        initialize_config_dir(str(tmp_path), version_base="1.3"),
    ):
        compose("system/noted")

    error = explain(raised.value)
    assert error.message.startswith(f"{file}: the comment '# {comment}' begins with @")


@pytest.mark.parametrize(
    ("choice", "extra"),
    [
        ("launcher/joblib", "joblib"),
        ("launcher/submitit_slurm", "submitit"),
        ("sweeper/optuna", "optuna"),
    ],
)
def test_launcher_of_an_extra_that_is_not_installed_names_the_extra(
    choice: str, extra: str
) -> None:
    error = explain(ValueError(f"Could not find 'hydra/{choice}'\n\nAvailable options:\n\tbasic"))
    assert error.hints == (f"install it:  pip install 'memeval-bench[{extra}]'",)


def test_hydra_option_with_a_value_is_kept() -> None:
    words = ["--experimental-rerun", "job.pickle", "system=bm25"]
    assert reorder_arguments(words) == ["system=bm25", *words[:2]]
