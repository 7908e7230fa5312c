"""`check` through the command line: sound systems, and services that break the rules."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from command_line import Ended, memeval
from doubles.contracts import AddSearchResetDouble, LeaderboardDouble
from doubles.endpoint import ScriptedEndpoint
from doubles.rerank import RerankDouble
from served_examples import ScriptedMemory, example, program

from memeval.cli.check import EXAMPLE, OF_COMMAND


@pytest.fixture
def service() -> Iterator[ScriptedMemory]:
    with ScriptedMemory() as serving:
        yield serving


def check(home: Path, address: str, *words: str) -> Ended:
    served = ("system=http", f"system.base_url={address}", "system.max_retries=0")
    return memeval(home, "check", *served, *words)


def violated(done: Ended) -> dict[str, str]:
    """What was observed, by violated rule."""
    lines = [line for line in done.out.splitlines() if line.startswith("violated")]
    pairs = (line.removeprefix("violated").strip().split(": ", 1) for line in lines)
    return {pair[0]: pair[1] for pair in pairs}


@pytest.mark.slow
def test_sound_service_violates_no_rule(tmp_path: Path, service: ScriptedMemory) -> None:
    report = tmp_path / "out" / "check.xml"
    done = check(tmp_path, service.address, "--junit", str(report))
    assert done.status == 0, done.out + done.err
    assert done.out.splitlines()[0] == "ok              it finds what it was given"
    assert "http: 21 ok, 0 violated, 0 not shown, 4 not applicable" in done.out
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("25", "0", "4")


@pytest.mark.slow
def test_junit_on_the_standard_output_is_alone_there(
    tmp_path: Path, service: ScriptedMemory
) -> None:
    done = check(tmp_path, service.address, "--junit", "/dev/stdout")
    assert ElementTree.fromstring(done.out).get("tests") == "25"
    assert "http: 21 ok" in done.err


@pytest.mark.slow
def test_service_that_leaks_between_cases_fails(tmp_path: Path, service: ScriptedMemory) -> None:
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
    assert {"a reset forgets the previous case", "two cases do not mix"} <= set(broken)
    assert "which memeval did not send for this case" in broken["two cases do not mix"]
    cases = ElementTree.parse(report).getroot().iter("failure")
    assert any("did not send for this case" in str(case.get("message")) for case in cases)


def test_memory_that_finds_nothing_fails(tmp_path: Path, service: ScriptedMemory) -> None:
    service.change["search"] = lambda body, usual: {"results": [{"text": "No results found."}]}
    report = tmp_path / "check.xml"
    done = check(tmp_path, service.address, "-v", "--junit", str(report))
    assert done.status == 1
    lines = done.out.splitlines()
    assert lines[0].startswith("not shown       it finds what it was given: none of 20 facts was")
    assert "    asked: 'What is the ferry called?'" in lines and "      got: nothing" in lines
    assert "http: 0 ok, 0 violated, 25 not shown, 0 not applicable" in done.out
    assert ElementTree.parse(report).getroot().get("failures") == "3", "the essential ones"


def test_a_memory_that_always_fails_is_reported_once(
    tmp_path: Path, service: ScriptedMemory
) -> None:
    service.change["ingest"] = lambda body, usual: {"lost": "all"}
    done = check(tmp_path, service.address)
    assert done.status == 1
    assert list(violated(done)) == ["it finds what it was given"], done.out
    assert "http: 0 ok, 1 violated, 24 not shown, 0 not applicable" in done.out


@pytest.mark.parametrize(
    ("words", "best"),
    [
        (("system=cogcanvas", "system.context_budget=1"), "artifact"),
        (("system=bm25", "context_tokens=1"), "text"),
    ],
)
def test_budget_too_small_for_any_chunk_is_not_a_failed_search(
    tmp_path: Path, words: tuple[str, str], best: str
) -> None:
    done = memeval(tmp_path, "check", *words)
    assert done.status == 1
    first, second, *_ = done.out.splitlines()
    assert first.endswith(
        f"it finds what it was given: the best {best} is larger than {words[1]}, so none was shown"
    )
    assert second == "not shown       it makes nothing up: no fact was found"


def test_check_uses_the_prompt_top_k_and_reranker_of_the_run(
    tmp_path: Path, service: ScriptedMemory
) -> None:
    asked: set[int] = set()

    def search(body: Any, usual: Any) -> Any:
        asked.add(body["top_k"])
        return {"results": []}

    service.change["search"] = search
    assert check(tmp_path, service.address, "top_k=33").status == 1
    assert asked == {33}

    with ScriptedEndpoint() as endpoint, RerankDouble() as reranker:
        done = memeval(
            tmp_path,
            *("check", "system=rag", "prompt=cot", "reranker=endpoint", "reranker.model=m"),
            *(f"reranker.base_url={reranker.base_url}", f"llm.base_url={endpoint.base_url}"),
            *("llm=openai", "llm.model=m", "llm.api_key_env=MY_KEY"),
            MY_KEY="sk-of-this-test",
        )

    assert "rag: " in done.out, done.err
    assert reranker.requests and endpoint.requests
    assert all("think step by step" in str(body) for _, body in endpoint.requests)


def test_check_ingests_with_the_model_of_that_role(tmp_path: Path) -> None:
    with ScriptedEndpoint() as endpoint:
        done = memeval(
            tmp_path,
            *("check", "system=cogcanvas", f"llm.base_url={endpoint.base_url}", "llm=openai"),
            *("llm.model=reads", "llm.ingest.model=extracts", "llm.api_key_env=MY_KEY"),
            MY_KEY="sk-of-this-test",
        )

    assert "cogcanvas: " in done.out, done.err
    assert {body["model"] for _, body in endpoint.requests} == {"reads", "extracts"}


@pytest.mark.slow
def test_a_notice_instead_of_results_is_reported(tmp_path: Path, service: ScriptedMemory) -> None:
    def search(body: Any, usual: Any) -> Any:
        said = "Xyrqualbondt" in body["query"]
        texts = ("Ilse is a person.", "Ask me later!")
        results = [{"text": text} for text in texts]
        return {"results": results, "usage": []} if said else usual

    service.change["search"] = search
    broken = violated(check(tmp_path, service.address))
    assert broken["it makes nothing up"].startswith("'Ask me later!' as a memory")


@pytest.mark.slow
@pytest.mark.parametrize("contract", ["aml", "add_search_reset"])
def test_contract_is_detected_from_the_url_alone(tmp_path: Path, contract: str) -> None:
    doubles = {"aml": LeaderboardDouble, "add_search_reset": AddSearchResetDouble}
    with doubles[contract]("sk-of-this-test") as service:
        words = (service.address, "system.api_key_env=MY_KEY")
        done = memeval(tmp_path, "check", *words, MY_KEY="sk-of-this-test")

    assert done.status == 0, done.out + done.err
    proposed, _, outcomes = done.out.partition("\n\n")
    assert yaml.safe_load(proposed) == {
        "defaults": ["http", "_self_"],
        "base_url": service.address,
        "api_key_env": "MY_KEY",
        "contract": contract,
        "name": "my_memory",
    }
    assert outcomes.startswith("ok              it finds what it was given")
    assert "sk-of-this-test" not in done.out + done.err


def test_url_without_a_known_protocol_is_one_error(tmp_path: Path) -> None:
    with RerankDouble() as service:
        done = memeval(tmp_path, "check", service.address)

    assert (done.status, done.out) == (2, "")
    assert (
        done.message
        == f"memeval: {service.address} did not reply properly in any protocol that check knows"
    )
    assert [line.split(":")[0].strip() for line in done.err.splitlines()[1:]] == [
        "memeval",
        "aml",
        "add_search_reset",
        "mcp",
    ]


@pytest.mark.slow
def test_builtin_system_passes(tmp_path: Path) -> None:
    done = memeval(tmp_path, "check", "system=bm25")
    assert done.status == 0, done.out + done.err
    assert "bm25: 24 ok, 0 violated, 0 not shown, 1 not applicable" in done.out


def test_constant_control_violates_no_rule(tmp_path: Path) -> None:
    done = memeval(tmp_path, "check", "system=constant")
    assert done.status == 0, done.out + done.err
    assert "it is the control without a memory" in done.out and " 0 violated" in done.out


# Uses only the standard library, because it is started some fifty times.
NOTES = """
import json, os, sys
from pathlib import Path

file = Path(os.environ.get("NOTES_FILE", "notes.jsonl"))
SCHEMAS = {
    "add_note": {"type": "object", "properties": {"text": {"type": "string"}}},
    "search_notes": {"type": "object", "properties": {"query": {"type": "string"}}},
    "list_notes": {"type": "object", "properties": {}},
}


def called(name, text="", query=""):
    if name == "add_note":
        with file.open("a") as lines:
            lines.write(json.dumps(text) + "\\n")
        return "kept"
    notes = [json.loads(line) for line in file.open()] if file.exists() else []
    return json.dumps({"notes": [note for note in notes if query.lower() in note.lower()]})


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    of = asked.get("params", {})
    if asked["method"] == "initialize":
        reply = {"protocolVersion": of["protocolVersion"], "capabilities": {"tools": {}}}
        reply["serverInfo"] = {"name": "notes", "version": "1"}
    elif asked["method"] == "tools/list":
        reply = {"tools": [{"name": name, "inputSchema": SCHEMAS[name]} for name in SCHEMAS]}
    else:
        said = called(of["name"], **(of.get("arguments") or {}))
        reply = {"content": [{"type": "text", "text": said}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": reply}), flush=True)
"""


def test_mcp_server_is_checked_from_its_command_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text(NOTES, encoding="utf-8")
    done = memeval(tmp_path, "check", "--", sys.executable, "notes.py")
    assert done.status == 0, done.out + done.err
    for line in ("store_tool: add_note", "search_tool: search_notes", "dump_tool: list_notes"):
        assert line in done.out, done.out
    assert "NOTES_FILE" in done.out and " 0 violated" in done.out, done.out


@pytest.mark.slow
def test_command_system_is_checked(tmp_path: Path) -> None:
    command = f"system.command='{program()}'"
    done = memeval(tmp_path, "check", "system=command", command)
    assert done.status == 0, done.out + done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("system=http", "system=http needs the URL of a memory service"),
        ("http", "check: 'http' is not an override"),
        ("--", "check: no command after --"),
        ("http://a http://b", "check takes one URL, or one command after --"),
        ("http://a system=bm25", "check takes one URL, or one command after --"),
        ("-- no-such-program-here", "system.command: the program 'no-such-program-here' is not"),
        ("system=bm25 budget.calls=1", "check ignores budgets"),
        ("system=bm25 --junit .", "--junit . must be a file, but is a folder"),
        (
            "http://127.0.0.1:9",
            "the memory service at http://127.0.0.1:9 can't be reached: connection refused by "
            "127.0.0.1",
        ),
        (
            "system=http system.base_url=http://127.0.0.1:9",
            "the memory service at http://127.0.0.1:9 can't be reached: connection refused by "
            "127.0.0.1",
        ),
    ],
)
def test_invalid_arguments_are_reported_on_one_line(
    tmp_path: Path, words: str, message: str
) -> None:
    done = memeval(tmp_path, "check", *shlex.split(words))
    assert (done.status, done.message.startswith(f"memeval: {message}")) == (2, True), done.err


def test_word_that_is_not_an_override_gets_examples_of_all_forms(tmp_path: Path) -> None:
    done = memeval(tmp_path, "check", "python", "my_server.py")
    assert "check: 'python' is not an override" in done.err
    assert EXAMPLE in done.err and OF_COMMAND in done.err


def test_lag_measures_the_time_from_write_to_read(tmp_path: Path, service: ScriptedMemory) -> None:
    done = check(tmp_path, service.address, "--lag", "2")
    assert done.status == 0, done.out + done.err
    assert done.out.splitlines()[0] == "ferry           found after 0.00 s, 1 search"
    assert "http: 2 of 2 facts found; lag from write to read: median 0.00 s" in done.out

    service.change["search"] = lambda body, usual: {"results": []}
    done = check(tmp_path, service.address, "--lag", "1", "system.ready_timeout_s=0.05")
    assert done.status == 1
    assert "not found within 0.05 s" in done.out and "0 of 1 facts found" in done.out

    for words, said in (
        (("--lag", "0"), "--lag takes 1 to 20 facts, not 0"),
        (("--lag", "1", "--junit", str(tmp_path / "f.xml")), "--lag checks none"),
    ):
        done = check(tmp_path, service.address, *words)
        assert done.status == 2 and said in done.err
