"""docs/tutorial.md can be followed by the letter: its files are written and its commands run, in
the order of the page and in one folder.

By default each run asks a few questions only; the slow test runs all, and compares what the page
prints.
"""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from forking import NO_PLOTS, Done, run_command_line

from memeval.testing.endpoint import ScriptedEndpoint

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MEMEVAL = "python -m memeval "
OF_THE_READERS_SHELL = re.compile(r"(mkdir|python3 -m venv|\. |pip install|export) ?.*")
COMPOSED = ("-m", "--config-dir")
"""First words of commands that run cells."""
OF_THE_USER = ("MEMEVAL_SESSION", "MEMEVAL_OUTPUTS", "MEMEVAL_DATA_DIR", "OPENAI_API_KEY")


def steps() -> Iterator[tuple[str, str, str]]:
    """Kind, title and text of each block; a block of commands is one step per line."""
    for kind, title, text in FENCE.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "bash":
            yield from ((kind, title, line) for line in text.splitlines())
        else:
            yield kind, title, text


def run(command: str, folder: Path, endpoint: ScriptedEndpoint, few: list[str]) -> Done:
    """A command of memeval in the reader's folder."""
    words = shlex.split(command.removeprefix(MEMEVAL), comments=True)
    at = next((at for at, word in enumerate(words) if "*" in word), None)
    if at is not None:  # as a shell does
        words[at : at + 1] = [str(path) for path in folder.glob(words[at])]
    if words[0] in (*COMPOSED, "gate", "plan"):
        words += [*few, "tracking=none"]

    inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_USER}
    reach = {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "of the test"}
    env = {**inherited, **NO_PLOTS, **reach, "MEMEVAL_HOME": str(folder)}
    return run_command_line(words, env=env, cwd=folder)


def label(folder: Path) -> None:
    """Fills in the file of labels, as the reader does by hand."""
    (path,) = folder.glob("outputs/labels/*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    for row in rows:
        row["label"] = "right" if row["gold"].split()[-1] in row["answer"] else "wrong"

    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


@pytest.mark.parametrize(
    "few",
    [
        pytest.param(["dataset.limit_questions=9"], id="few questions"),
        pytest.param([], id="as printed", marks=pytest.mark.slow),
    ],
)
def test_the_tutorial(tmp_path: Path, few: list[str]) -> None:
    printed: list[str] = []
    with ScriptedEndpoint() as endpoint:
        for kind, title, text in steps():
            if title:
                path = tmp_path / title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            elif kind == "text" and not few:
                lines = [line.rstrip() for line in text.splitlines()]
                assert [line for line in lines if line not in printed] == []
            elif kind == "bash" and text.startswith(MEMEVAL):
                if "--labels" in text:
                    label(tmp_path)

                done = run(text, tmp_path, endpoint, few)
                wanted = re.search(r"# exit status (\d)", text)
                assert done.returncode == int(wanted[1] if wanted else 0), done.stdout + done.stderr
                printed = [line.rstrip() for line in done.stdout.splitlines()]
            elif kind == "bash":
                edit(text, tmp_path)

        assert endpoint.count("/chat/completions") > 0


def edit(command: str, folder: Path) -> None:
    """The commands of the page that are not memeval's: those that edit a file, and no others."""
    words = shlex.split(command)
    if words[0] == "sed":
        _, before, after, _ = words[2].split("/")
        path = folder / words[3]
        shutil.copy(path, path.with_name(f"{path.name}.before"))
        text = path.read_text(encoding="utf-8")
        assert before in text
        path.write_text(text.replace(before, after), encoding="utf-8")
    elif words[0] == "mv":
        (folder / words[1]).replace(folder / words[2])
    else:
        assert OF_THE_READERS_SHELL.fullmatch(command), command


def test_every_file_of_the_tutorial_is_small() -> None:
    """The class has about 20 lines; blank lines and imports are not counted."""
    (source,) = (text for kind, title, text in steps() if title.endswith(".py"))
    lines = [line for line in source.splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("import ", "from "))]) <= 22
