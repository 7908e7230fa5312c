"""`check` through the command line: sound systems, and services that break the rules."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from command_line import Ended, memeval
from served_examples import ScriptedMemory, example, program


@pytest.fixture
def service() -> Iterator[ScriptedMemory]:
    with ScriptedMemory() as serving:
        yield serving


def check(home: Path, address: str, *words: str) -> Ended:
    served = ("system=http", f"system.base_url={address}", "system.max_retries=0")
    return memeval(home, "check", *served, *words)


def violated(done: Ended) -> dict[str, str]:
    """What was seen, by the rule that is broken."""
    lines = [line for line in done.out.splitlines() if line.startswith("violated")]
    pairs = (line.removeprefix("violated").strip().split(": ", 1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs}


def test_a_sound_service_keeps_every_rule(tmp_path: Path, service: ScriptedMemory) -> None:
    report = tmp_path / "out" / "check.xml"
    done = check(tmp_path, service.address, "--junit", str(report))
    assert done.status == 0, done.out + done.err
    assert done.out.splitlines()[0] == "ok              it finds what it was given"
    assert "http: 19 ok, 0 violated, 0 not shown, 2 not applicable" in done.out
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("21", "0", "2")


@pytest.mark.slow
def test_a_service_that_leaks_between_cases(tmp_path: Path, service: ScriptedMemory) -> None:
    memory = example()
    memory.operate("reset", {"namespace": "all"})

    def leaking(operation: str, body: dict[str, Any]) -> Any:
        return (
            {} if operation == "reset" else memory.operate(operation, body | {"namespace": "all"})
        )

    service.operate = leaking
    report = tmp_path / "check.xml"
    done = check(tmp_path, service.address, "--junit", str(report))
    broken = violated(done)
    assert done.status == 1, done.out + done.err
    assert {"a reset forgets the case before", "two cases do not mix"} <= set(broken)
    assert "which was not sent for this case" in broken["two cases do not mix"]
    cases = ElementTree.parse(report).getroot().iter("failure")
    assert any("not sent for this case" in str(case.get("message")) for case in cases)


def test_a_memory_that_finds_nothing_does_not_pass(tmp_path: Path, service: ScriptedMemory) -> None:
    service.change["search"] = lambda body, usual: {"results": [{"text": "No results found."}]}
    report = tmp_path / "check.xml"
    done = check(tmp_path, service.address, "-v", "--junit", str(report))
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("not shown       it finds what it was given: none of 20 facts was")
    assert "    asked: 'What is the ferry called?'" in lines and "      got: nothing" in lines
    assert "http: 0 ok, 0 violated, 21 not shown, 0 not applicable" in done.out
    assert ElementTree.parse(report).getroot().get("failures") == "3", "the essential ones"


def test_a_notice_instead_of_results_is_reported(tmp_path: Path, service: ScriptedMemory) -> None:
    def search(body: Any, usual: Any) -> Any:
        said = "Xyrqualbondt" in body["query"]
        return {"results": [{"text": "Ask me later!"}], "usage": []} if said else usual

    service.change["search"] = search
    broken = violated(check(tmp_path, service.address))
    assert broken["it makes nothing up"].startswith("'Ask me later!' as a memory")


def test_other_systems_are_checked_alike(tmp_path: Path) -> None:
    done = memeval(tmp_path, "check", "system=bm25")
    assert done.status == 0, done.out + done.err
    assert "bm25: 21 ok, 0 violated, 0 not shown, 0 not applicable" in done.out


def test_the_control_that_asks_nobody_breaks_no_rule(tmp_path: Path) -> None:
    done = memeval(tmp_path, "check", "system=constant")
    assert done.status == 0, done.out + done.err
    assert "it is the control without a memory" in done.out and " 0 violated" in done.out


@pytest.mark.slow
def test_a_program_is_checked(tmp_path: Path) -> None:
    command = f"system.command='{program()}'"
    done = memeval(tmp_path, "check", "system=command", command)
    assert done.status == 0, done.out + done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("system=http", "system=http needs the address of a memory service"),
        ("http", "check: 'http' is not an override"),
        ("system=bm25 --junit .", "--junit . is a folder, and must be a file"),
        (
            "system=http system.base_url=http://127.0.0.1:9",
            "the memory service at http://127.0.0.1:9 can't be reached: connection refused by "
            "127.0.0.1",
        ),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, words: str, told: str) -> None:
    done = memeval(tmp_path, "check", *shlex.split(words))
    assert (done.status, done.told) == (2, f"memeval: {told}")
