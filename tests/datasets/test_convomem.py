"""ConvoMem's schema, on invented test cases. Its real files have never been read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memeval.datasets.convomem.adapter import ConvoMem
from memeval.datasets.fetch import fetch
from memeval.datasets.locate import build
from memeval.datasets.registry import DATASETS
from memeval.errors import UserError

CONVOMEM = DATASETS["convomem"]

NAME = "batched_000.json"


def talk(*texts: Any) -> dict[str, Any]:
    speakers = ("User", "Assistant")
    return {
        "messages": [
            {"speaker": speakers[place % 2], "text": text} for place, text in enumerate(texts)
        ]
    }


def item(**changes: Any) -> dict[str, Any]:
    fields = {
        "question": "How many lamps?",
        "answer": "340",
        "message_evidences": [{"speaker": "user", "text": "Our quota  is 340 lamps."}],
        "category": "Sales",
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def case(**changes: Any) -> dict[str, Any]:
    """A valid test case except for the changes; a change to `None` leaves the field out."""
    fields = {
        "evidenceItems": [item()],
        "conversations": [
            talk("It rains.", "Take a coat."),
            talk("Our quota is 340 lamps.", "Noted."),
        ],
        "contextSize": 2,
    } | changes
    return {name: value for name, value in fields.items() if value is not None}


def convomem(folder: Path, content: Any, where: str = "user_evidence/1_evidence") -> Path:
    """Writes a file with this content; returns the folder."""
    path = folder / where / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return folder


def opened(folder: Path, **settings: Any) -> ConvoMem:
    dataset = build("convomem", folder, path=str(folder), **settings)
    assert isinstance(dataset, ConvoMem)
    dataset.open()
    return dataset


def test_evidence_of_a_test_case_is_found_by_its_text(tmp_path: Path) -> None:
    dataset = opened(convomem(tmp_path, [case()]))
    (read,) = dataset.read()
    (question,) = read.questions
    assert [len(session.turns) for session in read.sessions] == [2, 2]
    assert (question.question_id, question.text) == ("c1/q0", "How many lamps?")
    assert question.gold == ("340",)
    assert question.evidence == ("s2:1",)
    assert question.category == "user_evidence"
    assert question.facets == {"context_size": "2", "n_evidence": "1"}
    assert not dataset.open().pinned
    assert dataset.notes() == ()


@pytest.mark.parametrize(
    "cited",
    [
        [("User", "Our quota is 340 lamps."), ("User", "never said")],
        [("Assistant", "Our quota is 340 lamps.")],
        [("User", "Twice.")],
    ],
)
def test_evidence_that_matches_no_single_turn_is_dropped_and_counted(
    cited: list[tuple[str, str]], tmp_path: Path
) -> None:
    messages = [{"speaker": speaker, "text": text} for speaker, text in cited]
    conversations = [talk("Our quota is 340 lamps.", "Noted.", "Twice."), talk("Twice.")]
    changed = case(conversations=conversations, evidenceItems=[item(message_evidences=messages)])
    dataset = opened(convomem(tmp_path, [changed]))
    (read,) = dataset.read()
    assert read.questions[0].evidence == ()
    assert dataset.notes()[0].startswith("evidence: 1 of 1 questions cite a message")


def test_folder_decides_what_is_asked(tmp_path: Path) -> None:
    for where in ("abstention_evidence/2_evidence", "preference_evidence/1_evidence"):
        convomem(tmp_path, [case()], where)

    without, preference = (read.questions[0] for read in opened(tmp_path).read())
    assert not without.answerable and without.gold == () and without.evidence == ()
    assert without.facets["n_evidence"] == "2"
    assert preference.whole_answer and preference.answerable


def test_context_size_and_n_evidence_select_cases(tmp_path: Path) -> None:
    convomem(tmp_path, [case(), case(contextSize=None, conversations=[talk("Hello.")])])
    convomem(tmp_path, [case(contextSize=6)], "user_evidence/2_evidence")

    def ids(**settings: Any) -> list[str]:
        return [read.case_id for read in opened(tmp_path, **settings).read()]

    assert ids() == ["c1", "c2", "c3"]
    assert ids(context_size=1) == ["c2"]
    assert ids(context_size=6) == ["c3"]
    assert ids(n_evidence=1) == ["c1", "c2"]
    with pytest.raises(UserError, match=r"contains no cases with dataset.context_size=300"):
        ids(context_size=300)
    with pytest.raises(UserError, match=r"dataset.n_evidence=6: .* only has files of \[1, 2\]"):
        ids(n_evidence=6)
    with pytest.raises(UserError, match=r"dataset\.context_size must be at least 1, not 0"):
        ids(context_size=0)


def test_missing_data_names_the_manual_download(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        fetch(CONVOMEM, tmp_path)
    assert "Salesforce/ConvoMem" in caught.value.hints[0]

    with pytest.raises(UserError, match="is not on this machine"):
        opened(tmp_path / "none")
    with pytest.raises(UserError, match=r"contains no <category>/<n>_evidence/<name>\.json"):
        opened(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([[]], "record 0 is a list, not an object"),
        ([case(), None], "record 1 is null, not an object"),
        (json.dumps([case()])[:-20], NAME),
        ([case(conversations=None)], "record 0: field 'conversations' is missing"),
        ([case(conversations=[])], "record 0: field 'conversations' contains no messages"),
        ([case(conversations=[{}])], "record 0 conversations[0]: field 'messages' is missing"),
        (
            [case(conversations=[talk(7)])],
            "record 0 conversations[0] messages[0]: field 'text' is an integer, not a string",
        ),
        (
            [case(conversations=[{"messages": [{"text": "x"}]}])],
            "record 0 conversations[0] messages[0]: field 'speaker' is missing",
        ),
        ([case(contextSize="2")], "record 0: field 'contextSize' is a string, not an integer"),
        ([case(evidenceItems=None)], "record 0: field 'evidenceItems' is missing"),
        ([case(evidenceItems=[])], "record 0: field 'evidenceItems' is empty"),
        (
            [case(evidenceItems=[item(), item(question=" ")])],
            "record 0 evidenceItems[1]: field 'question' is empty",
        ),
        (
            [case(evidenceItems=[item(answer=None)])],
            "record 0 evidenceItems[0]: field 'answer' is missing",
        ),
        (
            [case(evidenceItems=[item(message_evidences=["x"])])],
            "record 0 evidenceItems[0] message_evidences[0] is a string, not an object",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(content: Any, message: str, tmp_path: Path) -> None:
    dataset = opened(convomem(tmp_path, content))
    with pytest.raises(UserError) as caught:
        list(dataset.read())

    assert NAME in caught.value.message and message in caught.value.message
    assert "\n" not in caught.value.message
