"""Systems, data sets, metrics, models and prompts of installed packages, on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import ROOT, SMALL, Ended, completed, memeval, runs
from installed import install

MEMORY = '''
from dataclasses import dataclass, field

from memeval.records import MemoryChunk, Query, Retrieved
from memeval.systems.base import ANSWER, RecallSystem, SystemSettings


@dataclass(frozen=True)
class Settings(SystemSettings):
    last: int = field(default=3, metadata=ANSWER)


class EchoLast(RecallSystem):
    """The last turn, regardless of the question."""

    settings_type = Settings

    def reset(self) -> None:
        self.chunks: list[MemoryChunk] = []

    def ingest(self, chunk: MemoryChunk) -> None:
        self.chunks.append(chunk)

    def recall(self, query: Query, depth: int) -> list[Retrieved]:
        newest = self.chunks[-self.settings.last :]
        return [Retrieved(chunk.text, chunk.turn_ids) for chunk in reversed(newest)]
'''
FIVE = "# The last five.\ndefaults: [echo_last, _self_]\nname: echo_five\nlast: 5\n"
SWEEP = (
    "# @package _global_\n# How many it takes.\ndefaults:\n  - override /system: echo_last\n"
    "sweep_name: lasts\nhydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n"
    "      system.last: 1,2\n"
)
Command = Callable[..., Ended]
CLASS = "echo_memory.memory:EchoLast"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search-path folder with installed packages."""
    folder = tmp_path_factory.mktemp("site")
    install(
        folder,
        "echo-memory",
        {"memeval.systems": {"echo_last": CLASS}, "memeval.conf": {"echo": "echo_memory.conf"}},
        {
            "echo_memory/__init__.py": "",
            "echo_memory/memory.py": MEMORY,
            "echo_memory/conf/system/echo_five.yaml": FIVE,
            "echo_memory/conf/sweep/lasts.yaml": SWEEP,
        },
        version="1.2",
    )
    install(
        folder,
        "broken-parts",
        {
            "memeval.systems": {"broken": "broken_parts:Thing"},
            "memeval.datasets": {"broken_set": "broken_parts:Thing"},
        },
        {"broken_parts.py": "import not_installed_anywhere\n"},
    )
    for name, version in (("first-twin", "1.0"), ("second-twin", "2.0")):
        twins = {"memeval.systems": dict.fromkeys(("twin", "rag"), "twin_parts:Twin")}
        install(folder, name, twins, version=version)

    return folder


@pytest.fixture
def run(site: Path, tmp_path: Path) -> Command:
    """Runs a command with the packages installed."""

    def command(*words: str, must: bool = True) -> Ended:
        run_it = completed if must else memeval
        return run_it(tmp_path, *words, PYTHONPATH=str(site))

    return command


def shown_fields(run: Command, *words: str) -> str:
    composed = run(*words, "--cfg", "job", "--package", "system").out
    lines = [line.strip() for line in composed.splitlines()]
    of_every_system = ("timeout_s:", "tenants:", "#")
    return " ".join(line for line in lines if not line.startswith(of_every_system))


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["system=echo_last"], f"name: echo_last class: {CLASS} last: 3"),
        (["system=echo_last", "system.last=5"], f"name: echo_last class: {CLASS} last: 5"),
        (["system=echo_five"], f"name: echo_five class: {CLASS} last: 5"),
        ([f"system.class={CLASS}"], f"name: EchoLast class: {CLASS} last: 3"),
        ([f"system.class={CLASS}", "system.last=4"], f"name: EchoLast class: {CLASS} last: 4"),
        ([f"+system.class={CLASS}", "+system.last=4"], f"name: EchoLast class: {CLASS} last: 4"),
        (["system=rag", f"system.class={CLASS}"], f"name: rag class: {CLASS} last: 3"),
    ],
)
def test_an_option_has_the_fields_of_its_class(run: Command, words: list[str], fields: str) -> None:
    assert shown_fields(run, *words) == fields


def test_run_by_name_records_digest_and_version(run: Command, site: Path, tmp_path: Path) -> None:
    run("system=echo_last", "system.last=2", "plots=false", *SMALL)
    (summary,) = runs(tmp_path)
    assert summary["params"]["system"] == "echo_last" and summary["params"]["system.last"] == 2
    assert re.search(rf'"{CLASS}@[0-9a-f]{{64}} echo-memory 1\.2"', json.dumps(summary["identity"]))


def test_file_of_ones_own_builds_on_an_option_of_a_package(run: Command, tmp_path: Path) -> None:
    folder = tmp_path / "conf" / "system"
    folder.mkdir(parents=True)
    (folder / "mine.yaml").write_text(
        "defaults: [echo_last, _self_]\nname: mine\nlast: 2\n", encoding="utf-8"
    )
    words = ("system=mine,bm25", "system.last=1,2", "plots=false", *SMALL)
    run("--config-dir", str(folder.parent), "-m", *words)
    params = [summary["params"] for summary in runs(tmp_path)]
    swept = {(found["system"], found.get("system.last")) for found in params}
    assert swept == {("mine", 1), ("mine", 2), ("bm25", None)}


@pytest.mark.slow
def test_another_package_version_has_other_keys(site: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    points = {"memeval.systems": {"echo_last": CLASS}}
    files = {"echo_memory/__init__.py": "", "echo_memory/memory.py": MEMORY}
    install(other, "echo-memory", points, files, version="1.3")
    for folder in (site, other):
        completed(tmp_path, "system=echo_last", "plots=false", *SMALL, PYTHONPATH=str(folder))

    first, second = runs(tmp_path)
    assert first["identity"]["keys"] != second["identity"]["keys"]


def test_class_by_its_path_runs_and_its_command_names_it(run: Command, tmp_path: Path) -> None:
    run(f"system.class={CLASS}", "system.last=1", "plots=false", *SMALL)
    (summary,) = runs(tmp_path)
    assert summary["name"].startswith("EchoLast turn")
    assert f"system.class={CLASS} system.last=1" in summary["tags"]["command"]


def test_a_sweep_over_options_and_settings(run: Command, tmp_path: Path) -> None:
    words = ("system=bm25,echo_last,echo_five", "system.last=1,4", "plots=false", *SMALL)
    run("-m", *words)
    swept = {
        (found["params"]["system"], found["params"].get("system.last")) for found in runs(tmp_path)
    }
    lasts = {(name, last) for name in ("echo_last", "echo_five") for last in (1, 4)}
    assert swept == {("bm25", None), *lasts}


@pytest.mark.slow
def test_sweep_over_settings_of_a_class_path(run: Command, tmp_path: Path) -> None:
    run("-m", f"system.class={CLASS}", "system.last=1,4", "plots=false", *SMALL)
    assert sorted(found["params"]["system.last"] for found in runs(tmp_path)) == [1, 4]


@pytest.mark.slow
def test_sweep_file_of_a_package_runs(run: Command, tmp_path: Path) -> None:
    run("-m", "+sweep=lasts", "plots=false", *SMALL)
    assert sorted(found["params"]["system.last"] for found in runs(tmp_path)) == [1, 2]
    assert {found["tags"]["sweep"] for found in runs(tmp_path)} == {"lasts"}


def test_help_lists_options_with_their_packages(run: Command) -> None:
    printed = run("--help", "system").out
    summary = "The last turn, regardless of the question. (echo-memory 1.2)"
    # A description that does not fit continues in its column.
    page = re.sub(r"\n {22}", " ", printed)
    assert f"     echo_last        {summary}\n       system.last=3\n" in page
    assert "     echo_five        The last five. (echo-memory 1.2)\n       system.last=5\n" in page
    (broken,) = (line for line in page.splitlines() if line.startswith("     broken"))
    assert "of broken-parts 1.0: no module named 'not_installed_anywhere'" in broken
    assert (
        "twin             system=twin is defined by two packages: first-twin 1.0 and second-twin "
        "2.0" in page
    )
    assert "lasts            How many it takes. (echo-memory 1.2)" in run("--help", "sweeps").out


def test_data_list_names_data_sets_that_cannot_be_imported(run: Command) -> None:
    listed = run("data", "list").out
    assert "locomo: LoCoMo" in listed
    assert "broken_set: data set 'broken_set' of broken-parts 1.0: no module named" in listed


METRIC = """
from memeval.metrics.metric import SHOW, TABLE, Metric

LETTERS = Metric("letters", of_answer=lambda answer, gold: 1.0, columns={TABLE: "abc"})
TAKEN = Metric("accuracy")
CLASS = Metric
"""


def test_unusable_metrics_are_reported_and_left_out(tmp_path: Path) -> None:
    site = tmp_path / "site"
    points = {"letters": "LETTERS", "taken": "TAKEN", "class_of_metrics": "CLASS", "lost": "NO"}
    paths = {name: f"letter_metrics:{value}" for name, value in points.items()}
    install(site, "letter-metrics", {"memeval.metrics": paths}, {"letter_metrics.py": METRIC})
    broken = {"memeval.metrics": {"broken": "broken_metrics:ANY"}}
    install(site, "broken-metrics", broken, {"broken_metrics.py": "1 / 0\n"})
    for name in ("first-twin", "second-twin"):
        install(site, name, {"memeval.metrics": {"twin": "letter_metrics:LETTERS"}})

    done = completed(tmp_path, "system=bm25", "plots=false", *SMALL, PYTHONPATH=str(site))
    (run,) = runs(tmp_path)
    assert run["metrics"]["letters"] == 1.0 and "abc" in done.out
    for line in (
        "metric 'broken' of broken-metrics 1.0: broken_metrics.py:1: ZeroDivisionError: division",
        "metric 'class_of_metrics' of letter-metrics 1.0: letter_metrics:CLASS is not a memeval",
        "metric 'lost' of letter-metrics 1.0: module 'letter_metrics' has no class 'NO'",
        "metric 'accuracy' is defined twice",
        "metric 'twin' is defined by two packages: first-twin 1.0 and second-twin 1.0",
    ):
        assert done.err.count(line) == 1, line
        (output,) = (output for output in done.err.splitlines() if line in output)
        assert output.endswith("; the metric is left out")


MODEL = """
from memeval.llm.model import LanguageModel
from memeval.llm.mock import MockModel


class Parrot(MockModel):
    name = "parrot"

    @classmethod
    def from_settings(cls, settings, role, network):
        model = cls()
        model.name = f"parrot {settings.temperature} {role}"
        return model
"""


def test_model_and_prompt_of_a_package_run(tmp_path: Path) -> None:
    site = tmp_path / "site"
    install(
        site,
        "parrot",
        {
            "memeval.models": {"parrot": "parrot_model.model:Parrot"},
            "memeval.prompts": {"brief": "parrot_model.prompts", "lost": "parrot_model.prompts"},
        },
        {
            "parrot_model/__init__.py": "",
            "parrot_model/model.py": MODEL,
            "parrot_model/prompts/brief.txt": "Be brief.\n---\n{context}\n{question}\n",
        },
    )
    words = ("llm=parrot", "llm.temperature=0.5", "judge=llm", "plots=false", *SMALL)
    for more in ("prompt=short", "prompt=brief"):
        completed(tmp_path, *words, more, PYTHONPATH=str(site))

    brief, short = sorted(runs(tmp_path), key=lambda found: str(found["params"]["prompt"]))
    assert (brief["params"]["prompt"], brief["params"]["llm"]) == ("brief", "parrot")
    assert brief["valid"] and brief["name"].endswith("llm brief parrot")
    assert brief["tags"]["prompt_sha256"] != short["tags"]["prompt_sha256"]
    digests = brief["identity"]["inputs"]["digests"]["answer"]
    assert re.fullmatch(r"parrot_model.model:Parrot@\w+ parrot 1\.0", digests["model"])

    lost = memeval(tmp_path, *words, "prompt=lost", PYTHONPATH=str(site))
    assert lost.status == 2 and "lost.txt can't be read" in lost.message
    unknown = memeval(tmp_path, "llm=parot", PYTHONPATH=str(site))
    assert unknown.status == 2 and "Did you mean: parrot" in unknown.message


DEAR = """
from memeval.llm.mock import MockModel


class Dear(MockModel):
    async def complete(self, prompt, *, role, seed=0):
        raise AssertionError("it was called")
"""


def test_model_of_a_package_is_counted_in_a_plan_without_a_call(tmp_path: Path) -> None:
    site = tmp_path / "site"
    parts = {"memeval.models": {"dear": "dear_model:Dear"}}
    install(site, "dear-model", parts, {"dear_model.py": DEAR})
    words = ("system=bm25", "llm=dear", "judge=llm", *SMALL)
    plan = completed(tmp_path, "plan", *words, PYTHONPATH=str(site)).out
    assert re.search(r"^answer +dear ", plan, re.M) and re.search(r"^judge +dear ", plan, re.M)
    assert "cost unknown" in plan

    refused = memeval(tmp_path, *words, "budget.calls=9", PYTHONPATH=str(site))
    assert refused.status == 2 and "a budget can't be enforced with llm=dear" in refused.message


def test_plan_and_check_accept_systems_of_packages(run: Command) -> None:
    planned = run("plan", "-m", "system=echo_last", "system.last=1,2", *SMALL)
    assert re.search(r"^runs +2 +0 +2$", planned.out, re.MULTILINE)
    assert "echo_last: " in run("check", "system=echo_last", "system.last=50", must=False).out


def test_completion_lists_options_of_packages(site: Path, tmp_path: Path) -> None:
    for line, wanted in (
        ("system=echo", {"system=echo_five", "system=echo_last"}),
        ("system=echo_last system.l", {"system.last="}),
        ("plan system=echo", {"system=echo_five", "system=echo_last"}),
        ("verif", {"verify"}),
        ("--fresh -m --keep-going system=echo", {"system=echo_five", "system=echo_last"}),
        ("evaluate a.jsonl --ranked system=echo", {"system=echo_five", "system=echo_last"}),
        ("evaluate --ranked a.jsonl system=echo", {"system=echo_five", "system=echo_last"}),
        ("check http://127.0.0.1 system=echo", {"system=echo_five", "system=echo_last"}),
        ("gate --baseline b.json system=echo", {"system=echo_five", "system=echo_last"}),
        ("judge probe judge=keyw", {"judge=keyword"}),
        ("judge calibrate judge=keyw", set()),
        ("-m system=rag,echo", {"system=rag,echo_five", "system=rag,echo_last"}),
        ("system=rag --fre", set()),
        ("list system=echo", set()),
        ("lits system=echo", set()),
    ):
        words = f"memeval {line}"
        done = completed(
            tmp_path,
            "-sc",
            "query=bash",
            PYTHONPATH=f"{ROOT}:{site}",
            COMP_LINE=words,
            COMP_POINT=str(len(words)),
        )
        assert set(done.out.split()) == wanted and not done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["system=twin"],
            "system=twin is defined by two packages: first-twin 1.0 and second-twin 2.0",
        ),
        (["system=rag"], "system=rag is defined by two packages: memeval "),
        (
            ["system=broken"],
            "system 'broken' of broken-parts 1.0: no module named 'not_installed_anywhere'",
        ),
        (["system=echo_lst"], "unknown system 'echo_lst'. Did you mean: echo_last"),
        (["system=echo_last", "system.lst=1"], "'system.lst'. Did you mean: system.last"),
        (["system=echo_last", "system.last=many"], "system.last must be a whole number"),
        ([f"system.class={CLASS}", "system.tokens=space"], "'system.tokens' is a field of"),
        (["system.class=echo_memory.memory:Ech"], "has no class 'Ech'"),
        (["system.class=echo_memory"], "system.class must be package.module:Class"),
    ],
)
def test_unusable_options_are_refused(run: Command, words: list[str], message: str) -> None:
    done = run(*words, *SMALL, must=False)
    assert done.status == 2 and message in done.message
    assert "Traceback" not in done.err


def test_config_folder_cannot_hide_an_existing_option(run: Command, tmp_path: Path) -> None:
    for name, owner in (("bm25", "memeval"), ("echo_last", "echo-memory 1.2")):
        folder = tmp_path / name
        (folder / "system").mkdir(parents=True)
        (folder / "system" / f"{name}.yaml").write_text(f"name: {name}\n", encoding="utf-8")
        for words in (
            ["--config-dir", str(folder)],
            [f"--config-dir={folder}"],
            ["check", "--config-dir", str(folder)],
            ["prepare", f"--config-dir={folder}"],
        ):
            done = run(*words, f"system={name}", must=False)
            assert done.status == 2
            assert f"system={name} is already an option of {owner}" in done.message
