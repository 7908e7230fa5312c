"""Registry entry of BEAM."""

from __future__ import annotations

from importlib.resources import files

from memeval.datasets.contract import DatasetInfo, FileInfo

# Of 11 November 2025. Later commits change the scorer, and state another licence.
COMMIT = "b2a3ee8ba12d68f83143dda191097dc3e028ddd3"
_ADDRESS = f"https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/{COMMIT}/"
_UNKNOWN = "-"


def _files() -> tuple[FileInfo, ...]:
    """The chats and questions of `files.tsv`."""
    table = files(__package__).joinpath("files.tsv").read_text(encoding="utf-8")
    return tuple(_file(*line.split("\t")) for line in table.splitlines() if line[0] != "#")


def _file(name: str, git_blob: str, size: str, sha256: str) -> FileInfo:
    return FileInfo(
        name=name,
        url=_ADDRESS + name,
        sha256=None if sha256 == _UNKNOWN else sha256,
        size_bytes=None if size == _UNKNOWN else int(size),
        git_blob=git_blob,
    )


BEAM = DatasetInfo(
    name="beam",
    title="BEAM: 100 chats of 100 thousand to 10 million tokens, 20 questions about each",
    file="beam",
    url=None,
    sha256=None,
    size_bytes=None,
    licence="CC BY-SA 4.0, as its card on Hugging Face says; the files' own commit states none",
    citation=(
        "Tavakoli et al., Beyond a Million Tokens: Benchmarking and Enhancing Long-Term Memory in "
        "LLMs, ICLR 2026, arXiv 2510.27246"
    ),
    counts={"cases": 100, "questions": 2_000},
    files=_files(),
)

INFOS = (BEAM,)
