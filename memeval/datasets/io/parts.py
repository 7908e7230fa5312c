"""The files of a data set that is a folder, each as a data set of one file."""

from __future__ import annotations

from dataclasses import replace

from memeval.datasets.contract import DatasetInfo, FileInfo


def part_info(info: DatasetInfo, file: FileInfo) -> DatasetInfo:
    """What is known of one file of a folder: name, licence and citation are those of the whole."""
    return replace(
        info,
        file=f"{info.file}/{file.name}",
        url=file.url,
        sha256=file.sha256,
        git_blob=file.git_blob,
        size_bytes=file.size_bytes,
        counts={},
        variants={},
        files=(),
        excerpts=(),
    )
