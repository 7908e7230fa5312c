"""Long parametrized tables, of which `make test` runs a part: `@pytest.mark.sampled(kept=3)`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest


def leave_out(items: Iterable[pytest.Item]) -> None:
    """Marks all cases of a sampled test as slow, except `kept` of them, evenly spread over the
    table.
    """
    tables: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None:
            function = item.nodeid.partition("[")[0]
            tables[function, sampled.kwargs["kept"]].append(item)

    for (_, kept), cases in tables.items():
        step = max(1, len(cases) // kept)
        chosen = range(0, step * kept, step)
        for index, case in enumerate(cases):
            if index not in chosen:
                case.add_marker(pytest.mark.slow)
