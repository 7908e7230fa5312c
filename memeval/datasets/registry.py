"""Data sets by name: the registered facts about each, and the class that reads it.

A benchmark's package has its `info.yaml` next to the adapter; the YAML in conf/dataset/ names the
adapter's class. This module only looks them up.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memeval.config.classes import is_built_in, path_of
from memeval.config.options import Registry, built_in_classes, class_path
from memeval.config.plugins import plugins
from memeval.datasets.contract import Dataset, DatasetInfo
from memeval.errors import UserError, unknown
from memeval.text.typed import convert
from memeval.text.yaml_files import load_sibling

GROUP = "dataset"
ADAPTERS = Registry(GROUP, Dataset, noun="data set")  # type: ignore[type-abstract]
adapter_class = ADAPTERS.load


def _infos() -> Iterator[DatasetInfo]:
    for path in sorted(Path(__file__).parent.glob("*/info.yaml")):
        entries = load_sibling(str(path), path.name, dict[str, dict[str, Any]])
        for name, entry in entries.items():
            if "files" in entry:
                entry["files"] = _files(path.with_name("files.tsv"), **entry["files"])

            yield convert({"name": name, **entry}, DatasetInfo)


def _files(table: Path, address: str | None = None) -> list[dict[str, Any]]:
    """The files of a folder, one per line of a table; their URLs begin with `address`."""
    files = []
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue

        name, *figures = line.split("\t")
        # A hyphen: the figure is not known.
        git_blob, size, digest = (None if figure == "-" else figure for figure in figures)
        files.append(
            {
                "name": name,
                "url": address and f"{address}{quote(name)}",
                "sha256": digest,
                "size_bytes": size and int(size),
                "git_blob": git_blob,
            }
        )

    return files


DATASETS: Mapping[str, DatasetInfo] = {info.name: info for info in _infos()}
"""memeval's own data sets."""


def dataset_info(name: str) -> DatasetInfo:
    """Registry entry of a data set, memeval's own or a package's.

    Raises `UserError` with the nearest names for an unknown name.
    """
    if name in DATASETS:
        return DATASETS[name]
    if name in plugins(GROUP):
        return info_of(name, adapter_class(name))

    listing = "all data sets:  python -m memeval data list"
    raise unknown("data set", name, {*DATASETS, *plugins(GROUP)}, listing)


def has_adapter(name: str) -> bool:
    """Whether a class reads the data set, memeval's own or a package's, so that it can be run."""
    return class_path(GROUP, name) is not None


def writable() -> list[str]:
    """The data sets that are generated or derived, and can be written as a file."""
    names = built_in_classes(GROUP)
    return [name for name in names if adapter_class(name).write is not Dataset.write]


def info_of(name: str, adapter: type[Dataset]) -> DatasetInfo:
    """Registry entry of a built-in data set; for other adapters, the `info` of the class."""
    if is_built_in(adapter):
        return dataset_info(name)

    info = getattr(adapter, "info", None)
    if not isinstance(info, DatasetInfo):
        raise UserError(
            f"data set '{name}': {path_of(adapter)} has no `info`",
            "give the class one:  info = DatasetInfo(…)",
        )

    return info
