"""A model reads and writes with the tools of an HTTP memory, which YAML declares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import SMALL, completed, memeval, records, runs
from served_examples import TOOLS, ToolService


@pytest.fixture
def service() -> Iterator[ToolService]:
    with ToolService() as serving:
        yield serving


def option(folder: Path, service: ToolService, **settings: Any) -> tuple[str, ...]:
    """Writes a config option for the service's tools; returns the words that select it."""
    path = folder / "conf" / "system" / "tooled.yaml"
    path.parent.mkdir(parents=True)
    given = {"defaults": ["http", "_self_"], "name": "tooled", "base_url": service.address}
    path.write_text(yaml.safe_dump(given | {"tools": TOOLS, **settings}), encoding="utf-8")
    return "--config-dir", str(path.parents[1]), "system=tooled"


def test_model_reads_and_writes_with_tools(tmp_path: Path, service: ToolService) -> None:
    words = (*option(tmp_path, service, dump_path="/dump"), "reader=tools", "writer=tools", *SMALL)
    completed(tmp_path, *words)
    rows = records(tmp_path)
    assert {row["status"] for row in rows} == {"ok"}
    assert {call["name"] for row in rows for call in row["steps"][0]["calls"]} == {"find"}
    assert any(call["turn_ids"] for row in rows for call in row["steps"][0]["calls"])
    assert service.sent("tools/note") and not service.sent("ingest")
    (run,) = runs(tmp_path)
    assert run["metrics"]["writes"] == len(service.sent("tools/note"))
    assert run["metrics"]["write_recall"] > 0
    # One case uses one memory, which the run tells to forget at its end.
    assert len({sent["namespace"] for sent in service.sent("tools/find")}) == 1


@pytest.mark.slow
def test_without_a_writing_tool_ingest_is_used(tmp_path: Path, service: ToolService) -> None:
    words = option(tmp_path, service, tools=TOOLS[:1])
    completed(tmp_path, *words, "reader=tools", "writer=tools", *SMALL)
    assert {row["status"] for row in records(tmp_path)} == {"ok"}
    assert service.sent("ingest") and not service.sent("tools/note")


@pytest.mark.slow
def test_plan_makes_no_request(tmp_path: Path, service: ToolService) -> None:
    words = (*option(tmp_path, service), "reader=tools", "writer=tools", *SMALL)
    completed(tmp_path, "plan", *words)
    assert not service.requests


@pytest.mark.slow
def test_reader_without_a_reading_tool_is_refused(tmp_path: Path, service: ToolService) -> None:
    ended = memeval(tmp_path, *option(tmp_path, service, tools=TOOLS[1:]), "reader=tools", *SMALL)
    assert ended.status == 2
    assert "reader=tools: all system.tools change the memory" in ended.message


@pytest.mark.slow
def test_check_tries_the_tools(tmp_path: Path, service: ToolService) -> None:
    done = completed(tmp_path, "check", *option(tmp_path, service))
    assert "ok              its tools find what they wrote" in done.out
