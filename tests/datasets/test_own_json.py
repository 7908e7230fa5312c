"""`dataset=json`: what is read from a user's own file, how mistakes are named, and its schema."""

from __future__ import annotations

import copy
import json
import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from memeval.cli.data import data
from memeval.datasets.contract import Dataset
from memeval.datasets.json import reader
from memeval.datasets.json.operations import OPERATIONS as KINDS
from memeval.datasets.locate import build
from memeval.errors import UserError
from memeval.records import CorrectRequest, EvalCase, ForgetRequest, Scope, Traces
from memeval.runs.compose.config import compose_config
from memeval.testing import DatasetContract
from memeval.text.shipped import location_of

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "data" / "demo" / "own.json"
DOCS = ROOT / "docs" / "datasets"


def case(**changes: Any) -> dict[str, Any]:
    """A valid case with two sessions, three turns and a question."""
    plain: dict[str, Any] = {
        "case_id": "north",
        "sessions": [
            {
                "id": "a",
                "time": "2024-03-01",
                "turns": [{"id": "t", "speaker": "Ida", "text": "x"}, turn()],
            },
            {"time": "2024-03-02T08:00", "turns": [turn()]},
        ],
        "questions": [{"id": "q1", "question": "What is down?", "answer": "port 7"}],
    }
    return plain | changes


def turn(**changes: Any) -> dict[str, Any]:
    return {"speaker": "Bo", "text": "y"} | changes


def one_session(**changes: Any) -> dict[str, Any]:
    return case(sessions=[{"turns": [turn()]} | changes])


def asked(**changes: Any) -> dict[str, Any]:
    return case(questions=[{"id": "q1", "question": "What is down?", "answer": "port 7"} | changes])


FORGET = {"kind": "forget", "after": "a", "words": "Forget it.", "about": "it", "values": ["z"]}
OPERATIONS = [
    FORGET,
    {"kind": "forget", "after": 0, "words": "Forget me.", "scope": "user", "meta": 1},
    {"kind": "correct", "after": 1, "words": "Not x, but z.", "old": "x", "new": "z"},
    {"kind": "consolidate", "after": 1},
    {"kind": "reingest", "after": 1, "session": "a"},
]


def living(**changes: Any) -> dict[str, Any]:
    """A case with a forget operation, changed as given."""
    return case(operations=[FORGET | changes])


def write(folder: Path, content: Any, name: str = "own.json") -> Path:
    path = folder / name
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(raw)
    return path


def opened(path: Path, **settings: Any) -> Dataset:
    dataset = build("json", Path("/nowhere"), path=str(path), **settings)
    dataset.open()
    return dataset


def read(path: Path, **settings: Any) -> list[EvalCase]:
    return list(opened(path, **settings).cases())


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


class TestOwnJson(DatasetContract):
    examples = 40
    counts: ClassVar = {"cases": 2, "sessions": 5, "turns": 12, "questions": 8}
    first = ("lindqvist/model", "Which router does Maj Lindqvist have?")
    last = ("oduya/name", "What is the technician's name?")

    def build(self, **given: Any) -> Dataset:
        return build("json", Path("/nowhere"), **{"path": str(DEMO), **given})

    def raw(self) -> Sequence[Any]:
        records: list[Any] = json.loads(DEMO.read_bytes())["cases"]
        return records


def test_small_file_is_read_completely(tmp_path: Path) -> None:
    questions = [
        {"question": "What?", "answer": ["x", 1], "evidence": ["t", 2], "category": "own name"},
        {"id": 7, "question": "Who?", "answer": [], "time": "2024-04-01"},
        {"question": "Which?", "answer": "b", "choices": ["a", "b"], "meta": {"any": 1}},
    ]
    (found,) = read(write(tmp_path, case(questions=questions)))
    assert [
        (session.session_id, session.started_at, [turn.turn_id for turn in session.turns])
        for session in found.sessions
    ] == [
        ("s1", datetime(2024, 3, 1), ["t0", "t1"]),
        ("s2", datetime(2024, 3, 2, 8), ["t2"]),
    ]
    assert [
        (one.question_id, one.category, one.gold, one.evidence, one.answerable, one.right_choices)
        for one in found.questions
    ] == [
        ("north/q0", "own name", ("x", "1"), ("t0", "t2"), True, ()),
        ("north/7", "general", (), (), False, ()),
        ("north/q2", "general", ("b",), (), True, (1,)),
    ]
    assert found.questions[1].asked_at == datetime(2024, 4, 1)


def test_operations_and_lifecycle_fields_are_read(tmp_path: Path) -> None:
    questions = [
        {"question": "What?", "answer": "x", "stale": ["w"], "asked_after": "a"},
        {"question": "Who?", "answer": [], "forgotten": ["z"], "evidence": ["t"]},
        {"question": "Which?", "answer": "x", "category": "neighbour", "status": "rejected"},
    ]
    (found,) = read(write(tmp_path, case(operations=OPERATIONS, questions=questions)))
    assert [(one.kind, one.after) for one in found.operations] == [
        ("forget", "s1"),
        ("forget", "s1"),
        ("correct", "s2"),
        ("consolidate", "s2"),
        ("reingest", "s2"),
    ]
    assert found.operations[0].forget == ForgetRequest(words="Forget it.", about="it")
    assert found.operations[0].values == ("z",)
    everything = ForgetRequest(words="Forget me.", about="", scope=Scope.USER)
    assert found.operations[1].forget == everything
    corrected = CorrectRequest(words="Not x, but z.", old="x", new="z")
    assert found.operations[2].correct == corrected
    assert found.operations[4].session_id == "s1"
    assert found.checkpoints == ("s1",)
    updated, gone = found.questions
    assert (updated.asked_after, gone.asked_after) == ("s1", None)
    assert updated.traces == Traces(kind="updated", right=("x",), older=("w",))
    # The text of the cited turn is searched for as well, but does not count as evidence.
    assert gone.traces == Traces(kind="deleted", deleted=("z",), probes=("z", "x"))
    assert gone.evidence == ()

    # An operation or a lifecycle field has values searched for; without either, nothing is.
    (operated,) = read(write(tmp_path, living()))
    assert operated.questions[0].traces == Traces(kind="current", right=("port 7",))
    (plain,) = read(write(tmp_path, asked(stale=["w"])))
    assert (plain.questions[0].traces, plain.checkpoints) == (None, ())


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ([case(), case(case_id="south")], "my_file"),
        ({"name": "Help desk: 2024", "cases": [case(), case(case_id=2)]}, "Help desk_ 2024"),
        (lines(case(), case(case_id=2)), "my_file"),
        (b"\xef\xbb\xbf" + lines({"name": "desk"}, case(), case(case_id=2)), "desk"),
    ],
)
def test_every_file_form_is_read_with_its_name(tmp_path: Path, content: Any, name: str) -> None:
    path = write(tmp_path, content, "my_file.json")
    dataset = build("json", Path("/nowhere"), path=str(path))
    assert dataset.open().name == name
    assert [found.case_id for found in dataset.cases()] in (["north", "south"], ["north", "2"])


def test_file_named_like_a_builtin_data_set_gets_another_name(tmp_path: Path) -> None:
    path = write(tmp_path, [case()], "locomo.json")
    assert build("json", Path("/nowhere"), path=str(path)).open().name == "own locomo"


def test_json_lines_are_read_one_case_at_a_time(tmp_path: Path) -> None:
    path = write(tmp_path, lines(case(), case(case_id="south")), "own.jsonl")
    dataset = build("json", Path("/nowhere"), path=str(path))
    cases = dataset.cases()
    assert next(cases).case_id == "north"
    # Lines after the first case are not read yet, so damage the second one now.
    path.write_bytes(lines(case(), {"case_id": "south"}))
    with pytest.raises(UserError, match="line 2 'south': field 'sessions' is missing"):
        list(dataset.cases())


def test_table_is_named_with_the_command_that_imports_it(tmp_path: Path) -> None:
    table = tmp_path / "my turns.csv"
    table.write_text("speaker,text\nIda,hello\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"turns\.csv is not a file of dataset=json") as refused:
        read(table)

    command = f"python -m memeval data import '{table}' --into FILE.json"
    assert refused.value.hints == (f"make one:  {command}",)


def test_missing_file_is_not_called_one_to_import(tmp_path: Path) -> None:
    for name in ("mine.jsn", "turns.csv"):
        with pytest.raises(UserError, match=f"{name} can't be read: No such file or directory"):
            data(["check", str(tmp_path / name)])


def test_duplicate_field_is_refused(tmp_path: Path) -> None:
    line = json.dumps(case()).replace('"question":', '"question": "Who?", "question":')
    with pytest.raises(UserError, match="an object has a duplicate field 'question'"):
        read(write(tmp_path, f"[{line}]".encode()))
    with pytest.raises(
        UserError, match="line 2: is not JSON: an object has a duplicate field 'question'"
    ):
        content = f'{{"name": "x"}}\n{line}\n'.encode()
        read(write(tmp_path, content, "own.jsonl"))


def test_an_answer_may_be_a_number_of_any_length(tmp_path: Path) -> None:
    long = int(f"1{'0' * 400}")
    (read_case,) = read(write(tmp_path, [asked(answer=long)]))
    assert read_case.questions[0].gold == (str(long),)


def test_categories_are_chosen_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, [asked(category="alert"), asked(category=5) | {"case_id": "south"}])
    assert [found.case_id for found in read(path, categories=(5,))] == ["south"]
    with pytest.raises(UserError, match=r"dataset.categories 'alerts'. Did you mean: alert"):
        read(path, categories=("alerts",))


def test_drafted_questions_are_asked_on_request_and_rejected_ones_never(tmp_path: Path) -> None:
    statuses = [None, "drafted", "accepted", "rejected"]
    questions = [{"question": "Who?", "answer": "x", "status": status} for status in statuses]
    path = write(tmp_path, case(questions=questions))
    for status, asked_now in (("reviewed", ["q0", "q2"]), ("all", ["q0", "q1", "q2"])):
        (found,) = read(path, status=status)
        assert [one.question_id for one in found.questions] == [f"north/{q}" for q in asked_now]
        dataset = build("json", Path("/nowhere"), path=str(path), status=status)
        assert dataset.open().drafted == (status == "all")

    path = write(tmp_path, case(questions=questions[1:2] + questions[3:]))
    with pytest.raises(UserError, match=r"unreviewed drafts \(1\)"):
        read(path)

    path = write(tmp_path, case(questions=questions[3:]))
    for status in ("reviewed", "all"):
        with pytest.raises(UserError, match=r"all questions were rejected \(1\)"):
            read(path, status=status)


def test_a_case_without_a_question_to_ask_is_left_out_and_does_not_count(tmp_path: Path) -> None:
    draft = {"question": "Who?", "answer": "x", "status": "drafted"}
    cases = [
        case(case_id="unasked", questions=[]),
        case(case_id="drafts", questions=[draft]),
        case(case_id="asked"),
        case(case_id="last"),
    ]
    path = write(tmp_path, cases)
    assert [found.case_id for found in read(path)] == ["asked", "last"]
    assert [found.case_id for found in read(path, limit_cases=1)] == ["asked"]
    assert [found.case_id for found in read(path, limit_cases=1, status="all")] == ["drafts"]


@pytest.mark.parametrize("name", ["own.json", "own.jsonl"])
def test_a_file_that_changes_after_it_was_opened_is_refused(tmp_path: Path, name: str) -> None:
    cases = [case(), case(case_id="south", meta="x" * 20_000), case(case_id="west")]
    content = lines(*cases) if name == "own.jsonl" else cases
    path = write(tmp_path, content, name)
    dataset = opened(path)
    assert [found.case_id for found in dataset.cases()] == ["north", "south", "west"]

    other = write(tmp_path, lines(*cases, case(case_id="east")), "other")
    reading = dataset.cases()
    next(reading)
    if name == "own.jsonl":
        path.write_bytes(other.read_bytes())
        with pytest.raises(UserError, match="was changed while this command used it"):
            list(reading)
    else:
        # As an editor saves: a reader that has the old file open reads it to the end.
        other.replace(path)
        assert [found.case_id for found in reading] == ["south", "west"]

    with pytest.raises(UserError, match="was changed while this command used it"):
        list(dataset.cases())


FAULTY = {
    "a field": (asked(evidense=["t"]), "field 'evidense' is not in the schema (did you mean"),
    "another field": (case(zebra=1), "'zebra' is not in the schema (the fields are case_id"),
    "no answer": (asked(answer=None), "field 'answer' is missing; if a refusal is right"),
    "evidence": (asked(evidence=["c12"]), "evidence 'c12' is not a turn of the case"),
    "past the end": (asked(evidence=[3]), "evidence '3' is not a turn of the case"),
    "not a turn": (
        asked(evidence=[None]),
        "field 'evidence[0]' is null, not a string or an integer",
    ),
    "no sessions": (case(sessions=[]), "line 1 'north': field 'sessions' is empty"),
    "no turns": (one_session(turns=[]), "session 0: field 'turns' is empty"),
    "no speaker": (one_session(turns=[{"text": "x"}]), "turn 0: field 'speaker' is missing"),
    "no text": (one_session(turns=[turn(text=" ")]), "session 0, turn 0: field 'text' is empty"),
    "two names": (
        one_session(turns=[turn(content="x")]),
        "turn 0: field 'content' is an alias of 'text': use only one",
    ),
    "not an object": (one_session(turns=["x"]), "turn 0: is a string, not an object"),
    "a turn twice": (
        one_session(turns=[turn(id="a"), turn(id="a")]),
        "session 0, turn 1: turn id 'a' is already in line 1 'north', session 0, turn 0",
    ),
    "day first": (
        one_session(time="8/5/2024"),
        "field 'time' is '8/5/2024', not a time like 2024-05",
    ),
    "dots": (one_session(time="08.05.2024"), "field 'time' is '08.05.2024', not a time"),
    "in words": (one_session(time="May 8, 2024"), "field 'time' is 'May 8, 2024', not a time"),
    "seconds": (one_session(time=1715176560), "field 'time' is '1715176560', not a time"),
    "no such day": (one_session(time="2024-02-30"), "is '2024-02-30', not a time like"),
    "backwards": (
        one_session(time="2024-03-02", turns=[turn(time="2024-03-01")]),
        "session 0, turn 0: field 'time' is before that of its session or of an earlier turn in it",
    ),
    "an earlier session": (
        case(
            sessions=[
                {"turns": [turn()]},
                {"time": "2024-03-02", "turns": [turn()]},
                {"turns": [turn(time="2024-03-01")]},
            ]
        ),
        "session 2, turn 0: field 'time' is before that of an earlier session",
    ),
    "zones": (
        one_session(time="2024-03-02T00:00Z", turns=[turn(time="2024-03-03")]),
        "some times have a zone and others do not",
    ),
    "a case twice": ([case(), case()], "case 2 'north': case_id 'north' is already in case 1"),
    "a question twice": (
        case(questions=[{"id": "q", "question": "x", "answer": "y"}] * 2),
        "question id 'north/q' is already in line 1 'north'",
    ),
    "a status": (asked(status="done"), "field 'status' is 'done', not one of drafted, accepted"),
    "a review": (
        asked(reviews=[{"reviewer": "Ida", "decision": "drafted", "seconds": -1}]),
        "question 'q1', review 0: field 'decision' is 'drafted', not one of accepted, rejected",
    ),
    "a review's day": (
        asked(reviews=[{"reviewer": "Ida", "decision": "accepted", "at": "2024-02-30"}]),
        "question 'q1', review 0: field 'at' is '2024-02-30'",
    ),
    "no kind": (living(kind="delete"), "operation 0: field 'kind' is 'delete', not one of forget"),
    "of another kind": (living(old="x"), "operation 0: field 'old' is not in the schema"),
    "about nothing": (living(about=None), "operation 0: field 'about' is missing"),
    "a scope": (living(scope="all"), "field 'scope' is 'all', not one of fact, subject, user"),
    "a scope and a line end": (living(scope="fact\n"), "not one of fact, subject, user"),
    "after nothing": (living(after=None), "operation 0: field 'after' is null"),
    "no session": (living(after="z"), "field 'after' is 'z', which is not a session of the case"),
    "a later one": (
        case(operations=[{"kind": "reingest", "after": "a", "session": 1}]),
        "operation 0: field 'session' comes after the session in 'after'",
    ),
    "too early": (
        asked(asked_after="a", evidence=[2]),
        "question 'q1': field 'evidence' comes after the session in 'asked_after'",
    ),
    "not forgotten": (asked(forgotten=["x"]), "field 'forgotten' needs an empty list as 'answer'"),
    "a line": (lines(case()) + b"{", "line 2: is not JSON"),
    "a line twice": (lines(case(), case()), "line 2 'north': case_id 'north' is already in line 1"),
}
BEYOND_SCHEMA = {
    "evidence",
    "past the end",
    "a turn twice",
    "no such day",
    "a review's day",
    "backwards",
    "an earlier session",
    "zones",
    "a case twice",
    "a question twice",
    "no session",
    "a later one",
    "too early",
    "not forgotten",
}
"""Mistakes that a JSON Schema can't express."""


def test_folder_without_frozen_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        read(tmp_path)

    assert refused.value.message == f"{tmp_path} is a folder without frozen.json"
    # As a pipe of the shell, which can be read only once: `<(...)`.
    with pytest.raises(UserError, match="/dev/null is not a file"):
        read(Path("/dev/null"))


@pytest.mark.parametrize("name", FAULTY)
def test_a_mistake_is_named_with_its_place(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, message = FAULTY[name]
    path = write(tmp_path, content)
    with pytest.raises(UserError) as refused:
        read(path)

    assert "own.json" in refused.value.message and message in refused.value.message
    assert data(["check", str(path)]) == 2
    assert message in capsys.readouterr().out


def test_invalid_stale_value_is_one_mistake(tmp_path: Path) -> None:
    content = asked(stale=[""]) | {"operations": [FORGET]}
    with pytest.raises(UserError) as refused:
        read(write(tmp_path, content))

    place = "own.json: line 1 'north', question 'q1'"
    assert refused.value.message.endswith(f"{place}: field 'stale[0]' is empty.")


ACCEPTED = (
    case(),
    [case(), case(case_id=3)],
    {"name": None, "cases": [case()], "meta": 1},
    asked(answer=[], time="2024-04-01T10:00:30.5"),
    asked(answer=None, golds=[1.5, "x"]),
    asked(category="größer als-1.x", evidence=[0, "t"]),
    asked(answer=["a", "b"], choices=["a", "b", "c"], multi_select=True),
    one_session(time="2024-03-01T08:00+02:00", turns=[turn(time="2024-03-01 07:00:00Z")]),
    one_session(id=1, time=None, meta=None),
    case(operations=OPERATIONS),
    asked(answer=[], forgotten=["port 7"], asked_after="a"),
    {
        "id": 4,
        "sessions": [{"messages": [{"role": "user", "content": "x", "timestamp": None}]}],
        "questions": [{"question": "Which?", "answer": "x"}],
    },
)


@pytest.mark.slow
def test_json_schema_agrees_with_the_reader(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DOCS / "json.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    documents = [json.loads(DEMO.read_bytes()), *ACCEPTED]
    for document in documents:
        assert validator.is_valid(document), document
        assert read(write(tmp_path, document))

    for name, (content, _) in FAULTY.items():
        if not isinstance(content, bytes):
            assert validator.is_valid(content) == (name in BEYOND_SCHEMA), name

    # Every place of a valid case, with a value of every other kind.
    differing = []
    review = {"reviewer": "Ida", "decision": "accepted", "at": "2024-03-02", "seconds": 4.5}
    drafted = {"stale": ["port 6"], "status": "accepted", "reviews": [review | {"reason": "x"}]}
    words = {"category": "c", "evidence": ["t"], "choices": ["port 7", "b"], **drafted}
    lived = asked(answer=[], forgotten=["y"], asked_after=1) | {"operations": OPERATIONS}
    for document in (*mutations(asked(**words)), *mutations(lived)):
        try:
            read(write(tmp_path, document))
            reads = True
        except UserError as error:
            beyond = (
                "is not a turn",
                "not one of the choices",
                "several choices",
                "needs a right one",
                "is before that",
                "not a session of the case",
                "after the session",
                "needs an empty list",
            )
            if any(words in str(error.message) for words in beyond):
                continue

            reads = "contains no questions" in error.message

        if reads != validator.is_valid(document):
            differing.append((reads, document))

    assert differing == []


def mutations(document: dict[str, Any]) -> list[Any]:
    """Copies of the document, each with one value replaced or removed."""
    found: list[Any] = []
    for path in places(document):
        for value in (None, True, 3, -1, 1.5, "", " ", "word", [], {}, ["x"], [None], "2024-01-01"):
            changed = copy.deepcopy(document)
            inner(changed, path[:-1])[path[-1]] = value
            found.append(changed)

        changed = copy.deepcopy(document)
        del inner(changed, path[:-1])[path[-1]]
        found.append(changed)

    return found


def places(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return []

    found = []
    for key, inside in items:
        found += [(*before, key), *places(inside, (*before, key))]

    return found


def inner(value: Any, path: Sequence[Any]) -> Any:
    for key in path:
        value = value[key]

    return value


def test_check_summarizes_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert data(["check", str(DEMO)]) == 0
    output = capsys.readouterr().out
    assert "own.json: 2 cases, 5 sessions, 12 turns, 8 questions\n  name: helpdesk" in output
    assert "categories: fact 3, unknown 2, cause 1, order 1, update 1" in output
    assert "the right answer is a refusal: 2 questions" in output

    empty = write(tmp_path, case(questions=[]))
    assert data(["check", str(empty)]) == 0
    assert "no questions yet: a run needs at least one\nwrite or draft" in capsys.readouterr().out
    with pytest.raises(UserError, match="contains no questions") as refused:
        read(empty)

    assert refused.value.hints == (f"draft some:  python -m memeval data draft {empty} --n 20",)


@pytest.mark.parametrize(
    "name", ["my file", "Gespräche", "a=b", "a,b", "[b]", "it's", "a (2)", "$x"]
)
def test_printed_commands_work_for_every_file_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"{name}.json"
    path.write_bytes(DEMO.read_bytes())
    assert data(["check", str(path)]) == 0
    assert data(["freeze", str(path), "--version", "1", "--into", str(tmp_path / name)]) == 0

    commands = re.findall("run it: (.*)", capsys.readouterr().out)
    for command, file in zip(commands, (path, tmp_path / name), strict=True):
        assert compose_config(shlex.split(command)[3:]).dataset["path"] == str(file)


def test_check_says_which_questions_a_run_does_not_ask(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own, draft, rejected = (
        {"question": "Who?", "answer": "x", "status": status}
        for status in (None, "drafted", "rejected")
    )
    path = write(tmp_path, case(questions=[own, draft, rejected]))
    assert data(["check", str(path)]) == 0
    checked = capsys.readouterr().out
    assert "by a run: 1 draft\n  not asked by a run: 1 rejected question\n" in checked
    assert "run it:" in checked

    path = write(tmp_path, case(questions=[draft, rejected]))
    assert data(["check", str(path)]) == 0
    assert "run it" not in (checked := capsys.readouterr().out)
    assert f"review them:  python -m memeval data review {path}" in checked


def test_check_lists_all_mistakes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = [{"id": f"q{n}", "question": "x", "answer": "y", "evidence": ["z"]} for n in range(30)]
    assert data(["check", str(write(tmp_path, case(questions=bad)))]) == 2
    output = capsys.readouterr().out
    assert output.count("evidence 'z' is not a turn") == 30
    page = location_of("docs/datasets/json.md")
    assert f"own.json: 30 mistakes; the schema is in {page}" in output


def test_documentation_names_every_field_and_its_examples_are_read(tmp_path: Path) -> None:
    page = (DOCS / "json.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for example in examples:
        (found,) = read(write(tmp_path, example.encode()))
        assert (len(found.sessions), len(found.questions)) == (2, 3)

    assert len(examples) == 2
    for kind, entry in KINDS.items():
        assert all(f"`{name}`" in page for name in (kind, *entry.__struct_fields__))

    for entry in (reader.OwnCase, reader.SessionEntry, reader.TurnEntry):
        assert all(f"`{name}`" in page for name in entry.__struct_fields__)

    schema = json.loads((DOCS / "json.schema.json").read_text(encoding="utf-8"))["$defs"]
    entries = {
        "case": reader.OwnCase,
        "session": reader.SessionEntry,
        "turn": reader.TurnEntry,
        "question": reader.ReviewedQuestion,
    }
    for name, entry in entries.items():
        assert set(schema[name]["properties"]) == {*entry.__struct_fields__, *entry.aliases}
        assert all(f"`{name}`" in page for name in entry.aliases)


def written_as_people_do() -> dict[str, Any]:
    """A case like `case` with a tool message, under the field names of chat formats."""
    messages = [
        {"role": "user", "content": "Which port?", "timestamp": "2024-03-01T08:00Z"},
        {"role": "tool", "content": "port 7 is down"},
        {"role": "assistant", "content": "Port 7."},
    ]
    asked_at = "2024-03-02T08:00Z"
    question = {"question": "What is down?", "answer": "port 7", "evidence": [1]}
    return {
        "id": "north",
        "sessions": [{"messages": messages}],
        "questions": [question | {"timestamp": asked_at}],
    }


def test_aliases_of_fields_are_read_and_noted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, written_as_people_do())
    (found,) = read(path)
    (session,) = found.sessions
    assert [turn.speaker for turn in session.turns] == ["user", "tool", "assistant"]
    assert found.questions[0].asked_at == datetime(2024, 3, 2, 8)

    said = (
        "fields: took 'content' for 'text' (3 times), 'id' for 'case_id' (1 time), "
        "'messages' for 'turns' (1 time), 'role' for 'speaker' (3 times), "
        "'timestamp' for 'time' (2 times)"
    )
    assert build("json", Path("/nowhere"), path=str(path)).open().notes == (said,)
    assert data(["check", str(path)]) == 0
    assert capsys.readouterr().out.count(said) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"content": "x", "role": "a", "text": "y"}, "'content' is an alias of 'text': use"),
        ({"role": "a", "content": 5}, "turn 0: field 'content' is an integer, not a string"),
        ({"rol": "a", "content": "x"}, "field 'rol' is not in the schema (did you mean"),
        ({"role": "a"}, "turn 0: field 'text' is missing"),
        ({"role": "a", "content": "x", "timestamp": 5}, "field 'timestamp' is '5', not a time"),
    ],
)
def test_mistakes_in_aliases_are_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        read(write(tmp_path, one_session(turns=[changes])))
