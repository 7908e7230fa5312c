"""`init` writes packages that can be installed, pass their conformance suites, and run by name."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from command_line import ROOT, SMALL, completed, memeval, runs
from installed import install

from memeval.cli.init import KINDS
from memeval.cli.main import run_command

CHOSEN = tuple(f"{kind}=my_{kind}" for kind in ("system", "dataset", "judge"))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of each kind."""
    folder = tmp_path_factory.mktemp("packages")
    for kind in KINDS:
        assert run_command(["init", kind, f"my-{kind}", "--out", str(folder / f"my-{kind}")]) == 0

    return folder


@pytest.fixture(scope="module")
def site(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages as pip would install them: their code, and metadata from pyproject.toml."""
    site = tmp_path_factory.mktemp("site")
    for kind in KINDS:
        package = packages / f"my-{kind}"
        project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        install(site, project["name"], project["entry-points"], version=project["version"])
        shutil.copytree(package / f"my_{kind}", site / f"my_{kind}")

    return site


def test_packages_run_by_name(site: Path, tmp_path: Path) -> None:
    words = (*CHOSEN, "system.shortest_word=4", "tracking=none", "plots=false")
    completed(tmp_path, *words, PYTHONPATH=str(site))
    (run,) = runs(tmp_path)
    assert {f"{kind}={run['params'][kind]}" for kind in ("system", "dataset", "judge")} == {*CHOSEN}
    assert run["params"]["system.shortest_word"] == 4
    assert run["metrics"]["my_metric"] is not None
    assert run["valid"] and run["metrics"]["accuracy"] is not None


def test_data_set_of_a_package_is_read_by_verify_and_listed(site: Path, tmp_path: Path) -> None:
    verified = completed(tmp_path, "data", "verify", "my_dataset", PYTHONPATH=str(site)).out
    assert verified.startswith(f"{site / 'my_dataset' / 'cases.json'}: sha256 ")
    assert "read: 2 cases, 2 sessions, 6 turns, 5 questions" in verified

    listed = completed(tmp_path, "data", "list", PYTHONPATH=str(site)).out
    assert "here:     read by its package: python -m memeval dataset=my_dataset" in listed

    (tmp_path / "broken.json").write_text("[{}]")
    words = ("data", "verify", "my_dataset", f"dataset.path={tmp_path / 'broken.json'}")
    refused = memeval(tmp_path, *words, PYTHONPATH=str(site))
    assert refused.status == 2 and "record 0: field 'id' is missing" in refused.err


@pytest.mark.slow
def test_packages_run_by_name_through_the_api(site: Path, tmp_path: Path) -> None:
    code = (
        "import memeval\n"
        "run = memeval.run('tracking=none', 'plots=false', progress=False, system='my_system',\n"
        "    dataset='my_dataset', judge='my_judge')\n"
        "print(run.name, run.metrics['my_metric'] > 0, len(run.records()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": f"{site}:{ROOT}", "MEMEVAL_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("my_system turn k=10 my_judge") and done.stdout.endswith(
        " True 5\n"
    )


@pytest.mark.slow
def test_packages_pass_their_conformance_suites(packages: Path, site: Path) -> None:
    tests = [str(packages / f"my-{kind}" / "tests") for kind in KINDS]
    done = subprocess.run(
        # Tests on hundreds of damaged files are left to the slow test below.
        [sys.executable, "-m", "pytest", "-q", "-k", "not damaged", *tests],
        env={**os.environ, "PYTHONPATH": f"{site}:{ROOT}"},
        cwd=packages,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.slow
def test_packages_install_with_pip_into_a_fresh_environment(packages: Path, tmp_path: Path) -> None:
    """The commands that `init` prints, in an environment with memeval and none of our other
    packages.
    """
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    (found,) = folder.glob("lib/python*/site-packages")
    # Use memeval's dependencies from this environment, to avoid a download of a thousand megabytes.
    (found / "memeval.pth").write_text(f"{ROOT}\n{Path(pytest.__file__).parents[1]}\n")
    environment = {**os.environ, "MEMEVAL_HOME": str(tmp_path / "home")}
    environment.pop("PYTHONPATH", None)

    for kind, command in KINDS.items():
        package = packages / f"my-{kind}"
        for words in (
            ["-m", "pip", "install", "--quiet", "-e", f"{package}[test]"],
            ["-m", "pytest", "-q"],
            [*command.format(name=f"my_{kind}").split()[1:], *SMALL, "plots=false"],
        ):
            done = subprocess.run(
                [python, *words],
                cwd=package,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sytem", "my-memory"], "unknown kind of package 'sytem'. Did you mean: system"),
        (["", "my-memory"], "the argument after init is empty"),
        (["system", "My Memory"], "'My Memory' is not a package name"),
        (["system", "../elsewhere"], "'../elsewhere' is not a package name"),
        (["system", "1-memory"], "'1-memory' is not a package name: start with a to z"),
        (["system", "json"], "a Python module 'json' already exists"),
        (["judge", "keyword"], "a Python module 'keyword' already exists"),
        (["bm25"], "a system 'bm25' already exists"),
        (["system", "settings"], "the class Settings would hide another"),
        (["dataset", "path"], "the class Path would hide another"),
        (["metric", "token-f1"], "a metric 'token_f1' already exists"),
        (["system", "a", "b"], "init: unrecognized arguments: b"),
        (["judge"], "init takes a kind and a name"),
        (["board"], "init takes a kind and a name"),
        (["judge", "mine", "--kind", "judge"], "init takes a kind and a name"),
    ],
)
def test_invalid_arguments_are_refused(words: list[str], message: str, tmp_path: Path) -> None:
    done = memeval(tmp_path, "init", *words)
    assert done.status == 2 and done.message.startswith(f"memeval: {message}")
    assert not (tmp_path / words[-1]).exists()


def test_example_after_an_invalid_or_missing_name_is_of_the_same_kind(tmp_path: Path) -> None:
    assert "init board my-board" in memeval(tmp_path, "init", "board", "a/b").err
    assert "init judge my-judge" in memeval(tmp_path, "init", "judge").err


def test_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    completed(tmp_path, "init", "my-memory", "--kind", "judge")
    before = (tmp_path / "my-memory" / "README.md").read_text(encoding="utf-8")
    done = memeval(tmp_path, "init", "my-memory")
    assert done.status == 2 and "my-memory exists already" in done.message
    assert (tmp_path / "my-memory" / "README.md").read_text(encoding="utf-8") == before
    assert "judge" in before


def test_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = memeval(tmp_path, "init", "my-memory", "--output", "file/my-memory")
    assert done.status == 1
    assert done.message == "memeval: file/my-memory can't be written: Not a directory"


def test_printed_commands_of_a_board_run_in_the_home(tmp_path: Path) -> None:
    """The runs to pack are there, and not in the board's folder."""
    text = completed(tmp_path, "init", "board", "my-board", "--output", "my results").out
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("  ")]
    assert [words[3] for words in commands] == ["pack", "board", "board"]
    assert commands[0][6] == commands[1][5] == "my results/packages/FILE.memeval"
    assert commands[2][4] == "my results/packages"
