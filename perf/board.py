"""How long a board of 200 packages of three data sets takes, how much memory, and what it weighs.

    python perf/board.py [--packages 200] [--systems 8]

Each system is run once on each data set, without a key, and packed under as many names of who hands
it over as there are packages: the board checks and compares each of them as if it were another's.
It is built twice, and must be equal byte for byte. Linux only, as `measured` is.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from measured import run_timed

DATASETS = ("demo", "demo_beam", "demo_netops")
SYSTEMS = ("bm25", "no_memory", "full_history", "files", "oracle", "rag", "random_k", "light")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--packages", type=int, default=200)
    parser.add_argument("--systems", type=int, default=len(SYSTEMS))
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as home:
        os.environ["MEMEVAL_HOME"] = home
        os.environ.pop("MEMEVAL_DATA_DIR", None)
        folder = Path(home) / "packages"
        make_packages(folder, options.packages, SYSTEMS[: options.systems])
        built = []
        for name in ("first", "second"):
            site = Path(home) / name
            timed = run_timed(["board", str(folder), "-o", str(site)], home)
            files = [path for path in sorted(site.rglob("*")) if path.is_file()]
            built.append({path.relative_to(site): path.read_bytes() for path in files})
            weight = sum(map(len, built[-1].values()))
            print(
                f"{timed.wall_s:.1f} s, {timed.cpu_s:.1f} s of CPU, {timed.peak_mb:.0f} MB; "
                f"{len(files):,} files, {weight / 1e6:.1f} MB, first page "
                f"{len(built[-1][Path('index.html')]) / 1e3:.0f} kB"
            )

    print("equal byte for byte" if built[0] == built[1] else "NOT equal")


def make_packages(folder: Path, count: int, systems: tuple[str, ...]) -> None:
    """Writes packages of a run on each data set."""
    import memeval
    from memeval.packages import pack

    folder.mkdir()
    runs = []
    for system in systems:
        words = [f"system={system}", "tracking=none", "plots=false"]
        runs.append([memeval.run(f"dataset={one}", *words, progress=False) for one in DATASETS])

    for number in range(count):
        own = runs[number % len(runs)]
        pack(own, folder / f"{number:03}.memeval", who=f"somebody {number}", licence="CC0 1.0")


if __name__ == "__main__":
    main()
