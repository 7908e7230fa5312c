"""README.md, the guide and the home page of the site are true: their commands run, README's table
is what its first command prints, and the guide's example system is short and works.

`MEMEVAL_REGENERATE=1 pytest tests/test_readme.py -k first` rewrites the table.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from doubles.endpoint import ScriptedEndpoint
from forking import Done, run_command_line
from pages import anchors, without_times

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide.md"
HOME = ROOT / "docs" / "index.md"
PAGES = (README, GUIDE, HOME)
EXAMPLE = ROOT / "tests" / "systems_example"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KINDS = {README: {"bash", "text"}, GUIDE: {"bash", "json", "python", "yaml"}, HOME: {"bash"}}
LONGEST = 250
"""Maximum number of lines of the README."""
MEMEVAL = "python -m memeval"
FIRST = f"{MEMEVAL} -m system=rag,bm25,mem0"
MARK = "<!-- first result -->\n"
LIMITS = ["dataset.limit_cases=1", "dataset.limit_questions=5"]
OF_THE_USER = (
    "MEMEVAL_INVOCATION",
    "MLFLOW_TRACKING_URI",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)

NOT_RUN = {
    r"git clone \S+|cd memeval": "needs the network; this checkout is what it brings",
    r"make install": "installs an environment",
    r"make local-model": "installs an environment and serves until it is stopped; "
    "tests/test_recipes.py serves what it serves, where that is installed",
    r"export [A-Z_]+=\S+": "sets up the reader's own shell",
    r"python -m memeval ui": "serves until it is stopped; tests/cli/test_ui.py starts and stops it",
    r"python -m memeval (compare|list)\b.*": "reads finished runs, of which a new home has none; "
    "tests/cli/test_comparing_runs.py makes some first",
    r"python -m memeval data fetch \w+": "needs the network; tests/datasets/test_fetch.py fetches "
    "from a server of its own",
}
"""Commands that are not run, by a pattern of the whole line, with the reason."""


def blocks(page: Path, kind: str) -> list[str]:
    """A page's fenced blocks of the given kind."""
    text = page.read_text(encoding="utf-8")
    return [body for found, body in FENCE.findall(text) if found == kind]


def commands(*pages: Path) -> list[str]:
    """Every distinct line of the bash blocks; a line that ends in a backslash is joined with the
    next.
    """
    lines: list[str] = []
    for page in pages:
        lines += "".join(blocks(page, "bash")).replace("\\\n", " ").splitlines()

    return list(dict.fromkeys(line for line in lines if line.strip() and line[0] != "#"))


def sorted_out(command: str) -> object:
    """A command as a test parameter: marked if it needs real data, skipped with the reason if it is
    in NOT_RUN.
    """
    for pattern, reason in NOT_RUN.items():
        if re.fullmatch(pattern, command):
            return pytest.param(command, marks=pytest.mark.skip(reason=reason))
    return (
        pytest.param(command, marks=pytest.mark.real_data)
        if re.search(r"\blocomo\b", command)
        else command
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reader's folder: the recipes, the example system and the file of answers, as printed."""
    shutil.copytree(EXAMPLE, tmp_path / "work")
    shutil.copytree(ROOT / "recipes" / "conf", tmp_path / "work" / "recipes" / "conf")
    (tmp_path / "work" / "answers.jsonl").write_text(blocks(GUIDE, "json")[0], encoding="utf-8")
    return tmp_path / "work"


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as serving:
        yield serving


def run(command: str, folder: Path, **environment: str) -> Done:
    """Runs a command of the README in a separate home."""
    words = shlex.split(command)
    assert words[:3] == MEMEVAL.split()
    inherited = {name: value for name, value in os.environ.items() if name not in OF_THE_USER}
    home = {"MEMEVAL_HOME": str(folder.parent / "home"), **environment}
    return run_command_line(words[3:], env=inherited | home, cwd=folder)


def is_run(command: str) -> bool:
    """Whether a command starts runs: its first word is an option or an override."""
    return not command.removeprefix(MEMEVAL).split()[0].isidentifier()


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(
    "command", [sorted_out(command) for command in commands(*PAGES) if command != FIRST]
)
def test_command_of_a_page_runs(
    command: str,
    folder: Path,
    endpoint: ScriptedEndpoint,
    give_store: Callable[[Path], None],
    request: pytest.FixtureRequest,
) -> None:
    assert command.startswith(f"{MEMEVAL} "), (
        f"'{command}' is in a bash block of {PAGES}: run it here, or say in NOT_RUN why not"
    )
    environment: dict[str, str] = {}
    if "locomo" in command:
        environment["MEMEVAL_DATA_DIR"] = str(request.getfixturevalue("data_dir"))
    if "dataset=locomo" in command:
        command = shlex.join([*shlex.split(command), *LIMITS])
    if is_run(command):  # MLflow would take longer than the run; `evaluate` is tracked
        command += " tracking=none"
    else:
        give_store(folder.parent / "home")
    if "llm=local_model" in command:
        command += f" llm.base_url={endpoint.base_url} embedder.base_url={endpoint.base_url}"
    if "=openai" in command:
        command = re.sub(r"(?<=base_url=)\S+", endpoint.base_url, command)
        environment |= {"OPENAI_BASE_URL": endpoint.base_url}
        if "base_url" not in command:  # an endpoint on this machine needs no key
            environment |= {"OPENAI_API_KEY": "of the test"}
    done = run(command, folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "INVALID" not in done.stdout
    # The example's class has no `save`, as most have at first; that must not be reported as a
    # fault.
    assert "could not be saved" not in done.stdout
    asks = re.search("=openai|=local_model", command) is not None
    assert asks == (endpoint.count("/chat/completions") > 0)


@pytest.mark.slow
def test_readme_table_is_what_the_first_command_prints(folder: Path) -> None:
    assert FIRST in commands(README) and FIRST in commands(HOME)
    done = run(f"{FIRST} tracking=none", folder)  # does not change the table
    assert done.returncode == 0, done.stderr
    # A reader is in the checkout, but the test is not.
    table = done.stdout.replace(f"{ROOT}/docs/", "docs/").partition("reports: ")[0]
    printed = "\n".join(line.rstrip() for line in table.splitlines())
    text = README.read_text(encoding="utf-8")
    if os.environ.get("MEMEVAL_REGENERATE"):
        head, _, tail = text.partition(MARK)
        text = head + MARK + FENCE.sub(lambda _: f"```text\n{printed}\n```", tail, count=1)
        README.write_text(text, encoding="utf-8")
    shown = FENCE.match(text.partition(MARK)[2])
    assert shown is not None, "the mark is followed by a block of text"
    assert without_times(shown[2]) == without_times(printed), (
        "the first result has changed; see the top of this file for how to regenerate it"
    )


def test_guide_explains_every_column_that_is_printed() -> None:
    explained = re.findall(
        r"`([^`]+)`",
        "".join(re.findall(r"^\| (`.*?) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)),
    )
    from memeval.report.comparison import figures, shorten
    from memeval.results import RunSummary

    empty = RunSummary("", "", "demo", None, "", {}, {}, {}, (), (), (), True, "", "")
    assert set(figures(empty, {})) <= set(explained)
    categories = ("multi_hop", "temporal", "open_domain", "single_hop", "adversarial")
    assert set(shorten(categories).values()) <= set(explained)


def test_make_run_is_the_first_command() -> None:
    first = re.search(
        r"^FIRST_RUN := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert first is not None
    assert f"{MEMEVAL} {first[1]}" == FIRST


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_of_a_known_kind(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert {kind for kind, _ in FENCE.findall(text)} == KINDS[page]
    assert 2 * len(FENCE.findall(text)) == sum(line.startswith("```") for line in text.splitlines())
    hidden = [body for kind, body in FENCE.findall(text) if kind != "bash" and MEMEVAL in body]
    assert hidden == []


def test_the_example_is_printed_as_it_is_tested() -> None:
    assert blocks(GUIDE, "python") == [(EXAMPLE / "my_memory.py").read_text(encoding="utf-8")]
    assert blocks(GUIDE, "yaml") == [
        (EXAMPLE / "my_conf" / "system" / "mine.yaml").read_text(encoding="utf-8")
    ]
    assert blocks(GUIDE, "json") == [(EXAMPLE / "answers.jsonl").read_text(encoding="utf-8")]


def test_the_example_takes_at_most_20_lines() -> None:
    """Lines of the class file and of the YAML together; blank lines and imports are not counted."""
    lines = "".join(blocks(GUIDE, "python") + blocks(GUIDE, "yaml")).splitlines()
    counted = [line for line in lines if line.strip() and not line.startswith(("import ", "from "))]
    assert len(counted) <= 20


def test_readme_is_short_and_shows_the_installation_first() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST
    parts = ["git clone", "first_page.png", "## What it measures", FIRST, "llm=local_model"]
    assert sorted(parts, key=text.index) == parts


def test_readme_links_are_absolute_and_lead_into_this_checkout() -> None:
    """A package index shows the README too, so each link is absolute."""
    text = FENCE.sub("", README.read_text(encoding="utf-8"))
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    repository = home["project"]["urls"]["Repository"]
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    starts = (f"{repository}/blob/main/", f"{raw}/main/")

    inside = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        assert link.startswith("https://"), link
        start = next((start for start in starts if link.startswith(start)), None)
        if start is None:
            assert link.startswith((f"{repository}/actions/", "https://img.shields.io/badge/"))
            continue

        path, _, anchor = link.removeprefix(start).partition("#")
        assert (ROOT / path).exists(), link
        assert not anchor or anchor in anchors(ROOT / path), link
        inside.append(link)

    assert len(inside) > 30
    assert f"git clone {repository}.git" in commands(README)


def test_the_answers_file_has_ids_of_the_demo_set() -> None:
    samples = json.loads((ROOT / "data" / "demo" / "demo.json").read_text(encoding="utf-8"))
    known = {
        f"{sample['sample_id']}/q{index}"
        for sample in samples
        for index in range(len(sample["qa"]))
    }
    assert {
        json.loads(line)["question_id"] for line in blocks(GUIDE, "json")[0].splitlines()
    } <= known
