"""Custom embedders: by class path or entry point, with their code in the key of the memory."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from doubles.endpoint import ScriptedEndpoint
from installed import install

from memeval.errors import UserError
from memeval.pipeline.open.cell import Cell
from memeval.pipeline.open.models import Models
from memeval.pipeline.open.opening import open_cell
from memeval.retrieval.embedding.contract import EMBEDDERS
from memeval.retrieval.embedding.openai import OpenAIEmbedder
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.runs.compose.config import compose_config

EXAMPLE = Path(__file__).parents[1] / "systems_example"
OWN = ["--config-dir", str(EXAMPLE / "my_conf"), "embedder=word_hashes"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    monkeypatch.syspath_prepend(EXAMPLE)
    return tmp_path


def cell(*words: str) -> Cell:
    return open_cell(compose_config(["dataset=demo", "tracking=none", *words]), "")


def vectors(opened: Cell, text: str = "the harbour") -> list[float]:
    """The vector of a text under the cell's embedder."""

    async def work() -> list[float]:
        models = Models(opened.config, opened.run_key)
        try:
            return list((await models.embedder().embed([text]))[0])
        finally:
            await models.aclose()

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("name", "cls"), [("tfidf", CharTfidfEmbedder), ("openai", OpenAIEmbedder)]
)
def test_built_in_embedder_is_loaded_by_name(name: str, cls: type) -> None:
    assert EMBEDDERS.load(name) is cls
    assert compose_config([f"embedder={name}"]).embedder.class_ is None


def test_custom_embedder_makes_the_vectors() -> None:
    opened = cell(*OWN)
    assert opened.config.embedder.class_ == "my_parts:WordHashes"
    assert len(vectors(opened)) == 512
    assert len(vectors(cell(*OWN, "embedder.width=64"))) == 64


@pytest.mark.slow
def test_edit_of_a_custom_embedder_changes_the_prepare_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (EXAMPLE / "my_parts.py").read_text(encoding="utf-8")
    keys = []
    for text in (source, f"{source}\n# edited\n"):
        (tmp_path / "my_own_parts.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "my_own_parts", raising=False)
        keys.append(cell(*OWN, "embedder.class=my_own_parts:WordHashes").keys(0).prepare)
    assert len(set(keys)) == 2


@pytest.mark.slow
def test_custom_reranker_changes_the_answer_key_but_not_the_prepare_key() -> None:
    plain = cell("system=rag").keys(0)
    own = cell("system=rag", "reranker.class=my_parts:SharedWords").keys(0)
    assert plain.answer != own.answer and plain.prepare == own.prepare


def test_entry_point_adds_an_embedder_but_cannot_replace_a_built_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = dict.fromkeys(("word_hashes", "openai"), "my_parts:WordHashes")
    install(tmp_path, "my-parts", {"memeval.embedders": points})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert EMBEDDERS.load("word_hashes").__name__ == "WordHashes"
    assert EMBEDDERS.load("tfidf") is CharTfidfEmbedder
    with pytest.raises(UserError, match="embedder=openai is defined by two packages"):
        EMBEDDERS.load("openai")
    assert (
        compose_config(["embedder.name=word_hashes", "embedder.class=null"]).embedder.class_ is None
    )


def test_unknown_embedder_name_or_wrong_class_is_refused() -> None:
    with pytest.raises(UserError, match=r"'tfid'\. Did you mean: tfidf"):
        EMBEDDERS.load("tfid", None)
    with pytest.raises(UserError, match=r"is (no|not a) subclass"):
        EMBEDDERS.load("mine", "my_parts:SharedWords")


def test_models_creates_its_embedder_once() -> None:
    with ScriptedEndpoint() as server:
        config = compose_config(
            ["llm=openai", "llm.model=m", "embedder=openai"]
            + [f"{group}.base_url={server.base_url}" for group in ("llm", "embedder")]
        )

        async def work() -> bool:
            models = Models(config, "run")
            try:
                return models.embedder() is models.embedder()
            finally:
                await models.aclose()

        assert asyncio.run(work())
