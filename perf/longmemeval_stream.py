"""Memory and time of a run over files in LongMemEval's schema, up to a gigabyte: memory must not
depend on a file's size, nor the pace.

    python perf/longmemeval_stream.py [--gigabytes 0.25 0.5 1] [--folder /tmp] [overrides ...]

Writes invented files (50 sessions of 10 turns an item, most of them shared between items, as in the
real ones), runs `system=bm25` over each by the real command line, and prints items, seconds,
processor seconds per gigabyte and peak memory. Exit status 1 if the peak reaches 1 GB, or where
the largest file takes 1.3 times as much of the processor per gigabyte as the smallest. The files
and all that the runs store are removed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

SESSIONS, TURNS, SENTENCES, WORDS = 50, 10, 12, 15
POOL = 2_000
"""Sessions that histories share."""
TYPES = (
    "single-session-user single-session-assistant single-session-preference multi-session "
    "temporal-reasoning knowledge-update"
).split()
SHARES = list(accumulate(1 / rank for rank in range(1, 20_001)))
"""How often words occur, by Zipf's law, added up."""
GIGABYTE = 10**9
START = datetime(2023, 1, 1, 9, 0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options, overrides = parser.parse_known_args()
    paces, peaks = [], []
    for gigabytes in sorted(options.gigabytes):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder) / "longmemeval.json"
            items = write(path, round(gigabytes * GIGABYTE))
            size = path.stat().st_size / GIGABYTE
            seconds, busy, peak = run(path, Path(folder), overrides)
        pace = f"{busy / size:6.1f} s of the processor per GB"
        print(
            f"{size:5.2f} GB, {items:5d} items: {seconds:6.1f} s, {pace}, "
            f"peak {peak / 2**20:5.0f} MiB",
            flush=True,
        )
        paces.append(busy / size)
        peaks.append(peak)
    return 0 if max(peaks) < GIGABYTE and paces[-1] < 1.3 * paces[0] else 1


def write(path: Path, size: int) -> int:
    """Writes whole items of at least `size` bytes in all; returns how many."""
    draw = random.Random(7)
    words = [
        "".join(draw.choices("abcdefghijklmnoprstuvwyz", k=draw.randint(2, 10)))
        for _ in range(len(SHARES))
    ]
    pool = [json.dumps(list(turns(draw, words))) for _ in range(POOL)]
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < size:
            file.write(("," if count else "") + item(draw, words, pool, count))
            count += 1
        file.write("]\n")
    return count


def turns(draw: random.Random, words: list[str]) -> Iterator[dict[str, Any]]:
    for number in range(TURNS):
        yield {
            "role": "assistant" if number % 2 else "user",
            "content": " ".join(sentence(draw, words) for _ in range(SENTENCES)),
        }


def sentence(draw: random.Random, words: list[str]) -> str:
    return f"{' '.join(draw.choices(words, cum_weights=SHARES, k=WORDS)).capitalize()}."


def item(draw: random.Random, words: list[str], pool: list[str], number: int) -> str:
    """One item as JSON: sessions of the pool, and one with a flagged turn."""
    kind, thing = TYPES[number % len(TYPES)], words[-1 - number % len(words)]
    own = list(turns(draw, words))
    own[0] |= {
        "content": f"By the way, my {thing} is called {thing.title()} now. {own[0]['content']}",
        "has_answer": True,
    }
    picked = draw.sample(range(len(pool)), SESSIONS - 1)
    sessions, ids = [pool[index] for index in picked], [f"pool_{index}" for index in picked]
    place = draw.randrange(SESSIONS)
    sessions.insert(place, json.dumps(own))
    ids.insert(place, f"answer_{number}")
    dates = [f"{START + timedelta(hours=13 * day):%Y/%m/%d (%a) %H:%M}" for day in range(SESSIONS)]
    head = {
        "question_id": f"item_{number}",
        "question_type": kind,
        "question": f"What is my {thing} called?",
        "answer": thing.title(),
        "question_date": f"{START + timedelta(days=60):%Y/%m/%d (%a) %H:%M}",
        "haystack_session_ids": ids,
        "haystack_dates": dates,
        "answer_session_ids": [f"answer_{number}"],
    }
    return f'{json.dumps(head)[:-1]}, "haystack_sessions": [{", ".join(sessions)}]}}'


def run(path: Path, home: Path, overrides: list[str]) -> tuple[float, float, int]:
    """Seconds, processor seconds and peak memory in bytes of a run's process."""
    command = [
        sys.executable,
        "-m",
        "memeval",
        "system=bm25",
        "dataset=longmemeval_m",
        f"dataset.path={path}",
        "tracking=none",
        *overrides,
    ]
    started = time.perf_counter()
    process = subprocess.Popen(
        command,
        env={**os.environ, "MEMEVAL_HOME": str(home)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(said)
    return time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
