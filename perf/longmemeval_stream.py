"""Memory and time of a run over files in LongMemEval's schema, of up to a gigabyte. Neither memory
nor the time per gigabyte may depend on the size of the file.

    python perf/longmemeval_stream.py [--gigabytes 0.25 0.5 1] [--folder /tmp] [overrides ...]

Writes generated files (50 sessions of 10 turns per item; most sessions are shared between items, as
in the real files), runs `system=bm25` over each by the command line, and prints items, seconds, CPU
seconds per gigabyte and peak memory. The exit status is 1 if the peak reaches 1 GB, or if the
largest file takes 1.3 times as much CPU per gigabyte as the smallest. The files and all that the
runs store are removed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any

from measured import parser_of, run_memeval

SESSIONS, TURNS, SENTENCES, WORDS = 50, 10, 12, 15
POOL = 2_000
"""Number of sessions that items share."""
TYPES = (
    "single-session-user single-session-assistant single-session-preference multi-session "
    "temporal-reasoning knowledge-update"
).split()
FREQUENCIES = list(accumulate(1 / rank for rank in range(1, 20_001)))
"""Cumulative frequencies of the words, by Zipf's law."""
GIGABYTE = 10**9
START = datetime(2023, 1, 1, 9, 0)
DATE = "%Y/%m/%d (%a) %H:%M"


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.25, 0.5, 1.0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options, overrides = parser.parse_known_args()

    paces, peaks = [], []
    for gigabytes in sorted(options.gigabytes):
        with tempfile.TemporaryDirectory(dir=options.folder) as home:
            path = Path(home) / "longmemeval.json"
            items = write_items(path, round(gigabytes * GIGABYTE))
            size = path.stat().st_size / GIGABYTE
            words = ["system=bm25", "dataset=longmemeval_m", f"dataset.path={path}"]
            cost = run_memeval([*words, "tracking=none", *overrides], home)

        paces.append(cost.cpu_s / size)
        peaks.append(cost.peak_mb * 2**20)
        print(
            f"{size:5.2f} GB, {items:5d} items: {cost.wall_s:6.1f} s, "
            f"{paces[-1]:6.1f} s of CPU per GB, peak {cost.peak_mb:5.0f} MiB",
            flush=True,
        )

    return int(max(peaks) >= GIGABYTE or paces[-1] >= 1.3 * paces[0])


def write_items(path: Path, size: int) -> int:
    """Writes whole items of at least `size` bytes in all; returns their number."""
    writer = ItemWriter()
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write("[")
        while file.tell() < size:
            if count:
                file.write(",")

            file.write(writer.item(count))
            count += 1

        file.write("]\n")

    return count


class ItemWriter:
    """Generates items, the same ones each time."""

    def __init__(self) -> None:
        self._rng = random.Random(7)
        self._words = [self._word() for _ in FREQUENCIES]
        self._pool = [json.dumps(self._turns()) for _ in range(POOL)]

    def item(self, number: int) -> str:
        """One item as JSON: sessions of the pool, and one of its own with a flagged turn."""
        thing = self._words[-1 - number % len(self._words)]
        own = self._turns()
        statement = f"By the way, my {thing} is called {thing.title()} now. {own[0]['content']}"
        own[0] |= {"content": statement, "has_answer": True}

        picked = self._rng.sample(range(POOL), SESSIONS - 1)
        sessions = list(map(self._pool.__getitem__, picked))
        ids = list(map("pool_{}".format, picked))
        index = self._rng.randrange(SESSIONS)
        sessions.insert(index, json.dumps(own))
        ids.insert(index, f"answer_{number}")
        head = {
            "question_id": f"item_{number}",
            "question_type": TYPES[number % len(TYPES)],
            "question": f"What is my {thing} called?",
            "answer": thing.title(),
            "question_date": format(START + timedelta(days=60), DATE),
            "haystack_session_ids": ids,
            "haystack_dates": list(session_dates()),
            "answer_session_ids": [f"answer_{number}"],
        }
        return f'{json.dumps(head)[:-1]}, "haystack_sessions": [{", ".join(sessions)}]}}'

    def _word(self) -> str:
        letters = self._rng.randint(2, 10)
        return "".join(self._rng.choices("abcdefghijklmnoprstuvwyz", k=letters))

    def _turns(self) -> list[dict[str, Any]]:
        turns = []
        for number in range(TURNS):
            role = "assistant" if number % 2 else "user"
            content = " ".join(self._sentence() for _ in range(SENTENCES))
            turns.append({"role": role, "content": content})

        return turns

    def _sentence(self) -> str:
        words = self._rng.choices(self._words, cum_weights=FREQUENCIES, k=WORDS)
        return f"{' '.join(words).capitalize()}."


def session_dates() -> Iterator[str]:
    for number in range(SESSIONS):
        yield format(START + timedelta(hours=13 * number), DATE)


if __name__ == "__main__":
    sys.exit(main())
