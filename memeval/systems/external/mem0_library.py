"""The installed mem0ai library: its active parts, and a new memory."""

import os
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from memeval.errors import UserError
from memeval.process import started
from memeval.process.environment import set_environment


def has_entities() -> bool:
    """Whether mem0's entity search is on: spaCy and its English model are installed."""
    return find_spec("spacy") is not None and find_spec("en_core_web_sm") is not None


@cache
def has_keywords() -> bool:
    """Whether mem0's keyword search is on: fastembed is installed, and loads its model."""
    try:
        import_module("fastembed").SparseTextEmbedding(model_name="Qdrant/bm25")
    except Exception:  # noqa: BLE001 - mem0 also goes on without it
        return False

    return True


def describe_search() -> str:
    """Description of the mem0 searches that are active here."""
    # mem0 silently leaves out a search whose library is not installed.
    searches = ["vectors"]
    missing = []
    for name, library, installed in (
        ("keywords", "fastembed and its model Qdrant/bm25", has_keywords()),
        ("entities", "spaCy with en_core_web_sm", has_entities()),
    ):
        if installed:
            searches.append(name)
        else:
            missing.append(f"{name} (needs {library})")

    running = f"by {' and '.join(searches)}"
    if missing:
        running += f"; not installed: {', '.join(missing)}"

    return running


def check_graph() -> None:
    """Raises `UserError`: no release of mem0ai that memeval works with has a graph memory."""
    raise UserError(
        "system.graph_memory=true needs the graph memory of mem0, but mem0ai "
        f"{version('mem0ai')} does not have it",
        "leave system.graph_memory out",
    )


def prepare_import() -> None:
    """Silences mem0, and keeps it out of the user's home, before it is imported."""
    set_environment()
    # On import, mem0 writes an id of the user into this folder.
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = str(started.make_folder("mem0", guarded=False))


def new_memory(model: object, width: int) -> Any:
    """A mem0 memory in RAM, which calls the `vectors_of` and `reply_to` of `model`."""
    prepare_import()
    from mem0 import Memory  # type: ignore[import-untyped]

    from memeval.systems.external.mem0_plugs import SLOT, plug_in

    plug_in(entities=has_entities())
    store = {"path": ":memory:", "embedding_model_dims": width, "collection_name": "memeval"}
    memory = Memory.from_config(
        {
            "embedder": {"provider": SLOT, "config": {"model": model, "embedding_dims": width}},
            "llm": {"provider": SLOT, "config": {"model": model}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": ":memory:",
        }
    )
    if not has_keywords():
        # mem0 sets this itself, after a warning.
        memory.vector_store._bm25_encoder = False

    return memory
