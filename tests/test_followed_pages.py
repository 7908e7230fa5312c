"""The tutorial and the pages of docs/howto/ can be followed to the letter: their files are written
and their commands run, in the order of the page and in one folder.

The slow tests follow two of the how-to pages with fewer conversations, and all of them with more.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from doubles.contracts import LeaderboardDouble
from doubles.endpoint import ScriptedEndpoint
from forking import NO_PLOTS, Done, run_command_line
from pages import without_times

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MEMEVAL = "python -m memeval "
OF_THE_READERS_SHELL = re.compile(r"(mkdir|python3 -m venv|\. |pip install|git add) ?.*")
OF_FINISHED_RUNS = (
    "check",
    "export",
    "list",
    "show",
    "compare",
    "claims",
    "lint",
    "verify",
    "label",
    "judge",
    "data",
)
"""Commands that start no run: they accept neither limits nor `tracking`."""
OF_THE_USER = ("MEMEVAL_INVOCATION", "MEMEVAL_DATA_DIR", "OPENAI_API_KEY")
NOT_RUN = {
    "reranker=endpoint": "the scripted endpoint ranks nothing; tests/retrieval/ ask a reranker",
}
"""Commands that are not run, by a part of the command, with the reason."""
FEW = ["dataset.limit_questions=9"]
FEWER = [*FEW, "dataset.limit_cases=3"]
"""For the quick test of two pages."""
MEMORY = "http://localhost:8765"
"""The URL of the memory service on the pages."""
HOWTO = sorted((DOCS / "howto").glob("*.md"))
QUICK = [DOCS / "howto" / f"{name}.md" for name in ("debug_a_question", "rehearse_a_leaderboard")]


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """Kind, title and text of each block; a block of commands is one step per line."""
    for kind, title, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "bash":
            yield from ((kind, title, line) for line in text.splitlines())
        else:
            yield kind, title, text


@dataclass
class Reader:
    """A reader who follows a page in a new folder."""

    folder: Path
    endpoint: ScriptedEndpoint
    few: list[str]
    """Limits that are added to each run."""
    memory: str = MEMORY
    """The URL of the memory service."""
    exported: dict[str, str] = field(default_factory=dict)
    printed: list[list[str]] = field(default_factory=list)
    """The lines printed by the latest command."""

    def follow(self, page: Path) -> None:
        for kind, title, text in steps(page):
            if title:
                path = self.folder / title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text.replace(MEMORY, self.memory), encoding="utf-8")
            elif kind == "text" and not self.few:
                shown = without_times(text)
                left = [line for line in shown if line not in self.printed]
                assert left == [], self.printed
            elif kind == "bash" and any(part in text for part in NOT_RUN):
                continue
            elif kind == "bash" and text.startswith(MEMEVAL):
                self.check(text)
            elif kind == "bash":
                self.edit(text)

    def check(self, command: str) -> None:
        """Runs a command of memeval and checks its exit status: that in its comment, else 0."""
        if "--labels" in command:
            label(self.folder)
        if " hypotheses.jsonl" in command:
            some = next(self.folder.glob("outputs/runs/*/hypotheses.jsonl"))
            shutil.copy(some, self.folder)

        if " data review " in command:
            accept_all(self.folder / command.rsplit(maxsplit=1)[-1])
            return

        done = self.run(command)
        wanted = re.search(r"# exit status (\d)", command)
        assert done.returncode == int(wanted[1] if wanted else 0), (
            f"{command}\n{done.stdout}{done.stderr}"
        )
        self.printed = without_times(done.stdout)

    def run(self, command: str) -> Done:
        words = shlex.split(command.removeprefix(MEMEVAL), comments=True)
        address = re.compile(rf"(?<=base_url=)(?!{MEMORY})http\S+")
        words = [address.sub(self.endpoint.base_url, word) for word in words]
        words = [word.replace(MEMORY, self.memory) for word in words]
        at = next((at for at, word in enumerate(words) if "outputs/" in word), None)
        if at is not None:  # expands a pattern, as a shell does
            words[at : at + 1] = [str(path) for path in self.folder.glob(words[at])]
        if words[0] not in OF_FINISHED_RUNS:
            limits = [limit for limit in self.few if limit.partition("=")[0] not in command]
            words += limits if "question_ids" not in command else []
            words += ["tracking=none"] if "tracking." not in command else []

        inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_USER}
        reach = {"OPENAI_BASE_URL": self.endpoint.base_url, "OPENAI_API_KEY": "of the test"}
        env = {**inherited, **NO_PLOTS, **reach, **self.exported, "MEMEVAL_HOME": str(self.folder)}
        # `python` on a page is that of the environment in which memeval is installed.
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return run_command_line(words, env=env, cwd=self.folder)

    def edit(self, command: str) -> None:
        """Carries out other commands of a page that edit files or set variables; no others are
        allowed.
        """
        words = shlex.split(command)
        if words[0] == "sed":
            _, before, after, _ = words[2].split("/")
            path = self.folder / words[3]
            shutil.copy(path, path.with_name(f"{path.name}.before"))
            text = path.read_text(encoding="utf-8")
            assert before in text
            path.write_text(text.replace(before, after), encoding="utf-8")
        elif words[0] == "mv":
            (self.folder / words[1]).replace(self.folder / words[2])
        elif words[0] == "export":
            name, _, value = words[1].partition("=")
            self.exported[name] = self.endpoint.base_url if "://" in value else "of the test"
        else:
            assert OF_THE_READERS_SHELL.fullmatch(command), command


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


def accept_all(path: Path) -> None:
    """Accepts every question of a file, as the reader does on the review page."""
    content = json.loads(path.read_text(encoding="utf-8"))
    for case in content["cases"]:
        for question in case["questions"]:
            question["status"] = "accepted"

    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as serving:
        yield serving


def test_tutorial_can_be_followed(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    Reader(tmp_path, endpoint, []).follow(DOCS / "tutorial.md")
    assert endpoint.count("/chat/completions") > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in QUICK])
def test_howto_page_can_be_followed_with_fewer_conversations(
    tmp_path: Path, endpoint: ScriptedEndpoint, page: Path
) -> None:
    with LeaderboardDouble() as memory:
        Reader(tmp_path, endpoint, FEWER, memory.address).follow(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in HOWTO])
def test_howto_page_can_be_followed(tmp_path: Path, endpoint: ScriptedEndpoint, page: Path) -> None:
    with LeaderboardDouble() as memory:
        Reader(tmp_path, endpoint, FEW, memory.address).follow(page)


def test_the_class_of_the_tutorial_is_small() -> None:
    """It has at most 22 lines; blank lines and imports are not counted."""
    (source,) = (text for _, title, text in steps(DOCS / "tutorial.md") if title.endswith(".py"))
    lines = [line for line in source.splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("import ", "from "))]) <= 22
