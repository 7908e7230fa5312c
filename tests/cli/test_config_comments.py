"""Errors in what Hydra reads from a user's words and files, explained in the user's terms."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import memeval
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


def test_misspelt_launcher_of_an_installed_extra_names_the_right_one() -> None:
    options = "\n\t".join(("basic", "submitit_local", "submitit_slurm"))
    error = explain(
        ValueError(f"Could not find 'hydra/launcher/submitit'\n\nAvailable options:\n\t{options}")
    )
    assert error.message.startswith("unknown hydra/launcher 'submitit'. Did you mean: submitit_")


def test_file_that_the_folder_of_options_lacks_is_named() -> None:
    """Usually the folder is that of a group, such as my_conf/system."""
    path = "provider=hydra.searchpath in command-line, path=file:///my_conf/system"
    error = explain(
        ValueError(f"Could not find 'system/mine'\nAvailable options:\n\tbm25\nPath:\n\t{path}\n")
    )
    assert error.hints[0] == "there is no file /my_conf/system/system/mine.yaml"


def test_file_with_two_options_of_a_group_and_one_that_is_not_utf8(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "system").mkdir(parents=True)
    (mine / "paper").mkdir()
    file = mine / "system" / "noted.yaml"
    file.write_bytes("# für mich\nname: bm25\n".encode("latin-1"))
    for name, text in {"two": "/system: rag", "one": "override /system: noted"}.items():
        paper = f"# @package _global_\ndefaults:\n  - {text}\n"
        (mine / "paper" / f"{name}.yaml").write_text(paper, encoding="utf-8")

    refused = memeval(tmp_path, "--config-dir", str(mine), "+paper=two")
    assert (refused.status, refused.message) == (2, "memeval: system has two options")
    assert "in a file's defaults list:  override /system: ..." in refused.err
    for words in (["+paper=one"], ["system=noted"], ["-m", "system=noted,rag"]):
        refused = memeval(tmp_path, "--config-dir", str(mine), *words)
        assert refused.status == 2
        assert refused.message.startswith(f"memeval: {file} is not UTF-8:"), refused.err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_sweep_with_a_byte_order_mark_is_refused(tmp_path: Path, encoding: str) -> None:
    """Hydra overlooked its `# @package`: "unknown field 'sweep'"."""
    file = tmp_path / "sweep" / "mine.yaml"
    file.parent.mkdir()
    file.write_text("# @package _global_\nsystem: bm25\n", encoding=encoding)
    refused = memeval(tmp_path, "--config-dir", str(tmp_path), "+sweep=mine")
    message = f"memeval: {file} has a byte-order mark: save it as UTF-8 without one"
    assert (refused.status, refused.message) == (2, message)


def test_file_that_memevals_own_would_hide_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("num_runs: 3\n", encoding="utf-8")
    refused = memeval(tmp_path, "--config-dir", str(tmp_path), "system=no_memory")
    assert refused.status == 2
    assert (
        refused.message
        == f"memeval: {tmp_path}/config.yaml: memeval's own config.yaml would be used instead"
    )


def test_hydra_option_with_a_value_is_kept() -> None:
    words = ["--experimental-rerun", "job.pickle", "system=bm25"]
    assert reorder_arguments(words) == ["system=bm25", *words[:2]]
