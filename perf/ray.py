"""How throughput grows with the workers of a Ray cluster on this machine when calls wait for a
slow endpoint: one run of many small cases, of which each worker has several open at once.

    python perf/ray.py [--workers 1 2 4] [--latency 1.0] [--cases 8] [--number 160] [overrides ...]

Calls per second are those between the first call and the last, as the endpoint counts them. The
time of the whole process includes the start of the cluster. The endpoint runs in a separate
process.
"""

from __future__ import annotations

import tempfile

from measured import parser_of, run_memeval, serve, stats_of

RUN = (
    "-m",
    "dataset=synthetic",
    "dataset.tokens=600",
    "dataset.questions_per_case=1",
    "system=bm25",
    "llm=openai",
    "llm.max_concurrency=256",
    "judge=llm",
    "tracking=none",
    "plots=false",
    "hydra/launcher=ray",
)


def main() -> None:
    parser = parser_of(__doc__, latency=1.0, cases=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--number", type=int, default=160, help="cases of the run")
    options, overrides = parser.parse_known_args()

    rate_of_one = None
    for workers in options.workers:
        words = [
            *RUN,
            f"dataset.n_cases={options.number}",
            f"hydra.launcher.workers={workers}",
            f"hydra.launcher.cases={options.cases}",
            *overrides,
        ]
        with serve(options.latency) as url, tempfile.TemporaryDirectory() as home:
            cost = run_memeval([*words, f"llm.base_url={url}"], home)
            stats = stats_of(url)

        rate = stats["requests"] / stats["seconds"]
        rate_of_one = rate_of_one or rate / workers
        share_of_ideal = rate * options.latency / (workers * options.cases)
        print(
            f"{workers} workers: {stats['requests']} calls in {stats['seconds']:.1f} s, "
            f"{rate:.1f} per second, {rate / rate_of_one / workers:.2f} of {workers} x one worker; "
            f"{share_of_ideal:.2f} of the ideal; peak {stats['peak']}; "
            f"whole process {cost.wall_s:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
