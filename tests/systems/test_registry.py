from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from installed import install

from memeval import __version__
from memeval.config.identity import field_stages
from memeval.config.options import available
from memeval.config.settings import NOT_SETTINGS, read_settings
from memeval.errors import UserError
from memeval.systems.base import ANSWER, INGEST, RUNTIME, SystemSettings
from memeval.systems.controls.no_memory import NoMemory
from memeval.systems.registry import built_in, settings_of, system_class

CONF = Path(__file__).parents[2] / "conf" / "system"


@dataclass(frozen=True)
class Sample(SystemSettings):
    share: float = field(default=0.5, metadata=ANSWER)
    limit: int | None = field(default=None, metadata=INGEST)
    mode: Literal["soft", "hard"] = field(default="soft", metadata=ANSWER)
    title: str = field(default="", metadata=ANSWER)


class Own(NoMemory):
    """A custom system."""


@pytest.mark.parametrize(
    "name",
    sorted(name for name in built_in() if not name.startswith(("cogcanvas_", "mem0_"))),
)  # variants are tested as diffs
def test_each_system_has_a_documented_yaml_with_its_defaults(name: str) -> None:
    text = (CONF / f"{name}.yaml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)
    assert text.startswith("# ")
    assert given["name"] == name
    kind = settings_of(name)
    assert set(given) - NOT_SETTINGS == {entry.name for entry in fields(kind)}
    assert read_settings(kind, given) == kind()
    assert all("  # " in line for line in text.splitlines()[3:])


def test_each_system_has_a_yaml_and_a_built_in_class() -> None:
    assert {path.stem for path in CONF.glob("*.yaml")} == set(built_in())
    for name in built_in():
        assert system_class(name).__module__.startswith("memeval.systems.")


def test_a_variant_has_the_class_of_its_defaults() -> None:
    assert "class" not in yaml.safe_load((CONF / "cogcanvas_cot.yaml").read_text(encoding="utf-8"))
    assert system_class("cogcanvas_cot") is system_class("cogcanvas")


@pytest.mark.parametrize("name", ["../embedder/tfidf", "/etc/passwd", "", ".", "rag.yaml"])
def test_name_with_a_path_is_unknown(name: str) -> None:
    with pytest.raises(UserError, match="unknown system"):
        system_class(name)


@pytest.mark.parametrize("name", built_in())
def test_each_setting_declares_its_stage(name: str) -> None:
    assert set(field_stages(settings_of(name)).values()) <= {
        INGEST["stage"],
        ANSWER["stage"],
        RUNTIME["stage"],
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"chunk_sise": 5}, "unknown option 'system.chunk_sise'. Did you mean: system.chunk_size"),
        ({"chunk_size": "big"}, "system.chunk_size must be a whole number, not 'big'"),
        ({"chunk_size": 7.5}, "system.chunk_size must be a whole number, not '7.5'"),
        ({"chunk_size": True}, "system.chunk_size must be a whole number"),
        ({"chunk_size": None}, "system.chunk_size must be a whole number"),
        ({"chunk_size": 0}, "system.chunk_size must be above 0, not 0"),
        (
            {"chunk_size": 100, "overlap": 100},
            "system.overlap must be at least 0 and below system.chunk_size (100), but is 100",
        ),
        ({"overlap": -1}, "system.overlap must be at least 0"),
        (
            {"reranker": "lexicol"},
            "unknown value of system.reranker 'lexicol'. Did you mean: lexical?",
        ),
        ({"reranker": ["none"]}, "system.reranker must be "),
    ],
)
def test_a_wrong_setting_is_named(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_settings(settings_of("rag"), given)
    assert message in raised.value.message


def test_a_list_where_one_value_belongs_is_answered_with_the_form_of_a_sweep() -> None:
    with pytest.raises(UserError) as raised:
        read_settings(settings_of("rag"), {"chunk_size": [256, 512]})
    (hint,) = raised.value.hints
    assert hint.endswith("in a sweep:  system.chunk_size=256,512")


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "long_context",
            {"max_context_tokens": 0},
            "system.max_context_tokens must be above 0, not 0",
        ),
        ("bm25", {"index_date": "yes"}, "system.index_date must be true or false, not 'yes'"),
        ("mem0", {"infer": 1}, "system.infer must be true or false"),
        ("mem0", {"threshold": 1.5}, "system.threshold must be at most 1, not 1.5"),
        (
            "native",
            {"max_context_tokens": 0},
            "system.max_context_tokens must be above 0, not 0",
        ),
        (
            "summarization",
            {"summary_tokens": 0},
            "system.summary_tokens must be above 0, not 0",
        ),
        ("hybrid", {"rrf_k": 0}, "system.rrf_k must be above 0, not 0"),
        ("last_k", {"last_messages": 0}, "system.last_messages must be above 0, not 0"),
        (
            "semantic_recall",
            {"recall": {"top_k": 0}},
            "system.recall.top_k must be above 0, not 0",
        ),
        (
            "combined",
            {"recall": {"message_range": -1}},
            "system.recall.message_range must be at least 0, not -1",
        ),
        (
            "combined",
            {"recall": {"scope": "case"}},
            "unknown value of system.recall.scope 'case'. Available: resource, thread",
        ),
        (
            "working_memory",
            {"working_memory": {"template": "Anything"}},
            "system.working_memory.template needs lines `- Name:`",
        ),
        ("working_memory", {"working_memory": {"template": "- A:\n- a:"}}, "with distinct names"),
        ("no_memory", {"top": 1}, "unknown option 'system.top': this system has no settings"),
    ],
)
def test_wrong_setting_of_any_system_is_named(
    name: str, given: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as raised:
        read_settings(settings_of(name), given)
    assert message in raised.value.message


def test_settings_are_converted_strictly() -> None:
    read = read_settings(
        Sample,
        {"name": "sample", "class": "x:Y", "share": 1, "limit": 3, "mode": "hard", "title": "t"},
    )
    assert read == Sample(1.0, 3, "hard", "t")
    assert isinstance(read.share, float)
    assert read_settings(Sample, {"limit": None}) == Sample()
    for wrong in ({"share": True}, {"share": "0.5"}, {"limit": "3"}, {"title": 3}):
        with pytest.raises(UserError):
            read_settings(Sample, wrong)


@dataclass(frozen=True)
class Inner:
    depth: int = field(default=2, metadata=ANSWER)
    width: int = field(default=9, metadata=INGEST)


@dataclass(frozen=True)
class Nested(SystemSettings):
    search: Inner = field(default=Inner(depth=5), metadata=ANSWER)
    spare: Inner = field(default_factory=Inner, metadata=INGEST)


def test_partial_group_of_settings_keeps_its_own_defaults() -> None:
    assert read_settings(Nested, {"search": {"width": 1}, "spare": {"depth": 3}}) == Nested(
        Inner(5, 1), Inner(3, 9)
    )
    assert read_settings(Nested, {}) == Nested()


def test_each_setting_of_a_group_has_its_own_stage() -> None:
    expected = {
        "search.depth": "answer",
        "search.width": "prepare",
        "spare.depth": "answer",
        "spare.width": "prepare",
    }
    assert field_stages(Nested) == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"search": 5}, "system.search is a group of settings, but is '5'"),
        (
            {"search": {"dept": 5}},
            "unknown option 'system.search.dept'. Did you mean: system.search.depth",
        ),
        (
            {"search": {"depth": "deep"}},
            "system.search.depth must be a whole number, not 'deep'",
        ),
    ],
)
def test_a_wrong_setting_of_a_group_is_named(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_settings(Nested, given)
    assert message in raised.value.message


def test_unknown_system_suggests_similar_names() -> None:
    with pytest.raises(UserError, match=r"unknown system 'bm52'\. Did you mean: bm25"):
        system_class("bm52")


def test_custom_class_is_loaded_from_its_path() -> None:
    assert system_class("mine", f"{__name__}:Own") is Own


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere.to_be_found:Thing", "no module named 'nowhere'"),
        (f"{__name__}:Missing", "has no class 'Missing'"),
        (f"{__name__}:Sample", "is not a subclass of memeval.systems.base.MemorySystem"),
        ("memeval.systems.retrieval.rag", "system.class must be package.module:Class"),
    ],
)
def test_wrong_class_path_is_explained(path: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        system_class("mine", path)


def test_a_file_as_the_module_is_told_the_name_of_the_module() -> None:
    with pytest.raises(UserError) as refused:
        system_class("mine", "nowhere/my_file.py:Thing")

    assert refused.value.hints == ("name the module, not its file:  my_file:Thing",)


def test_missing_class_suggests_only_subclasses() -> None:
    with pytest.raises(UserError) as refused:
        system_class("mine", f"{__name__}:Ownn")

    (hint,) = refused.value.hints
    assert "Own" in hint and "MemorySystem" not in hint and "Sample" not in hint
    with pytest.raises(UserError) as refused:
        system_class("mine", "memeval.records:MemorySystem")

    assert refused.value.hints == ("it defines no subclass of MemorySystem",)


def test_installed_package_adds_systems_but_cannot_replace_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{__name__}:Own"
    install(tmp_path, "my-memory", {"memeval.systems": {"mine": own, "rag": own}})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine" in available("system")
    assert system_class("mine") is Own
    assert system_class("bm25") is not Own
    message = rf"system=rag is defined by two packages: memeval {__version__} and my-memory 1\.0"
    with pytest.raises(UserError, match=message):
        system_class("rag")


def test_reading_settings_of_systems_loads_no_backend() -> None:
    code = (
        "import sys; from memeval.systems.registry import built_in, settings_of\n"
        "[settings_of(name) for name in built_in()]\n"
        "heavy = 'chromadb mem0 rank_bm25 scipy qdrant_client mlflow openai'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
