"""Odd replies through the command line: each becomes a status or is requested again, is reported,
and spoils no later run.
"""

from __future__ import annotations

import itertools
import json
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import HURRIED, Command, environment, records, summary
from doubles.endpoint import Faults, ScriptedEndpoint
from doubles.faults import VECTOR_FAULTS
from forking import run_command_line

FEW = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=3", "tracking=none")
CHAT = "/chat/completions"


def model(endpoint: ScriptedEndpoint, *more: str) -> tuple[str, ...]:
    judged = () if any(word.startswith("judge=") for word in more) else ("judge=keyword",)
    return (*FEW, "llm=openai", f"llm.base_url={endpoint.base_url}", *judged, *more)


def usage_of(value: Any) -> Any:
    def edit(payload: dict[str, Any]) -> None:
        payload["usage"] = value

    return edit


def finish_of(reason: Any, content: Any = "7 May") -> Any:
    def edit(payload: dict[str, Any]) -> None:
        payload["choices"][0]["finish_reason"] = reason
        payload["choices"][0]["message"]["content"] = content

    return edit


@pytest.mark.slow
@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 7, "completion_tokens": "7"},
        {"prompt_tokens": -7, "completion_tokens": True},
        {"prompt_tokens": 7, "completion_tokens": int("9" * 400)},
        {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": "none"},
    ],
    ids=["text", "negative", "digits", "details"],
)
def test_invalid_usage_ends_no_run_and_is_noted_once(
    memeval: Command, tmp_path: Path, usage: Any
) -> None:
    with ScriptedEndpoint(edit=usage_of(usage)) as endpoint:
        done = memeval(*model(endpoint))
        again = memeval(*model(endpoint))
    assert "Traceback" not in done.stderr + again.stderr
    assert {row["status"] for row in records(tmp_path)} == {"ok"}
    notes = [note["text"] for note in summary(tmp_path)["notes"]]
    assert sum("not a token count" in note for note in notes) == 1


@pytest.mark.slow
def test_invalid_cache_entry_is_requested_again_and_overwritten(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint() as endpoint:
        memeval(*model(endpoint))
        caches = list((tmp_path / "home").rglob("responses.sqlite")) or list(
            tmp_path.rglob("responses.sqlite")
        )
        with sqlite3.connect(caches[0]) as connection:
            (count,) = connection.execute("SELECT COUNT(*) FROM entries").fetchone()
            entry = {"text": "x", "usage": {"prompt_tokens": "7"}, "latency_s": 0.1, "wait_s": 0.0}
            connection.execute("UPDATE entries SET value = ?", (json.dumps(entry).encode(),))
        connection.close()
        before = endpoint.count(CHAT)
        memeval(*model(endpoint, "judge=exact_match", "prompt.choose_tokens=11"))
        assert endpoint.count(CHAT) == before + count
        memeval(*model(endpoint, "judge=exact_match", "prompt.choose_tokens=12"))
        assert endpoint.count(CHAT) == before + count, "what came instead was written over it"
    assert {row["status"] for row in records(tmp_path)} == {"ok"}


@pytest.mark.slow
def test_cut_answers_do_not_make_a_ranking_partial(memeval: Command, tmp_path: Path) -> None:
    reasons = itertools.chain(["length"], itertools.repeat("stop"))

    def cut_the_first(payload: dict[str, Any]) -> None:
        finish_of(next(reasons))(payload)

    with ScriptedEndpoint(edit=cut_the_first) as endpoint:
        memeval(*model(endpoint), check=False)
    assert {row["status"] for row in records(tmp_path)} == {"ok", "answer_cut"}
    assert "ranks_part" not in summary(tmp_path)["tags"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reason", "content", "status"),
    [
        ("length", "7 May", "answer_cut"),
        ("MAX_TOKENS", "7 May", "answer_cut"),
        ("length", "<think>and then", "answer_cut"),
        ("content_filter", "7 May", "answer_filtered"),
        ("content_filter", None, "answer_filtered"),
    ],
)
def test_cut_or_filtered_answer_has_no_score(
    memeval: Command, tmp_path: Path, reason: str, content: str | None, status: str
) -> None:
    with ScriptedEndpoint(edit=finish_of(reason, content)) as endpoint:
        memeval(*model(endpoint), check=False)
        asked = endpoint.count(CHAT)
        endpoint.edit = None
        memeval(*model(endpoint), check=False)
        again = endpoint.count(CHAT) - asked
    rows = records(tmp_path)
    if status == "answer_cut":
        assert again == 0, "the same limit would cut it again"
        assert {row["status"] for row in rows} == {"answer_cut"}
        assert all(row["verdict"] is None and row["metrics"] == {} and row["error"] for row in rows)
        assert {row["hypothesis"] for row in rows} == ({"7 May"} if content == "7 May" else {None})
        assert summary(tmp_path)["metrics"]["coverage"] == 0.0
        assert summary(tmp_path)["metrics"]["token_f1"] is None
    else:
        assert again == asked == len(rows), "a filter may let it through the next time"
        assert {row["status"] for row in rows} == {"ok"}


def test_thinking_is_kept_in_the_row_and_noted(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(lambda body: "<think>May or June?</think>7 May\0 2023\u2028") as endpoint:
        memeval(*model(endpoint))
    rows = records(tmp_path)
    assert {row["hypothesis"] for row in rows} == {"7 May 2023"}
    assert all(row["raw"].startswith("<think>May or June?</think>7 May 2023") for row in rows)
    notes = [note["text"] for note in summary(tmp_path)["notes"]]
    assert sum("thinking" in note for note in notes) == 1
    assert sum("control characters" in note for note in notes) == 1


def retrieved(endpoint: ScriptedEndpoint, home: Path) -> list[Any]:
    """The chunks that a run retrieves with this endpoint's vectors."""
    vectors = ("embedder=openai", f"embedder.base_url={endpoint.base_url}")
    done = run_command_line(
        [*FEW, "system=dense", *vectors], env=environment(home), constants=HURRIED
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [row["retrieved"] for row in records(home)]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The chunks retrieved if all vectors are sound."""
    with ScriptedEndpoint() as endpoint:
        return retrieved(endpoint, tmp_path_factory.mktemp("sound"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", VECTOR_FAULTS)
def test_unsound_vectors_are_requested_again_and_never_stored(
    sound: list[Any], tmp_path: Path, kind: str
) -> None:
    # The first reply determines the model's width, so it must be sound.
    with ScriptedEndpoint(faults=Faults({kind: 0.5}, seed=1)) as endpoint:
        assert retrieved(endpoint, tmp_path) == sound
        assert endpoint.faulted[kind] > 0


@pytest.mark.slow
def test_an_outage_is_shown_and_costs_no_question(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(faults=Faults(outage=(1, 12))) as endpoint:
        done = memeval(*model(endpoint, "llm.patience_s=60"), constants=HURRIED)
    assert {row["status"] for row in records(tmp_path)} == {"ok"}
    assert f"waiting for {endpoint.base_url}: HTTP 503" in done.stderr


@pytest.mark.slow
def test_unreachable_endpoint_is_reported_without_waiting(memeval: Command, tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    address = f"http://127.0.0.1:{port}/v1"
    done = memeval(*FEW, "llm=openai", f"llm.base_url={address}", check=False)
    assert done.returncode == 2
    assert f"memeval: llm.base_url={address}: connection refused by 127.0.0.1" in done.stderr
    assert "waiting for" not in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.glob("outputs/runs/*/run.json"))


def test_dripping_reply_ends_with_its_timeout(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(faults=Faults({"dripping": 1.0}, hang_s=60.0)) as endpoint:
        patience = ("llm.timeout_s=0.5", "llm.patience_s=1")
        memeval(*model(endpoint, *patience), check=False, constants=HURRIED)
    assert all("no whole reply within 0.5 s" in row["error"] for row in records(tmp_path))


@pytest.mark.slow
def test_max_retries_still_works_with_a_deprecation_warning(memeval: Command) -> None:
    with ScriptedEndpoint(faults=Faults({"server_error": 1.0})) as endpoint:
        once = model(endpoint, "llm.max_retries=0")
        done = memeval(*once, check=False, constants=HURRIED)
        assert endpoint.count(CHAT) == 3
    assert "llm.max_retries is deprecated" in done.stderr
    assert "llm.patience_s" in done.stderr


def test_own_metrics_of_an_earlier_repeat_are_reported_and_sound(
    memeval: Command, tmp_path: Path
) -> None:
    """No reply of the last repeat can be read, so that it has no accuracy by position."""

    def reply(body: Any) -> str:
        return "(a)" if body.get("seed") == 0 else "no idea"

    with ScriptedEndpoint(reply) as endpoint:
        words = (*model(endpoint), "judge=accuracy", "dataset=demo_personamem", "num_runs=2")
        memeval(*words, "min_coverage=0")
        assert endpoint.requests[-1][1]["seed"] == 1

    assert "accuracy_at_position/0" in summary(tmp_path)["protocol_metrics"]
    assert ": sound" in memeval("verify").stdout
