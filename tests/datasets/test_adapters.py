"""Custom data sets, by class path or entry point, and the errors if neither leads to one."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from forking import Done, run_command_line
from installed import install
from omegaconf import OmegaConf

from memeval.config.resolve import resolve
from memeval.datasets.locate import build
from memeval.datasets.locomo.adapter import Locomo
from memeval.errors import UserError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "tests" / "datasets_example"
NOWHERE = Path("/nowhere")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))


def test_data_set_is_built_from_a_class_path(example: None) -> None:
    dataset = build(
        "mine",
        NOWHERE,
        **{"class": "my_tickets:Tickets", "path": str(EXAMPLE / "tickets.json"), "agents": False},
    )
    assert dataset.info.name == "tickets"
    assert [len(case.sessions[0].turns) for case in dataset.cases()] == [1, 1]


def test_entry_point_adds_a_data_set_but_cannot_take_a_builtin_name(
    example: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = dict.fromkeys(("tickets", "locomo"), "my_tickets:Tickets")
    install(tmp_path, "my-tickets", {"memeval.datasets": points})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert build("tickets", NOWHERE).path == NOWHERE / "tickets/tickets.json"
    assert isinstance(build("demo", NOWHERE), Locomo)
    with pytest.raises(UserError, match="dataset=locomo is defined by two packages"):
        build("locomo", NOWHERE)
    with pytest.raises(UserError, match=r"unknown data set 'tickts'\. Did you mean: tickets"):
        build("tickts", NOWHERE)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("my_tickets", "dataset.class must be package.module:Class, but is 'my_tickets'"),
        ("no_such:Tickets", "data set 'mine': no module named 'no_such'"),
        ("my_tickets:Nothing", "data set 'mine': module 'my_tickets' has no class 'Nothing'"),
        (
            "my_tickets:TicketSettings",
            "my_tickets:TicketSettings is not a subclass of memeval.datasets.contract.Dataset",
        ),
        ("infoless:Infoless", "data set 'mine': infoless:Infoless has no `info`"),
        ("memeval.datasets.locomo.adapter:Locomo", "unknown data set 'mine'."),
    ],
)
def test_invalid_class_path_is_refused(
    example: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, message: str
) -> None:
    code = (
        "from memeval.datasets.contract import Dataset\nclass Infoless(Dataset):\n    "
        "category_names = open = read = None\n"
    )
    (tmp_path / "infoless.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(os.fspath(tmp_path))
    with pytest.raises(UserError, match=re.escape(message)):
        build("mine", NOWHERE, **{"class": path})


def test_documented_example_is_the_tested_one() -> None:
    page = (ROOT / "docs" / "adding_a_dataset.md").read_text(encoding="utf-8")
    for fence, path in (
        ("python", "my_tickets.py"),
        ("yaml", "my_conf/dataset/tickets.yaml"),
        ("json", "tickets.json"),
        ("python", "test_my_tickets.py"),
    ):
        assert f"```{fence}\n{(EXAMPLE / path).read_text(encoding='utf-8')}```" in page


def ran(home: Path, folder: Path) -> Done:
    """Runs the documented command in a folder with the example."""
    words = ["--config-dir", "my_conf", "dataset=tickets", "tracking=none"]
    env = {**os.environ, "MEMEVAL_HOME": str(home)}
    return run_command_line(words, cwd=folder, env=env)


@pytest.mark.slow
def test_example_runs_with_the_documented_command(tmp_path: Path) -> None:
    done = ran(tmp_path, EXAMPLE)
    assert done.returncode == 0, done.stderr
    assert "answer 4/4" in done.stdout + done.stderr


@pytest.mark.slow
def test_edited_adapter_runs_again(tmp_path: Path) -> None:
    folder, home = shutil.copytree(EXAMPLE, tmp_path / "example"), tmp_path / "home"
    assert "already done: reused" not in ran(home, folder).stderr
    assert "already done: reused 4 results" in ran(home, folder).stderr
    adapter = folder / "my_tickets.py"
    adapter.write_text(
        adapter.read_text(encoding="utf-8").replace(
            'message.text("text")', 'message.text("text").upper()'
        ),
        encoding="utf-8",
    )
    edited = ran(home, folder)
    assert edited.returncode == 0, edited.stderr
    assert "reused" not in edited.stderr
    assert len(list(home.glob("outputs/runs/*"))) == 2


def test_class_of_a_builtin_is_not_a_setting() -> None:
    composed = OmegaConf.load(ROOT / "conf" / "dataset" / "demo.yaml")
    judge = OmegaConf.load(ROOT / "conf" / "judge" / "keyword.yaml")
    config = resolve(
        OmegaConf.create({"dataset": composed, "system": {"name": "bm25"}, "judge": judge})
    )
    assert "class" not in config.dataset
    assert config.judge.class_ is None
