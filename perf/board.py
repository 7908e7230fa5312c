"""Time and memory to make a board of 200 packages of three data sets, and its size.

    python perf/board.py [--packages 200] [--systems 8]

Each system is run once on each data set, without a key. Its runs are packed several times, each
time under another submitter's name, so the board checks and compares each package separately. The
board is made twice, and both must be equal byte for byte. Linux only, as `measured` is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measured import parser_of, run_memeval

DATASETS = ("demo", "demo_beam", "demo_netops")
SYSTEMS = ("bm25", "no_memory", "full_history", "files", "oracle", "rag", "random_k", "light")


def main() -> None:
    options = parser_of(__doc__, packages=200, systems=len(SYSTEMS)).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["MEMEVAL_HOME"] = folder
        os.environ.pop("MEMEVAL_DATA_DIR", None)
        packages = home / "packages"
        make_packages(packages, options.packages, SYSTEMS[: options.systems])
        first = make_board(packages, home / "first", home)
        second = make_board(packages, home / "second", home)

    print("equal byte for byte" if first == second else "NOT equal")


def make_packages(folder: Path, count: int, systems: Sequence[str]) -> None:
    """Writes packages, each with one system's runs on all data sets."""
    import memeval
    from memeval.packages.write import pack

    folder.mkdir()
    runs_by_system = []
    for system in systems:
        runs = []
        for dataset in DATASETS:
            words = [f"dataset={dataset}", f"system={system}", "tracking=none", "plots=false"]
            runs.append(memeval.run(*words, progress=False))

        runs_by_system.append(runs)

    for number in range(count):
        runs = runs_by_system[number % len(systems)]
        pack(runs, folder / f"{number:03}.memeval", who=f"somebody {number}", licence="CC0 1.0")


def make_board(packages: Path, site: Path, home: Path) -> dict[Path, bytes]:
    """Makes a board, and prints its cost and size; returns its files."""
    cost = run_memeval(["board", str(packages), "-o", str(site)], str(home))
    files = {}
    for path in filter(Path.is_file, site.rglob("*")):
        files[path.relative_to(site)] = path.read_bytes()

    size = sum(map(len, files.values()))
    first_page = len(files[Path("index.html")])
    print(
        f"{cost.wall_s:.1f} s, {cost.cpu_s:.1f} s of CPU, {cost.peak_mb:.0f} MB; "
        f"{len(files):,} files, {size / 1e6:.1f} MB, first page {first_page / 1e3:.0f} kB"
    )
    return files


if __name__ == "__main__":
    main()
