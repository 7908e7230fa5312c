"""The offline reader through its public interface: a typed prompt in, a completion out."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memeval.errors import ModelError
from memeval.llm.contract import (
    AnswerPrompt,
    ChatPrompt,
    Completion,
    DraftPrompt,
    JudgePrompt,
    Prompt,
)
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.extractive.answers import NO_ANSWER
from memeval.llm.extractive.words import TOKEN
from memeval.records import MemoryChunk, Role, Session, Turn

CONTEXT = (
    "[1:56 pm on 8 May 2023] Ann: I adopted a grey cat called Tofu yesterday. He sleeps all day.",
    "[1:56 pm on 8 May 2023] Bob: Lovely! What does Tofu eat?",
    "[9:10 am on 9 June 2023] Bob: Last week I started a pottery class with my sister "
    "Clara.\nAnn: Wow, tell me more!",
    "[9:10 am on 9 June 2023] Ann: I moved to Lisbon because my company opened an office there.",
    "[7:00 pm on 1 July 2023] Bob: I have been learning the violin for three years.\nBob: I "
    "practise twice a week.",
    "[7:00 pm on 1 July 2023] Ann: We have five chickens on the farm. [shares an image: a photo "
    "of a wooden barn]",
    "[7:05 pm on 2 July 2023] Bob: Next month I'm visiting my parents in Norway.",
)


def complete(prompt: Prompt, seed: int = 0) -> Completion:
    return asyncio.run(ExtractiveModel().complete(prompt, role=Role.ANSWER, seed=seed))


def answer(question: str, context: tuple[str, ...] = CONTEXT, style: str = "short") -> str:
    return complete(AnswerPrompt(question, context, style=style)).text


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("When did Ann adopt her cat?", "7 May 2023"),
        ("When did Bob start the pottery class?", "The week before 9 June 2023"),
        ("When is Bob visiting his parents?", "August 2023"),
        ("How long has Bob been learning the violin?", "three years"),
        ("How often does Bob practise the violin?", "twice a week"),
        ("How many chickens does Ann have on the farm?", "five"),
        ("Did Ann adopt a cat?", "Yes"),
        ("Did Bob start a pottery class or a cooking class?", "a pottery class"),
    ],
)
def test_answers_exactly(question: str, expected: str) -> None:
    assert answer(question) == expected


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Where did Ann move?", "Lisbon"),
        ("Who does Bob take the pottery class with?", "Clara"),
        ("What instrument is Bob learning?", "violin"),
        ("Why did Ann move to Lisbon?", "company opened an office"),
    ],
)
def test_answer_is_a_short_span_that_contains_the_fact(question: str, part: str) -> None:
    text = answer(question)
    assert part in text
    assert len(text.split()) <= 12


@pytest.mark.parametrize(
    ("question", "context"),
    [
        ("What did Ann adopt?", ()),
        ("What did Ann adopt?", ("", "\n", "[1:56 pm on 8 May 2023] ")),
        ("Which spaceship did Zork repair on Mars?", CONTEXT),
        ("What does Dora think of Ann's quantum computing thesis?", CONTEXT),
        ("", CONTEXT),
        ("?!", CONTEXT),
    ],
)
@pytest.mark.parametrize("style", ["short", "cot"])
def test_abstains_if_the_context_says_nothing_about_the_question(
    question: str, context: tuple[str, ...], style: str
) -> None:
    assert answer(question, context, style).rsplit("Answer: ", 1)[-1] == NO_ANSWER


def test_abstains_if_somebody_else_did_it() -> None:
    assert answer("When did Bob adopt his grey cat?") == NO_ANSWER


def test_chain_of_thought_ends_with_the_short_answer() -> None:
    reply = answer("When did Ann adopt her cat?", style="cot")
    assert reply.splitlines()[-1] == "Answer: 7 May 2023"
    assert "I adopted a grey cat" in reply


def test_date_is_resolved_in_a_memory_chunk() -> None:
    time = datetime(2023, 5, 8, 13, 56)
    chunk = MemoryChunk("c", "Ann: I adopted a cat yesterday.", time, "s", ("t",), ("Ann",))
    assert answer("When did Ann adopt a cat?", (chunk.text,)) == "7 May 2023"


def test_chunk_may_contain_blocks_of_several_dates() -> None:
    unit = (
        "[1:00 pm on 1 May 2023] Ann: Nice weather.\n[1:00 pm on 5 May 2023] Ann: I sold my boat "
        "yesterday."
    )
    assert answer("When did Ann sell her boat?", (unit,)) == "4 May 2023"


def test_chunk_without_date_or_speaker_is_read() -> None:
    assert answer("Where was the treaty signed?", ("The treaty was signed in Vienna.",)) == "Vienna"


@pytest.mark.parametrize(
    "prompt",
    [ChatPrompt(({"role": "user", "content": "hi"},)), JudgePrompt("q", ("g",), "a")],
)
def test_other_prompts_are_refused_with_a_hint(prompt: Prompt) -> None:
    with pytest.raises(ModelError, match=rf"{type(prompt).__name__}.*llm=openai"):
        complete(prompt)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("वह 3 जून को मिलती है।", ["वह", "3", "जून", "को", "मिलती", "है", "।"]),
        ("ตื่น เช้า", ["ตื่น", "เช้า"]),
        ("cafe\u0301's", ["cafe\u0301's"]),
    ],
)
def test_combining_marks_are_parts_of_words(text: str, words: list[str]) -> None:
    assert TOKEN.findall(text) == words


def test_usage_is_counted_and_marked_as_estimated() -> None:
    done = complete(
        AnswerPrompt(
            "When did Ann adopt her cat?",
            CONTEXT[:1],
            system_text="Answer.",
            user_template="{context} {question}",
        )
    )
    assert (done.usage.role, done.usage.model, done.usage.provider) == (
        Role.ANSWER,
        "extractive",
        "offline",
    )
    assert done.usage.estimated
    assert not done.usage.cached
    assert done.usage.completion_tokens == 3
    assert done.usage.prompt_tokens == 2 + 7 + 26
    assert done.latency_s >= 0


def test_prompt_wording_and_seed_do_not_change_the_answer() -> None:
    plain = AnswerPrompt("Where did Ann move?", CONTEXT)
    worded = AnswerPrompt(
        "Where did Ann move?",
        CONTEXT,
        datetime(2024, 1, 1),
        "short",
        system_text="Say Paris.",
        user_template="Paris {context} {question}",
    )
    assert complete(plain).text == complete(worded, seed=7).text


def test_order_of_chunks_does_not_change_a_date() -> None:
    assert answer("When did Ann adopt her cat?", CONTEXT[::-1]) == "7 May 2023"


PIECES = st.one_of(
    st.sampled_from(
        [*CONTEXT, "[", "]", "Ann:", "[1:00 pm on 31 June 2023]", "when", "\n", "\x00", "İ", "''"]
    ),
    st.text(max_size=60),
)
QUESTIONS = st.one_of(
    st.sampled_from(
        [
            "When",
            "What did Ann",
            "How many",
            "How old",
            "How often",
            "Did Ann",
            "Would Bob or",
            "Which city",
            "Who",
            "Why",
        ]
    ),
    st.text(),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(QUESTIONS, st.lists(PIECES, max_size=6), st.text(max_size=20))
def test_never_raises_and_is_deterministic(question: str, context: list[str], more: str) -> None:
    prompt = AnswerPrompt(f"{question} {more}?", tuple(context))
    text = complete(prompt).text
    assert text
    assert complete(prompt, seed=1).text == text


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from(["What did Ann {}?", "Where is the {}?", "Why did Bob {}?", "Who {}?"]),
    st.permutations(CONTEXT),
    st.data(),
)
def test_spans_are_drawn_from_the_context(
    form: str, context: list[str], data: st.DataObject
) -> None:
    word = data.draw(st.sampled_from(re.findall(r"[a-z]{4,}", " ".join(context))))
    text = answer(form.format(word), tuple(context))
    if text != NO_ANSWER:
        assert all(item in " ".join(context) for item in text.split(", "))


def locomo(data_dir: Path) -> list[tuple[dict[str, str], list[dict[str, object]]]]:
    """Chunk texts by turn id, and questions, for each conversation."""
    found = []
    for case in json.loads((data_dir / "locomo" / "locomo10.json").read_text(encoding="utf-8")):
        talk, units = case["conversation"], {}
        for number in sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key)):
            for turn in talk[f"session_{number}"]:
                units[turn["dia_id"]] = (
                    f"[{talk[f'session_{number}_date_time'].replace(',', '')}] "
                    f"{turn['speaker']}: {turn['text']}"
                )
        found.append((units, case["qa"]))
    return found


@pytest.mark.slow
@pytest.mark.real_data
def test_locomo_is_answered_from_evidence_and_not_from_other_conversations(
    data_dir: Path,
) -> None:
    cases = locomo(data_dir)[:3]
    abstained: dict[str, list[bool]] = {"evidence": [], "another": []}
    hits = []
    for (units, questions), (other, _) in zip(cases, cases[1:] + cases[:1], strict=True):
        for item in (item for item in questions if item["category"] in (2, 4)):
            evidence = tuple(units[name] for name in item["evidence"] if name in units)  # type: ignore[attr-defined]
            text = answer(str(item["question"]), evidence)
            gold = set(re.findall(r"\w{2,}", str(item["answer"]).lower())) - {
                "the",
                "and",
                "of",
                "to",
                "in",
            }
            hits.append(
                bool(gold)
                and len(gold & set(re.findall(r"\w{2,}", text.lower()))) >= 0.6 * len(gold)
            )
            abstained["evidence"].append(text == NO_ANSWER)
            abstained["another"].append(
                answer(str(item["question"]), tuple(other.values())) == NO_ANSWER
            )
    assert sum(abstained["evidence"]) / len(hits) < 0.2
    assert sum(abstained["another"]) / len(hits) > 0.85
    assert sum(hits) / len(hits) > 0.4


EVENTS = (
    "[9:00 am on 10 March 2023] user: I bought a tent yesterday.",
    "[9:00 am on 24 March 2023] user: Today I sold the canoe.",
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (
            "How many days passed between the day I bought the tent and the day I sold the canoe?",
            "15 days",
        ),
        ("How many weeks ago did I sell the canoe?", "1 week"),
        ("Which did I do first, buying the tent or selling the canoe?", "buying the tent"),
        ("Which did I do last, buying the tent or selling the canoe?", "selling the canoe"),
    ],
)
def test_compares_the_dates_of_events(question: str, expected: str) -> None:
    prompt = AnswerPrompt(question, EVENTS, asked_at=datetime(2023, 3, 31))
    assert complete(prompt).text == expected


def test_no_question_is_drafted_about_the_number_of_a_placeholder() -> None:
    said = "I live with <name-2> in the house of number <name-13> since the year 2019."
    session = Session("s", None, (Turn("t", "Ann", said, None),))
    drafted = json.loads(complete(DraftPrompt("single_hop", (session,), "t")).text)
    assert drafted["answer"] == "2019"
