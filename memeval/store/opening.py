"""Opens the store that a config names."""

from pathlib import Path

from memeval.config.schema import StoreConfig
from memeval.store.contract import FileStore, Say, Store
from memeval.store.memories import SharedMemories


def open_store(settings: StoreConfig, cache: Path, say: Say | None) -> Store:
    """The database at `store.url`, else files.

    Raises `UserError` if it can't be reached, `StorageError` if it accepts no connection for long.
    """
    if settings.url is None:
        return FileStore(cache)

    # Imported here, because most runs use files and need no SQLAlchemy.
    from memeval.store.postgres.database import open_database
    from memeval.store.postgres.store import PostgresStore

    return PostgresStore(open_database(settings.url, settings.patience_s, say), cache)


def open_memories(settings: StoreConfig, say: Say | None = None) -> SharedMemories | None:
    """The shared memories that a config names, if any. Raises `UserError`."""
    if settings.memories is None:
        return None

    return SharedMemories(settings.memories, settings.patience_s, say)
