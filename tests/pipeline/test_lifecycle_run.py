"""A memory's life from end to end: runs report what is known of each kind of memory."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import Command, records, without_times
from served_examples import ScriptedMemory

from memeval.datasets.locate import build
from memeval.pipeline.execute.metrics import measure_answer
from memeval.pipeline.execute.turns import CaseTurns
from memeval.records import Status
from memeval.results.rows import AnswerRow

SET = ("dataset=demo_lifecycle", "tracking=none")
HERE = Path(__file__).parent


def figures(
    memeval: Command, home: Path, *words: str, system: str = "", path: str = ""
) -> dict[str, float]:
    named = (f"system={system}",) if system else ("system=no_memory", f"system.class={path}")
    memeval(*SET, *named, *words, PYTHONPATH=str(HERE))
    newest = max(
        (home / "outputs" / "runs").glob("*/run.json"), key=lambda path: path.stat().st_mtime_ns
    )
    metrics: dict[str, float] = json.loads(newest.read_text(encoding="utf-8"))["metrics"]
    return metrics


@pytest.mark.slow
def test_no_memory_leaks_nothing_and_knows_nothing(memeval: Command, tmp_path: Path) -> None:
    found = figures(memeval, tmp_path, system="no_memory")
    assert [found[f"leak_rate/{depth}"] for depth in ("answer", "context", "probe", "store")] == [
        0.0
    ] * 4
    assert found["known_rate/context"] == found["known_rate/answer"] == 0.0
    assert found["selective_forgetting"] == 0.0


def test_a_run_with_checkpoints_is_sound(memeval: Command, tmp_path: Path) -> None:
    figures(memeval, tmp_path, "dataset.limit_cases=2", system="working_memory")
    assert ": sound" in memeval("verify").stdout


def test_a_run_of_wrong_answers_only_has_no_rates(memeval: Command, tmp_path: Path) -> None:
    words = ("dataset.limit_cases=1", "dataset.limit_questions=3")
    whole = figures(memeval, tmp_path, *words, system="no_memory")
    (folder,) = (tmp_path / "outputs" / "runs").iterdir()
    chosen = figures(memeval, tmp_path, *words, f"only=wrong:{folder.name}", system="oracle")
    assert whole["known_rate/answer"] == 0
    assert chosen["known_rate/answer"] is chosen["known_rate/context"] is None
    assert ": sound" in memeval("verify").stdout


def test_a_run_at_fewer_checkpoints_than_another_is_sound(memeval: Command, tmp_path: Path) -> None:
    """Both have the same file of answers, with the ingests up to all checkpoints."""
    every, some = (
        figures(
            memeval,
            tmp_path,
            *("dataset.limit_cases=1", f"dataset.limit_questions={count}"),
            system="bm25",
        )
        for count in ("null", 2)
    )
    assert some["latency_ms/ingest/p95"] != every["latency_ms/ingest/p95"]
    assert memeval("verify").stdout.count(": sound") == 2

    memeval("pack", "-o", str(tmp_path / "both.memeval"))
    assert "problem" not in memeval("verify", str(tmp_path / "both.memeval")).stdout


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("channel", ["conversation", "operation", "both"])
def test_oracle_leaks_nothing_and_knows_everything(
    memeval: Command, tmp_path: Path, seed: int, channel: str
) -> None:
    words = (
        f"dataset.seed={seed}",
        f"dataset.channel={channel}",
        "dataset.languages=[en,de,zh]",
        "dataset.n_cases=3",
    )
    found = figures(memeval, tmp_path, *words, system="oracle")
    rates = ("leak_rate/context", "leak_rate/probe", "stale_rate/context", "return_rate")
    assert {name: found[name] for name in rates} == dict.fromkeys(rates, 0.0)
    assert found["breach_rate"] == 0.0
    assert found["known_rate/context"] == found["selective_forgetting"] == 1.0


@pytest.mark.slow
def test_deletion_request_in_the_conversation_removes_nothing_from_bm25(
    memeval: Command, tmp_path: Path
) -> None:
    found = figures(memeval, tmp_path, "dataset.channel=conversation", system="bm25")
    assert found["leak_rate/probe"] == 1.0
    assert found["selective_forgetting"] == 0.0


@pytest.mark.slow
def test_writer_with_tools_deletes_facts_on_request(memeval: Command, tmp_path: Path) -> None:
    """The request is only made in the conversation, and the writer acts on it."""
    words = ("writer=tools", "dataset.channel=conversation", "dataset.languages=[en,de,zh]")
    found = figures(memeval, tmp_path, *words, "dataset.n_cases=3", system="bm25")
    assert found["leak_rate/probe"] < 0.5
    assert found["known_rate/context"] > 0.2


@pytest.mark.parametrize(("name", "can_forget"), [("combined", False), ("cogcanvas", True)])
def test_writer_gets_tools_to_delete_only_from_a_memory_that_can_forget(
    memeval: Command, tmp_path: Path, name: str, *, can_forget: bool
) -> None:
    words = ("writer=tools", "dataset.channel=conversation", "dataset.limit_cases=1")
    small = ("dataset.later_tokens=0", "dataset.categories=[deleted]")
    memeval(*SET, *words, *small, f"system={name}")
    (path,) = tmp_path.glob(f"data/prepared/*/{name}-*/*/memory.json")
    calls = path.read_text(encoding="utf-8").count
    assert calls("add_memory") > 0
    assert (calls("delete_memory") > 0) == can_forget


def test_core_memory_of_an_agent_is_context_of_a_reader_with_tools(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("dataset.limit_cases=1", "dataset.later_tokens=0", "dataset.categories=[current]")
    # No chunk was dropped from memgpt_lite's window, so its search finds nothing.
    found = figures(memeval, tmp_path, *words, "reader=tools", system="memgpt_lite")
    assert found["known_rate/context"] == 1.0
    assert found["accuracy"] > 0.0
    assert found["context_tokens"] > 500

    within = figures(
        memeval, tmp_path, *words, "reader=tools", "context_tokens=100", system="memgpt_lite"
    )
    assert 50 < within["context_tokens"] <= 100


def test_the_writer_reads_a_session_that_is_imported_again(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("writer=tools", "dataset.limit_cases=1", "dataset.categories=[returned]")
    memeval(*SET, *words, "system=files", "dataset.later_tokens=0")
    memories = list(tmp_path.glob("data/prepared/*/files-*/*/memory.json"))
    assert len(memories) == 3

    written = {}
    for path in memories:
        held = json.loads((path.parent / "chunks.json").read_text(encoding="utf-8"))
        assert held["chunks"] == []  # only what the model wrote
        memory = json.loads(path.read_text(encoding="utf-8"))
        sessions = (memory.get("written") or {}).get("sessions", ())
        written[memory["case_id"].partition("@")[2]] = [one["session_id"] for one in sessions]

    assert written["end"] == ["s7", "s1"]


def test_notes_of_a_continued_memory_have_ids_of_their_own(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("dataset.limit_cases=1", "dataset.categories=[returned]", "dataset.later_tokens=0")
    figures(memeval, tmp_path, *words, "writer=tools", path="forgetful:Words")

    for path in tmp_path.glob("data/prepared/*/*/*/chunks.json"):
        notes = json.loads(path.read_text(encoding="utf-8"))["chunks"]
        both = {(note["chunk_id"], note["content"]) for note in notes}
        assert len(both) == len(dict(both)) > 20


@pytest.mark.slow
def test_deleting_only_the_best_match_leaks_less_in_answers_than_in_probes(
    memeval: Command, tmp_path: Path
) -> None:
    found = figures(memeval, tmp_path, path="forgetful:FirstOnly")
    assert found["leak_rate/answer"] < found["leak_rate/probe"]


@pytest.mark.slow
def test_found_facts_count_as_stored_even_if_the_system_lists_none(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("dataset.channel=conversation", "dataset.limit_cases=1", "dataset.later_tokens=0")
    found = figures(memeval, tmp_path, *words, path="forgetful:Listing")
    assert found["leak_rate/probe"] > 0
    assert found["leak_rate/store"] == found["leak_rate/probe"]


@pytest.mark.slow
def test_deleting_whole_sessions_is_over_forgetting(memeval: Command, tmp_path: Path) -> None:
    words = ("dataset.channel=operation", "dataset.languages=[en]")
    found = figures(memeval, tmp_path, *words, path="forgetful:WholeSession")
    assert [found[f"leak_rate/{depth}"] for depth in ("answer", "context", "probe")] == [0.0] * 3
    assert found["over_forgetting"] > 0.0


@pytest.mark.slow
def test_deletion_marks_lost_in_maintenance_let_facts_return(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("dataset.channel=operation", "dataset.languages=[en]")
    found = figures(memeval, tmp_path, *words, path="forgetful:Marking")
    assert found["leak_rate/probe"] == 0.0
    assert found["return_rate"] == 1.0


@pytest.mark.slow
def test_index_shared_by_users_is_breached_unless_filtered(
    memeval: Command, tmp_path: Path
) -> None:
    assert figures(memeval, tmp_path, path="forgetful:OneIndex")["breach_rate"] > 0.0
    assert figures(memeval, tmp_path, path="forgetful:OneIndexByUser")["breach_rate"] == 0.0


SHARED = ("system.tenants=shared", "dataset.later_tokens=0")


@pytest.mark.slow
def test_built_in_systems_keep_their_users_apart(memeval: Command, tmp_path: Path) -> None:
    """One system of each family, with two users in its store."""
    systems = "bm25,rag,oracle,full_history,combined,cogcanvas,light,mem0_verbatim"
    memeval("-m", *SET, *SHARED, "dataset.limit_cases=1", "plots=false", f"system={systems}")
    runs = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "outputs" / "runs").glob("*/run.json")
    ]
    found = {run["params"]["system"]: run["metrics"] for run in runs}
    assert sorted(found) == sorted(systems.split(","))
    assert all(" tenants=shared " in run["name"] for run in runs)
    assert {metrics["breach_rate"] for metrics in found.values()} == {0.0}
    assert {metrics["known_rate/context"] > 0.5 for metrics in found.values()} == {True}
    assert found["bm25"]["operations/forget/vanished"] > 0


@pytest.mark.slow
def test_users_with_separate_instances_do_not_affect_each_other(
    memeval: Command, tmp_path: Path
) -> None:
    """Also for memories that were compressed on the way and loaded for another `top_k`."""
    cut = ("compression_turn=rolling", "retain_recent=5", "top_k=narrow,default", "plots=false")
    words = ("-m", "dataset.limit_cases=1", "dataset.later_tokens=0", "system=memgpt_lite", *cut)
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    memeval(*SET, *words, home=alone)
    memeval(*SET, *words, "system.tenants=shared", home=shared)
    assert sorted(map(answers, runs_in(alone))) == sorted(map(answers, runs_in(shared)))
    assert list(shared.glob("data/prepared/*/*/*/user-2/chunks.json"))


def runs_in(home: Path) -> list[Path]:
    return list((home / "outputs" / "runs").glob("*/records.jsonl"))


def answers(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["hypothesis"] for line in lines]


def test_a_memory_does_not_depend_on_the_checkpoints_that_are_asked(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("system=native", "compression_turn=middle", "dataset.limit_cases=1")
    shown = []
    for home, asked in ((tmp_path / "all", "null"), (tmp_path / "last", "[returned]")):
        memeval(*SET, *words, f"dataset.categories={asked}", home=home)
        rows = [row for row in records(home) if row["category"] == "returned"]
        shown.append([row["context_tokens"] for row in rows])
        assert "never fired" not in (next(home.glob("outputs/runs/*/run.json"))).read_text()

    assert len(shown[0]) == 3
    assert shown[0] == shown[1]


@pytest.mark.slow
def test_store_with_two_users_is_breached_unless_filtered(memeval: Command, tmp_path: Path) -> None:
    assert figures(memeval, tmp_path, *SHARED, path="forgetful:Words")["breach_rate"] > 0.0
    assert figures(memeval, tmp_path, *SHARED, path="forgetful:OneStoreByUser")["breach_rate"] == 0
    apart = figures(memeval, tmp_path, "dataset.later_tokens=0", path="forgetful:Words")
    assert apart["breach_rate"] == 0.0


@pytest.mark.parametrize("is_leaking", [False, True])
def test_a_service_has_a_namespace_for_each_user(
    memeval: Command, tmp_path: Path, is_leaking: bool
) -> None:
    words = ("dataset.limit_cases=1", "system.operations=[forget]")
    with ScriptedMemory() as service:
        sound = service.operate

        def of_one(operation: str, body: dict[str, Any]) -> Any:
            """Uses one namespace for all users of a case."""
            name = body["namespace"].partition("-user-")[0]
            is_further = operation == "reset" and name != body["namespace"]
            return {} if is_further else sound(operation, body | {"namespace": name})

        service.operate = of_one if is_leaking else sound
        address = f"system.base_url={service.address}"
        found = figures(memeval, tmp_path, *SHARED, *words, address, system="http")
        named = {body["namespace"].rpartition("-")[2] for body in service.sent("ingest")}

    assert named == {"1", "2"}
    assert (found["breach_rate"] > 0) == is_leaking


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("system=mem0_verbatim", "reader=tools"), "system=mem0_verbatim has one store"),
        (("dataset=demo", "system=bm25"), "dataset=demo has no second user"),
        (("system=bm25", "writer=tools"), "writer=tools only writes for one user"),
        (("system=bm25", "system.tenants=both"), "must be shared, or null, not 'both'"),
    ],
)
def test_shared_tenants_without_users_are_refused(
    memeval: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = memeval(*SET, "system.tenants=shared", *words, check=False)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("name", ["Words", "Unsaved"])
def test_system_that_cannot_forget_is_reported(memeval: Command, name: str) -> None:
    """A memory that is rebuilt for each checkpoint gets more requests, but the count is the
    same.
    """
    words = ("system=no_memory", f"system.class=forgetful:{name}")
    done = memeval(*SET, *words, PYTHONPATH=str(HERE))
    said = " ".join(done.stdout.split())
    assert "forget is not supported by this system: 20 of 20 requests" in said
    assert "deleted facts were still found when asked for directly: 100.0 %" in said


@pytest.mark.slow
def test_timeline_of_a_record_states_the_results_of_operations(
    memeval: Command, tmp_path: Path
) -> None:
    """For a memory that is continued at each checkpoint, and for one that is rebuilt there."""
    small = ("dataset.tokens=0", "dataset.later_tokens=0", "dataset.limit_cases=1")
    words = (*small, "dataset.channel=operation")
    figures(memeval, tmp_path, *words, system="bm25")
    rows = records(tmp_path)
    (outcomes,) = {
        tuple((event["kind"], event.get("done")) for event in row["timeline"] if "done" in event)
        for row in rows
    }
    assert outcomes == (("correct", "1 item"),) * 2 + (("forget", "1 item"),) * 10
    asked = [[event["kind"] for event in row["timeline"]].index("asked") for row in rows]
    # After the fourth session, the next two, and the import.
    assert sorted(set(asked)) == [16, 18, 19, 21]

    figures(memeval, tmp_path, *words, path="forgetful:Unsaved")
    (outcomes,) = {
        tuple(event.get("done") for event in row["timeline"] if event["kind"] == "forget")
        for row in records(tmp_path)
    }
    assert outcomes == ("not supported",) * 10


@pytest.mark.slow
def test_claimed_removals_are_reported_with_what_really_vanished(
    memeval: Command, tmp_path: Path
) -> None:
    found = figures(memeval, tmp_path, "dataset.limit_cases=1", path="forgetful:Lying")
    assert found["operations/forget/supported"] == 1.0
    assert found["operations/forget/items"] > 0
    assert found["operations/forget/vanished"] == 0.0
    assert found["operations/correct/supported"] == 0.0
    assert "operations/correct/items" not in found
    outcomes = {event.get("done") for row in records(tmp_path) for event in row["timeline"]}
    # True of a search that found nothing before, too, such as the oracle's.
    assert {text for text in outcomes if text and text.startswith("1 item")} == {
        "1 item, but none vanished from a search's results"
    }

    found = figures(memeval, tmp_path, "dataset.limit_cases=1", system="bm25")
    assert found["operations/forget/vanished"] > 0


@pytest.mark.slow
def test_requests_count_once_whether_or_not_a_memory_is_saved(
    memeval: Command, tmp_path: Path
) -> None:
    words = ("dataset.limit_cases=1", "dataset.tokens=0", "dataset.later_tokens=0", "plots=false")
    saved = figures(memeval, tmp_path, *words, path="forgetful:Killed")
    rebuilt = figures(memeval, tmp_path, *words, path="forgetful:Rebuilt")
    counts = [f"operations/forget/{name}" for name in ("supported", "items", "vanished", "tokens")]
    assert [rebuilt[name] for name in counts] == [saved[name] for name in counts]
    assert memeval("verify").stdout.count(": sound") == 2


@pytest.mark.slow
def test_saved_checkpoints_are_reused(memeval: Command, tmp_path: Path) -> None:
    """Each checkpoint continues the previous one, and another `top_k` ingests nothing."""
    memeval(*SET, "system=bm25")
    saved = sorted((tmp_path / "data" / "prepared").glob("*/*/*/memory.json"))
    chunks = [json.loads(path.read_text(encoding="utf-8"))["chunks"] for path in saved]
    assert len(saved) == 8
    assert sum(chunks) == 390

    before = [path.stat().st_mtime_ns for path in saved]
    memeval(*SET, "system=bm25", "top_k=narrow")
    assert [path.stat().st_mtime_ns for path in saved] == before


@pytest.mark.slow
def test_continued_memory_equals_one_built_in_one_go(memeval: Command, tmp_path: Path) -> None:
    memeval(*SET, "system=bm25")
    whole = [row for row in records(tmp_path) if row["facets"].get("after") == "import"]
    alone = tmp_path / "alone"
    ids = ",".join(row["question_id"] for row in whole)
    memeval(*SET, "system=bm25", f"dataset.question_ids=[{ids}]", home=alone)
    assert without_times(records(alone)) == without_times(whole)


@pytest.mark.slow
@pytest.mark.parametrize(("place", "built"), [("forget", 0), ("s5", 1), ("s7", 3)])
def test_killed_case_continues_at_the_last_checkpoint(
    memeval: Command, tmp_path: Path, place: str, built: int
) -> None:
    words = ("system=no_memory", "system.class=forgetful:Killed", "dataset.limit_cases=1")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    memeval(*SET, *words, home=whole, PYTHONPATH=str(HERE))

    more = {"KILLED_IN": place, "KILL_MARK": str(tmp_path / "mark"), "PYTHONPATH": str(HERE)}
    assert memeval(*SET, *words, home=killed, check=False, **more).returncode == -signal.SIGKILL
    saved = {
        path: path.stat().st_mtime_ns
        for path in (killed / "data" / "prepared").glob("*/*/*/memory.json")
    }
    assert len(saved) == built

    memeval(*SET, *words, home=killed, **more)
    assert without_times(records(killed)) == without_times(records(whole))
    assert {path: path.stat().st_mtime_ns for path in saved} == saved


@pytest.mark.slow
def test_canaries_appear_only_in_what_is_shown(memeval: Command, tmp_path: Path) -> None:
    words = ("dataset=demo", "dataset.limit_cases=2", "dataset.canaries=2")
    whole = figures(memeval, tmp_path, *words, system="full_history")
    assert whole["breach_rate"] == 1.0
    nothing = figures(memeval, tmp_path, *words, system="no_memory")
    assert nothing["breach_rate"] == nothing["obeyed_rate"] == 0.0
    assert nothing["n_questions"] == whole["n_questions"]

    obeying = figures(memeval, tmp_path, *words, path="forgetful:Obeying")
    assert (obeying["obeyed_rate"], obeying["breach_rate"]) == (1.0, 0.0)

    done = memeval(*SET, "dataset.canaries=1", check=False)
    assert done.returncode == 2
    assert "lifecycle already has values of other users" in done.stderr
    forgeteval = ("dataset=forgeteval", "dataset.path=x.json", "dataset.canaries=1")
    done = memeval(*forgeteval, check=False)
    assert done.returncode == 2
    assert "forgeteval only scores the strings in its own cases" in done.stderr


OWN = {
    "case_id": "ben",
    "sessions": [
        {"id": "march", "turns": [{"speaker": "Ben", "text": "My phone number is 0151 482913."}]},
        {"id": "april", "turns": [{"speaker": "Ben", "text": "My address is 7 Harbour Row."}]},
        {"id": "may", "turns": [{"speaker": "Ben", "text": "My cat is called Zumtar."}]},
    ],
    "operations": [
        {"kind": "forget", "after": "april", "words": "Forget it.", "about": "phone number"},
        {"kind": "reingest", "after": "may", "session": "march"},
    ],
    "questions": [
        {"question": "What is the phone number?", "answer": "0151 482913", "asked_after": "march"},
        {"question": "What is the address?", "answer": "7 Harbour Row", "category": "current"},
        *(
            {"question": "What is the phone number?", "answer": [], "forgotten": ["0151 482913"]}
            | words
            for words in ({"asked_after": "april"}, {"category": "returned"})
        ),
    ],
}


@pytest.mark.slow
def test_own_file_with_operations_is_measured(memeval: Command, tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    path.write_text(json.dumps(OWN), encoding="utf-8")
    set_ = ("dataset=json", f"dataset.path={path}", "tracking=none", "plots=false")
    done = memeval(*set_, "system=bm25")
    said = " ".join(done.stdout.split())
    assert "0 of 1 deleted facts were still found when asked for directly: 0.0 %" in said
    (run,) = (tmp_path / "outputs" / "runs").glob("*/run.json")
    found = json.loads(run.read_text(encoding="utf-8"))["metrics"]
    assert (found["return_rate"], found["leak_rate/probe"]) == (1.0, 0.0)
    assert found["selective_forgetting"] == found["known_rate/context"] == 1.0
    assert found["operations/forget/items"] == 1.0
    saved = tmp_path.glob("data/prepared/*/*/*/memory.json")
    ends = {json.loads(path.read_text(encoding="utf-8"))["case_id"] for path in saved}
    assert ends == {"ben@s1", "ben@s2", "ben@end"}


def test_a_chosen_answer_gives_the_value_of_its_choice(tmp_path: Path) -> None:
    question = {
        "question": "Where?",
        "answer": "7 Harbour Row",
        "stale": ["14 Quarry Lane"],
        "choices": ["14 Quarry Lane", "7 Harbour Row"],
    }
    path = tmp_path / "own.json"
    path.write_text(json.dumps(OWN | {"questions": [question]}), encoding="utf-8")
    dataset = build("json", Path("/nowhere"), path=str(path))
    (case,) = dataset.read()
    shares = []
    for reply in ("B", "A", "I do not know."):
        row = AnswerRow(id="ben/q0", status=Status.OK, hypothesis=reply, seen={})
        found = measure_answer(row, case.questions[0], CaseTurns.of(case), dataset).metrics
        shares.append((found["known_rate/answer"], found["stale_rate/answer"]))

    assert shares == [(1, 0), (0, 1), (0, 0)]


FORGETEVAL = [
    {
        "id": f"made_up_{number}",
        "family": "purge",
        "setup_facts": [f"{name} lives in Ostrava.", "Greta bakes."],
        "mutations": [["purge", "Tomas lives"]],
        "final_query": "Where does Tomas live?",
        "must_contain": [],
        "must_not_contain": ["LIVES in Ostrava"],
    }
    for number, name in enumerate(["Tomas", "Anton"])
]


@pytest.mark.parametrize(
    ("words", "passes", "unable"),
    [
        (("system=bm25",), 0.5, 0.0),
        (("system=no_memory", "system.class=forgetful:Words"), None, 2.0),
    ],
)
def test_forgeteval_counts_cases_that_a_system_cannot_express_separately(
    memeval: Command, tmp_path: Path, words: tuple[str, ...], passes: float | None, unable: float
) -> None:
    """Facts about Tomas are purged; facts about Anton are not."""
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps(FORGETEVAL), encoding="utf-8")
    set_ = ("dataset=forgeteval", f"dataset.path={cases}", "tracking=none")
    memeval(*set_, *words, PYTHONPATH=str(HERE))
    (run,) = (tmp_path / "outputs" / "runs").glob("*/run.json")
    found = json.loads(run.read_text(encoding="utf-8"))["metrics"]
    assert found.get("forgeteval_pass") == passes
    assert found["forgeteval_pass_not_applicable"] == unable


@pytest.mark.slow
def test_compare_accepts_a_leak_rate_as_its_metric(memeval: Command, tmp_path: Path) -> None:
    memeval("-m", *SET, "dataset.limit_cases=1", "system=bm25,oracle")
    runs = sorted((tmp_path / "outputs" / "runs").iterdir())
    done = memeval("compare", *map(str, runs), "--metric", "leak_rate/probe")
    assert "leak_rate/probe: bm25 42.9 % · oracle 0.0 %" in done.stdout
