"""The generic schema of `netops`: what is read, and how each mistake is named."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.contract import Dataset
from memeval.datasets.io.entries import MAX_SHOWN
from memeval.datasets.io.questions import QuestionEntry
from memeval.datasets.locate import build, locate
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError
from memeval.records import EvalCase

NETOPS = DATASETS["netops"]
CASE = ("case_id", "chunks", "questions")
CHUNK = ("text", "id", "time", "speaker", "source", "session")

DOCS = Path(__file__).parents[2] / "docs" / "datasets"


def case(**changes: Any) -> dict[str, Any]:
    """A valid case with two chunks and a question."""
    plain = {
        "case_id": "north",
        "chunks": ["Alert: port 7 is down.", {"id": "rb", "text": "Runbook: swap the cable."}],
        "questions": [{"id": "q1", "question": "What is down?", "answer": "port 7"}],
    }
    return plain | changes


def asked(**changes: Any) -> dict[str, Any]:
    """A case with one question, changed as given."""
    return case(questions=[{"id": "q1", "question": "What is down?", "answer": "port 7"} | changes])


def write(folder: Path, content: Any) -> Path:
    path = folder / "cases.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(json.dumps(content), encoding="utf-8")

    return path


def opened(path: Path, **settings: Any) -> Dataset:
    dataset = build("netops", Path("/nowhere"), path=str(path), **settings)
    dataset.open()
    return dataset


def read(folder: Path, content: Any, **settings: Any) -> list[EvalCase]:
    return list(opened(write(folder, content), **settings).cases())


def refusal(folder: Path, content: Any) -> UserError:
    with pytest.raises(UserError) as refused:
        read(folder, content)

    return refused.value


def test_small_file_is_read_completely(tmp_path: Path) -> None:
    content = case(
        chunks=[
            {"id": "a", "text": " Port 7 is down. ", "time": "2024-03-01T08:00", "speaker": "nms"},
            {"id": "b", "text": "Cable swapped.", "time": "2024-03-02", "source": "Ida"},
            "It stays up.",
        ],
        questions=[
            {"question": "What is down?", "answer": "port 7", "evidence": ["a"], "category": "x y"},
            {
                "id": 7,
                "question": "How many ports?",
                "golds": [1, "one"],
                "evidence": [0, "b", 0],
                "time": "2024-04-01",
            },
            {"id": "none", "question": "Who fell?", "answer": []},
            {"question": "Which?", "answer": "two", "choices": ["one", "two"]},
        ],
    )
    (found,) = read(tmp_path, [content])
    (session,) = found.sessions
    assert [(turn.turn_id, turn.speaker, turn.text, turn.time) for turn in session.turns] == [
        ("t0", "nms", "Port 7 is down.", datetime(2024, 3, 1, 8)),
        ("t1", "Ida", "Cable swapped.", datetime(2024, 3, 2)),
        ("t2", "Record", "It stays up.", None),
    ]
    assert [
        (one.question_id, one.category, one.gold, one.evidence, one.answerable)
        for one in found.questions
    ] == [
        ("north/q0", "x y", ("port 7",), ("t0",), True),
        ("north/7", "general", ("1", "one"), ("t0", "t1"), True),
        ("north/none", "general", (), (), False),
        ("north/q3", "general", ("two",), (), True),
    ]
    assert found.questions[1].asked_at == datetime(2024, 4, 1)
    assert (found.questions[3].right_choices, found.questions[3].multi_select) == ((1,), False)


def test_adjacent_chunks_of_one_session_form_a_session(tmp_path: Path) -> None:
    chunks = [{"text": name, "session": name[0]} for name in ("a1", "a2", "b1")]
    (found,) = read(tmp_path, [case(chunks=[*chunks, "c"])])
    assert [[turn.text for turn in session.turns] for session in found.sessions] == [
        ["a1", "a2"],
        ["b1"],
        ["c"],
    ]


def test_times_with_a_zone_are_converted_to_utc(tmp_path: Path) -> None:
    chunks = [
        {"text": "x", "time": "2024-03-01T08:00+02:00"},
        {"text": "y", "time": "2024-03-01T07:00Z"},
    ]
    (found,) = read(tmp_path, [case(chunks=chunks)])
    assert [turn.time for turn in found.sessions[0].turns] == [
        datetime(2024, 3, 1, 6),
        datetime(2024, 3, 1, 7),
    ]


@pytest.mark.parametrize(
    "content",
    [
        json.dumps([case(), case(case_id="south")]).encode(),
        b"\xef\xbb\xbf" + json.dumps([case(), case(case_id="south")]).encode(),
        b"%s\r\n\r\n%s\r\n" % (json.dumps(case()).encode(), json.dumps(case(case_id=2)).encode()),
        b"\xef\xbb\xbf%s\n%s" % (json.dumps(case()).encode(), json.dumps(case(case_id=2)).encode()),
        json.dumps([case(), case(case_id="south")], indent=1).replace("\n", "\r\n").encode(),
    ],
)
def test_list_and_lines_are_read_with_any_line_break(tmp_path: Path, content: bytes) -> None:
    assert [len(found.questions) for found in read(tmp_path, content)] == [1, 1]


def test_single_case_is_a_file_and_u2028_is_text(tmp_path: Path) -> None:
    single = case(chunks=["one\u2028two"])
    for content in (json.dumps(single, indent=2), json.dumps(single, ensure_ascii=False)):
        (found,) = read(tmp_path, content.encode())
        assert found.sessions[0].turns[0].text == "one\u2028two"


FAULTY = {
    "no case": ([], "contains no cases: it must be a list of cases, or one per line"),
    "nothing": (b"", "is empty"),
    "a number": (b"7", "contains no cases"),
    "cut off": (b'[{"case_id": "x"', "is not JSON"),
    "another encoding": (json.dumps([case()]).encode("utf-16"), "is not UTF-8"),
    "case not an object": ([case(), 5], "case 2: is an integer, not an object"),
    "no id": ([{**case(), "case_id": None}], "case 1: field 'case_id' is null"),
    "no chunks": ([case(chunks=[])], "case 1 'north': field 'chunks' is empty"),
    "chunks missing": ([{"case_id": "north"}], "case 1 'north': field 'chunks' is missing"),
    "chunks no list": (
        [case(chunks="x")],
        "case 1 'north': field 'chunks' is a string, not a list",
    ),
    "empty chunk": ([case(chunks=["x", " "])], "case 1 'north', chunk 1: field 'text' is empty"),
    "chunk of another type": ([case(chunks=[3])], "chunk 0: is an integer, not an object"),
    "half a list": ([case(questions="\ud800")], "contains a lone surrogate"),
    "half a character": ([case(chunks=["\ud800"])], "contains a lone surrogate"),
    "chunk twice": (
        [case(chunks=[{"id": "a", "text": "x"}, {"id": "a", "text": "y"}])],
        "chunk 1: chunk id 'a' is already in case 1 'north', chunk 0",
    ),
    "time": (
        [case(chunks=[{"text": "x", "time": "yesterday"}])],
        "chunk 0: field 'time' is 'yesterday', not a time like 2024-05-08",
    ),
    "time out of range": (
        [case(chunks=[{"text": "x", "time": "0001-01-01T00:00+12:00"}])],
        "is '0001-01-01T00:00+12:00', not a time",
    ),
    "backwards": (
        [case(chunks=[{"text": "x", "time": "2024-02-02"}, {"text": "y", "time": "2024-02-01"}])],
        "chunk 1: field 'time' is before that of its session or of an earlier chunk",
    ),
    "zones": (
        [case(chunks=[{"text": "x", "time": "2024-02-02Z"}, {"text": "y", "time": "2024-02-03"}])],
        "not a time",
    ),
    "mixed zones": (
        [
            case(
                chunks=[
                    {"text": "x", "time": "2024-02-02T00:00Z"},
                    {"text": "y", "time": "2024-02-03"},
                ]
            )
        ],
        "case 1 'north': some times have a zone and others do not",
    ),
    "session interrupted": (
        [case(chunks=[{"text": "x", "session": "a"}, "y", {"text": "z", "session": "a"}])],
        "session 'a' is interrupted",
    ),
    "speaker and source": (
        [case(chunks=[{"text": "x", "speaker": "a", "source": "b"}])],
        "'source' is an alias of 'speaker'",
    ),
    "no questions": ([case(questions=[])], "case 1 'north': field 'questions' is empty"),
    "question not an object": ([case(questions=["x"])], "question 0: is a string, not an object"),
    "no text": ([asked(question=None)], "question 'q1': field 'question' is null"),
    "no answer": (
        [asked(answer=None)],
        "question 'q1': field 'answer' is missing; if a refusal is right, use an empty list",
    ),
    "answer and golds": ([asked(golds=["x"])], "'answer' is an alias of 'golds'"),
    "answer true": ([asked(answer=True)], "field 'answer' is a boolean, not a string"),
    "answer NaN": ([asked(answer=float("nan"))], "field 'answer' is 'nan', which is out of range"),
    "evidence": ([asked(evidence=["c12"])], "evidence 'c12' is not a chunk of the case"),
    "evidence past the end": ([asked(evidence=[2])], "evidence '2' is not a chunk of the case"),
    "evidence below 0": ([asked(evidence=[-1])], "evidence '-1' is not a chunk"),
    "huge evidence": ([asked(evidence=[10**400])], "is not a chunk of the case"),
    "evidence null": (
        [asked(evidence=[None])],
        "field 'evidence[0]' is null, not a string or an integer",
    ),
    "evidence no list": ([asked(evidence="rb")], "field 'evidence' is a string, not a list"),
    "category": ([asked(category="a/b")], "field 'category' is 'a/b'; it must be"),
    "one choice": ([asked(choices=["port 7"])], "'choices' contains 1, not 2 to 26"),
    "choice twice": ([asked(choices=["port 7", "port 7"])], "lists a choice twice"),
    "no right choice": (
        [asked(choices=["a", "b"])],
        "'answer' is 'port 7', which is not one of the choices",
    ),
    "refusal among choices": ([asked(choices=["a", "b"], answer=[])], "needs a right one"),
    "several right": ([asked(choices=["a", "b"], answer=["a", "b"])], 'needs "multi_select"'),
    "multi_select": ([asked(multi_select="yes")], "'multi_select' is a string, not true or false"),
    "case twice": ([case(), case()], "case 2 'north': case_id 'north' is already in case 1"),
    "question twice": (
        [case(questions=[{"id": "q", "question": "x", "answer": "y"}] * 2)],
        "question id 'north/q' is already in case 1 'north'",
    ),
    "a line": (json.dumps(case()).encode() + b"\n{", "line 2: is not JSON"),
    "a line of bytes": (json.dumps(case()).encode() + b"\n\xff", "line 2: is not UTF-8"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, name: str) -> None:
    content, message = FAULTY[name]
    error = refusal(tmp_path, content)
    assert "cases.json" in error.message and "\n" not in error.message
    assert message in error.message


def test_mistakes_are_listed_up_to_a_limit_and_the_rest_counted(tmp_path: Path) -> None:
    bad = [{"id": f"q{n}", "question": "x", "answer": "y", "evidence": ["z"]} for n in range(30)]
    error = refusal(tmp_path, [case(), case(case_id="south", questions=bad)])
    assert "has 30 mistakes. case 2 'south', question 'q0': evidence 'z'" in error.message
    assert (
        error.hints[0] == "case 2 'south', question 'q1': evidence 'z' is not a chunk of the case."
    )
    assert error.hints[MAX_SHOWN - 1] == "and 10 more"
    assert len(error.hints) == MAX_SHOWN + 1


def test_notes_count_missing_evidence_and_unread_fields(tmp_path: Path) -> None:
    path = write(tmp_path, [asked(difficulty=3), asked(evidence=[0]) | {"case_id": 2, "owner": ""}])
    assert build("netops", Path(), path=str(path)).open().notes == (
        "evidence: 1 of 2 questions with an answer have none; recall is measured on the others",
        "fields: case.owner is not read (1 time)",
        "fields: question.difficulty is not read (1 time)",
    )
    path = write(tmp_path, [asked()])
    assert build("netops", Path(), path=str(path)).open().notes == (
        "evidence: 1 of 1 questions with an answer have none; recall is not measured",
    )


def test_fields_of_own_data_are_not_read(tmp_path: Path) -> None:
    chunk = {"text": "x", "speaker": "sw1", "role": "access", "timestamp": 5, "session": ["a"]}
    path = write(tmp_path, [case(chunks=[chunk], operations="NOC", sessions=3)])
    dataset = build("netops", Path(), path=str(path))
    assert [note.split(" is ")[0] for note in dataset.open().notes[1:]] == [
        "fields: case.operations",
        "fields: case.sessions",
        "fields: chunk.role",
        "fields: chunk.session",
        "fields: chunk.timestamp",
    ]
    (found,) = dataset.cases()
    assert (len(found.sessions), found.sessions[0].turns[0].speaker) == (1, "sw1")


def test_categories_are_chosen_by_name(tmp_path: Path) -> None:
    content = [asked(category="alert"), asked(category=5) | {"case_id": "south"}]
    assert [found.case_id for found in read(tmp_path, content, categories=(5,))] == ["south"]
    with pytest.raises(UserError, match=r"dataset.categories 'alerts'. Did you mean: alert"):
        read(tmp_path, content, categories=("alerts",))


def test_missing_path_says_how_to_set_it() -> None:
    with pytest.raises(UserError, match="is not on this machine") as missing:
        build("netops", Path("/nowhere")).open()

    assert "dataset.path=FILE" in missing.value.hints[0]
    assert locate(DATASETS["demo_netops"], Path("/nowhere")).is_file()


def test_documentation_examples_are_read_and_name_every_field(tmp_path: Path) -> None:
    page = (DOCS / "netops.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    sizes = []
    for example in examples:
        (found,) = read(tmp_path, example.encode())
        sizes.append((len(found.sessions[0].turns), len(found.questions)))

    assert sizes == [(3, 4), (2, 1)]
    for name in (*CASE, *CHUNK, *QuestionEntry.__struct_fields__):
        assert f"| `{name}` |" in page


def test_json_schema_accepts_the_demo_and_names_the_same_fields() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DOCS / "netops.schema.json").read_text(encoding="utf-8"))
    parts = schema["$defs"]
    assert [tuple(parts[name]["properties"]) for name in ("case", "chunk", "question")] == [
        CASE,
        CHUNK,
        QuestionEntry.__struct_fields__,
    ]
    shipped = json.loads(
        locate(DATASETS["demo_netops"], Path("/nowhere")).read_text(encoding="utf-8")
    )
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(shipped)
    assert not validator.is_valid([asked(evidence=[None])])
    assert NETOPS.name == "netops"
