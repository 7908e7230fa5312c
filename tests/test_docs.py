"""docs/ is complete: it describes every field of conf/ and the schema with default and stage, and
every metric that a run logs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from doubles.endpoint import ScriptedEndpoint
from forking import Done, run_command_line
from made_runs import in_conversations, made_run
from omegaconf import OmegaConf

from memeval.cli.data import data
from memeval.config.identity import field_stages
from memeval.config.leaves import flatten
from memeval.config.options import built_in_classes
from memeval.config.schema import STAGES, RunConfig
from memeval.datasets.importing.chats import read_chat
from memeval.datasets.importing.contents import records_of
from memeval.datasets.importing.message import ImportLog
from memeval.datasets.locate import adapter_class
from memeval.datasets.registry import DATASETS
from memeval.systems.registry import built_in, settings_of

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf"
EXAMPLE = ROOT / "tests" / "systems_example"
PAGE = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings_reference.md").read_text(encoding="utf-8")
DATA_SETS = "\n".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "datasets").glob("*.md"))
)
ALL, NO_GROUP, NAME = "all", "–", "the option"
VALUES = ("top_k", "compression_turn")
"""Groups whose options are the values of a field with the same name."""
VARIABLES = (
    "MEMEVAL_HOME",
    "MEMEVAL_DATA_DIR",
    "MLFLOW_TRACKING_URI",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)


@cache
def rows() -> list[tuple[str, list[str], str, str]]:
    """Field, options, default and stage from each row of the field tables."""
    return list(read_rows())


def read_rows() -> Iterator[tuple[str, list[str], str, str]]:
    for line in DATA_SETS.splitlines():
        cells = (
            [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("| `") else []
        )
        if len(cells) == 6:
            yield cells[0].strip("`"), cells[1].split(", "), cells[2], cells[4]


@cache
def stages(option: str = "") -> dict[str, str | None]:
    """Stage of each field according to the code; for an option of a data set, the stages of its own
    fields.
    """
    known = field_stages(RunConfig) | {"system.name": "run", "system.class": "run"}
    for name in [option] if option in built_in_classes("dataset") else built_in_classes("dataset"):
        known |= {
            path: stage or "prepare"
            for path, stage in field_stages(adapter_class(name).settings_type, "dataset.").items()
        }
    known |= {"dataset.name": "prepare", "dataset.class": "prepare"}
    for name in built_in():
        known |= {
            path: stage or "prepare"
            for path, stage in field_stages(settings_of(name), "system.").items()
        }
    return known


def written(value: Any) -> str:
    """The default in the form that YAML has it."""
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )


@cache
def in_conf() -> list[tuple[str, str, str]]:
    """Field, option and default of every line of conf/, except options with a list of defaults,
    which only set fields of others.
    """
    return list(read_conf())


def read_conf() -> Iterator[tuple[str, str, str]]:
    for path in sorted(CONF.glob("*/*.yaml")):
        group, option = path.parent.name, path.stem
        lines: Any = OmegaConf.to_container(OmegaConf.load(path))
        if "defaults" in lines:
            continue
        for field, value in flatten(lines).items():
            if group not in VALUES:
                yield (
                    f"{group}.{field}",
                    option,
                    NAME if field in ("name", "class") else written(value),
                )
    top: Any = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"), resolve=False)
    own = {field: value for field, value in top.items() if field not in ("defaults", "hydra")}
    for field, value in flatten(own).items():
        yield field, NO_GROUP, written(value)
    for group in VALUES:
        option = next(line[group] for line in top["defaults"] if group in line)
        yield group, ALL, written(OmegaConf.load(CONF / group / f"{option}.yaml")[group])


def described() -> list[list[str]]:
    """The cells of each row on the settings page that describes a field."""
    lines = [line for line in SETTINGS.splitlines() if re.match(r"\| `[\w.]+` \|", line)]
    return [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines]


def test_every_field_is_explained_on_the_settings_page() -> None:
    known = {field for field, option, _ in in_conf() if not field.endswith((".name", ".class"))}
    common: Any = OmegaConf.to_container(OmegaConf.load(CONF / "common.yaml"))
    fields = described()
    assert known - set(VALUES) | set(flatten(common)) == {row[0].strip("`") for row in fields}
    assert [row for row in fields if len(row) < 4 or not row[-1]] == []
    assert {row[-2] for row in fields} <= set(STAGES)


def test_every_field_of_the_schema_is_in_conf() -> None:
    there = {field for field, *_ in in_conf()}
    assert set(field_stages(RunConfig)) - there == set()


def test_data_set_pages_state_defaults_and_stages_of_the_code() -> None:
    known = {(field, option): default for field, option, default in in_conf()}
    assert rows()
    for field, options, default, stage in rows():
        for option in options:
            assert (known[field, option], stages(option)[field]) == (default, stage), field


@pytest.mark.parametrize(
    "path", sorted(CONF.glob("*/*.yaml")), ids=lambda path: f"{path.parent.name}={path.stem}"
)
def test_every_option_is_documented(path: Path) -> None:
    assert f"`{path.parent.name}={path.stem}`" in SETTINGS


def test_every_data_set_that_a_page_names_exists() -> None:
    written_by_the_reader = {"tickets"}
    named = {
        name
        for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        for name in re.findall(r"\bdataset=([a-z]\w*)", page.read_text(encoding="utf-8"))
    }
    assert named - written_by_the_reader <= {path.stem for path in CONF.glob("dataset/*.yaml")}


def test_the_default_options_are_marked() -> None:
    top: Any = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"), resolve=False)
    defaults = {
        f"{group}={option}"
        for line in top["defaults"]
        if isinstance(line, dict)
        for group, option in line.items()
    }
    marked = set(re.findall(r"\| `(\w+=\w+)` \* \|", SETTINGS))
    assert {choice for choice in defaults if not choice.startswith("override")} == marked


def test_main_environment_variables_are_documented() -> None:
    assert [name for name in VARIABLES if f"| `{name}` |" not in PAGE] == []


def test_the_changelog_is_read_in_two_minutes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    latest = text.split("\n## ")[1]
    assert 50 < len(latest.split()) < 500


def test_every_sweep_is_documented() -> None:
    page = (ROOT / "sweeps" / "README.md").read_text(encoding="utf-8")
    assert [
        path.stem
        for path in sorted((ROOT / "sweeps").glob("*.yaml"))
        if f"## `{path.stem}`" not in page
    ] == []


def test_the_example_is_printed_as_it_is_tested() -> None:
    page = (ROOT / "docs" / "adding_a_system.md").read_text(encoding="utf-8")
    for fence, path in (
        ("python", "my_recent.py"),
        ("yaml", "my_conf/system/recent.yaml"),
        ("python", "test_my_systems.py"),
        ("python", "my_facts.py"),
        ("yaml", "my_conf/system/facts.yaml"),
        ("python", "my_parts.py"),
        ("yaml", "my_conf/embedder/word_hashes.yaml"),
    ):
        assert f"```{fence}\n{(EXAMPLE / path).read_text(encoding='utf-8')}```" in page


def commands() -> list[str]:
    """The commands of these pages, which need neither a key nor a data set, without their
    comments.
    """
    pages = [
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("configuration.md", "adding_a_system.md")
    ]
    blocks = "".join(
        block
        for page in pages
        for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    )
    return [line.partition(" #")[0].strip() for line in blocks.splitlines()]


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("command", commands())
def test_command_of_a_page_runs(command: str, tmp_path: Path) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "work")
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "memeval"]
    done = run(
        [*words[3:], "dataset.limit_cases=1", "dataset.limit_questions=5", "tracking=none"],
        tmp_path,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


def run(arguments: list[str], home: Path, cwd: Path = ROOT, **environment: str) -> Done:
    """Runs memeval's command line in the given home."""
    inherited = {name: value for name, value in os.environ.items() if name != "MEMEVAL_INVOCATION"}
    env = {**inherited, "MEMEVAL_HOME": str(home), **environment}
    return run_command_line(arguments, env=env, cwd=cwd)


@pytest.mark.slow
def test_the_commands_for_own_data_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
    tables = re.findall(r"^```csv\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for name, table in zip(("turns.csv", "questions.csv"), tables, strict=True):
        (tmp_path / name).write_text(table, encoding="utf-8")

    (tmp_path / "names.txt").write_text("Ida\n", encoding="utf-8")
    messages = [
        {"role": "user", "content": f"Ida says that she paid {number} for it."}
        for number in range(20)
    ]
    records = [{"id": number, "messages": messages} for number in range(12)]
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("chats.json", json.dumps(records))

    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for line in "".join(blocks).splitlines():
        command, action, *words = shlex.split(line.partition(" #")[0])[3:]
        assert command == "data"
        # `data diff` of the frozen table and the table itself finds no difference.
        assert data([action, *words]) == 0, line


def test_the_script_for_spans_keeps_calls_of_tools_and_their_results(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "own_data.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    asked = [
        {"role": "user", "parts": [{"type": "text", "content": "Is it wet?"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "I look it up."},
                {"type": "tool_call", "id": "1", "name": "weather", "arguments": {"at": "Bonn"}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "rain"}]},
    ]
    reply = [{"role": "assistant", "parts": [{"type": "text", "content": "Yes."}]}]
    attributes = {
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(reply),
        "gen_ai.conversation.id": "c1",
    }
    span = json.dumps({"attributes": attributes, "start_time": "2026-01-02T03:04:05Z"})
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, input=span, capture_output=True, text=True, check=True)

    (record,) = records_of(done.stdout.encode(), tmp_path, ImportLog())
    turns = [(turn.speaker, turn.text) for turn in read_chat([record], "spans", ImportLog())]
    said = [("tool", 'weather({"at": "Bonn"})'), ("tool", "rain"), ("assistant", "Yes.")]
    assert turns == [("user", "Is it wet?"), *said]


def test_the_script_for_mem0s_results_names_the_questions(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "datasets" / "locomo.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    asked = [{"category": 1}, {"category": 5}, {"category": 4}]
    cases = [{"sample_id": "a", "qa": []}, {"sample_id": "b", "qa": asked}]
    (tmp_path / "locomo10.json").write_text(json.dumps(cases), encoding="utf-8")
    answers = [{"category": 1, "response": "x"}, {"category": 5, "response": "y"}]
    answers.append({"category": "4", "response": "z", "llm_score": 1})
    (tmp_path / "results.json").write_text(json.dumps({"1": answers}), encoding="utf-8")

    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    first, last = map(json.loads, done.stdout.splitlines())
    assert first == {"question_id": "b/q0", "hypothesis": "x"}
    assert (last["question_id"], last["label"]) == ("b/q2", True)


def commands_on_runs() -> list[str]:
    """The commands on finished runs that docs/claims.md and docs/compare.md show for papers."""
    text = "".join((ROOT / "docs" / name).read_text() for name in ("claims.md", "compare.md"))
    lines = re.findall(r"^python -m memeval (?:table|claims|explain)\b.*$", text, re.MULTILINE)
    return [line.partition(" #")[0].strip() for line in lines]


def test_the_commands_for_papers_run(tmp_path: Path) -> None:
    named = {"sweep": "baselines", "of_records": {"metrics": {"token_f1": 0.5, "bleu1": 0.5}}}
    for system, right in (("rag", [2, 3] * 3), ("bm25", [1, 2] * 3)):
        made_run(tmp_path / "outputs/runs", system, in_conversations(right), **named)

    lines = commands_on_runs()
    assert {shlex.split(line)[3] for line in lines} == {"table", "claims", "explain"}
    for line in lines:
        # The made-up runs have no retrieval, cost or latency.
        words = line.replace(" RUN", " system=rag").replace("recall@10,session_recall@10,", "")
        words = words.replace(",cost,latency", "")
        done = run(shlex.split(words)[3:], tmp_path, cwd=tmp_path, MEMEVAL_DATA_DIR="")
        assert done.returncode == 0, (line, done.stderr)

    assert r"\toprule" in (tmp_path / "baselines.tex").read_text(encoding="utf-8")


def metric_patterns() -> list[re.Pattern[str]]:
    """Patterns of the names in docs/metrics.md; `<category>` and `<stage>` match any value,
    `a_at_…` and `a_at_1` … `a_at_20` any depth.
    """
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    text = re.sub(r"`(\w+_at_)(?:\d+` … `\1\d+|…)`", r"`\1<depth>`", text)
    parts = {
        "<category>": "[^/]+",
        "<facet>": "[^/]+",
        "<value>": "[^/]+",
        "<position>": "[0-9]+",
        "<stage>": "(ingest|answer|judge|embed)",
        "<depth>": r"\d+",
    }
    names = set(re.findall(r"`([a-z][\w/<>]+)`", text))
    return [
        re.compile("".join(parts.get(part, re.escape(part)) for part in re.split(r"(<\w+>)", name)))
        for name in names
    ]


@pytest.mark.slow
def test_the_metrics_of_every_data_set_are_documented(tmp_path: Path) -> None:
    shipped = ",".join(
        name
        for name in sorted(built_in_classes("dataset"))
        if name.startswith("demo") or not DATASETS[name].file
    )
    done = run(
        [
            "-m",
            f"dataset={shipped}",
            "dataset.limit_cases=1",
            "tracking=none",
        ],
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    summaries = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("outputs/runs/*/run.json")
    ]
    assert len(summaries) == shipped.count(",") + 1 > 7
    patterns, logged = (
        metric_patterns(),
        {name for summary in summaries for name in summary["metrics"]},
    )
    assert (
        sorted(name for name in logged if not any(pattern.fullmatch(name) for pattern in patterns))
        == []
    )


@pytest.mark.slow
@pytest.mark.parametrize("with_model", [False, True], ids=["offline", "with a model"])
def test_every_metric_of_a_run_is_documented(with_model: bool, tmp_path: Path) -> None:
    few = ["num_runs=2", "dataset.limit_questions=10", "tracking=none"]
    with ScriptedEndpoint() as endpoint:
        chosen = (
            ["system=rag", "embedder=openai", "llm=openai", "judge=llm", "seed=7"]
            if with_model
            else ["system=bm25"]
        )
        reach = {"OPENAI_BASE_URL": endpoint.base_url, "OPENAI_API_KEY": "of the test"}
        done = run([*chosen, *few], tmp_path, **reach)
    assert done.returncode == 0, done.stderr
    (summary,) = (
        json.loads(path.read_text(encoding="utf-8"))
        for path in tmp_path.glob("outputs/runs/*/run.json")
    )
    logged = {name for name, value in summary["metrics"].items() if value is not None}
    assert {"accuracy", "accuracy_std", "tokens/total"} <= logged
    patterns = metric_patterns()
    assert (
        sorted(name for name in logged if not any(pattern.fullmatch(name) for pattern in patterns))
        == []
    )
