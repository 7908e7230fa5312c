"""The installed mem0ai library: the parts of it that run, and a new memory."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memeval.errors import UserError
from memeval.process import started

if TYPE_CHECKING:
    from memeval.systems.external.mem0_bridge import Mem0Bridge


QUIET = {
    "MEM0_TELEMETRY": "False",
    "ORT_DISABLE_TELEMETRY": "1",
    "ANONYMIZED_TELEMETRY": "False",
    "HF_HUB_OFFLINE": "1",
}
"""Set before mem0 is imported, unless the user has set them: it sends telemetry by default."""


def has_entities() -> bool:
    """Whether mem0's entity search is on: spaCy and its English model are installed."""
    return find_spec("spacy") is not None and find_spec("en_core_web_sm") is not None


def has_keywords() -> bool:
    """Whether mem0's keyword search is on: fastembed is installed."""
    return find_spec("fastembed") is not None


def describe_search() -> str:
    """Which of mem0's three searches run here."""
    # mem0 silently leaves out a search whose library is not installed.
    searches = ["vectors"]
    missing = []
    for name, library, installed in (
        ("keywords", "fastembed", has_keywords()),
        ("entities", "spaCy with en_core_web_sm", has_entities()),
    ):
        if installed:
            searches.append(name)
        else:
            missing.append(f"{name} (needs {library})")

    running = f"by {' and '.join(searches)}"
    return f"{running}; not installed: {', '.join(missing)}" if missing else running


def check_graph() -> None:
    """Raises `UserError`: no release of mem0ai that memeval works with has a graph memory."""
    try:
        release = version("mem0ai")
    except PackageNotFoundError:
        release = "of this machine"

    raise UserError(
        "system.graph_memory=true needs the graph memory of mem0, but mem0ai "
        f"{release} does not have it",
        "leave system.graph_memory out",
    )


def prepare_import() -> None:
    """Makes mem0 quiet, and keeps it out of the user's home, before it is imported."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)

    # mem0 writes an identity of the user when it is imported.
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = str(started.make_folder("mem0", guarded=False))


def new_memory(bridge: Mem0Bridge, width: int) -> Any:
    """A mem0 memory whose store is held in RAM."""
    prepare_import()
    from mem0 import Memory  # type: ignore[import-untyped]

    from memeval.systems.external.mem0_plugs import SLOT, plug_in

    plug_in(entities=has_entities())
    store = {"path": ":memory:", "embedding_model_dims": width, "collection_name": "memeval"}
    memory = Memory.from_config(
        {
            "embedder": {"provider": SLOT, "config": {"model": bridge, "embedding_dims": width}},
            "llm": {"provider": SLOT, "config": {"model": bridge}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": ":memory:",
        }
    )
    if not has_keywords():
        # mem0 sets this itself, after a warning.
        memory.vector_store._bm25_encoder = False

    return memory
