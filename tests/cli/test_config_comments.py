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


def test_hydra_option_with_a_value_is_kept() -> None:
    words = ["--experimental-rerun", "job.pickle", "system=bm25"]
    assert reorder_arguments(words) == ["system=bm25", *words[:2]]
