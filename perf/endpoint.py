"""How close the engine comes to the ideal: LoCoMo's questions against an endpoint on loopback where
each call takes 200 ms.

    MEMEVAL_DATA_DIR=... python perf/endpoint.py [--latency 0.2] [--concurrency 64] [overrides ...]

The ideal is calls x latency / connections. Printed as multiples of it: the time from the first call
to the last verdict, and that of the whole process. Also printed: our own CPU time per call, peak
memory, and the cost of the finished run when it is started again. The endpoint runs in a separate
process.
"""

from __future__ import annotations

import tempfile

from measured import parser_of, ratio_lines, run_memeval, serve, stats_of


def main() -> None:
    options, overrides = parser_of(__doc__, latency=0.2, concurrency=64).parse_known_args()
    with serve(options.latency) as url, tempfile.TemporaryDirectory() as home:
        words = [
            "dataset=locomo",
            "system=bm25",
            "llm=openai",
            "judge=llm",
            f"llm.base_url={url}",
            f"llm.max_concurrency={options.concurrency}",
            *overrides,
        ]
        first = run_memeval(words, home)
        stats = stats_of(url)
        again = run_memeval(words, home)

    cpu_ms = first.cpu_s / stats["requests"] * 1e3
    print(
        *ratio_lines(stats, options.latency, options.concurrency, first.wall_s),
        f"CPU, children included      {first.cpu_s:6.2f} s  {cpu_ms:5.2f} ms per call",
        f"peak memory                 {first.peak_mb:6.0f} MB",
        f"the finished run again      {again.wall_s:6.2f} s  {again.cpu_s:5.2f} s CPU",
        sep="\n",
    )


if __name__ == "__main__":
    main()
