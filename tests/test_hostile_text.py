"""Text from a model is read in time linear in its length."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from growth import grows_too_fast

from memeval.datasets.incidents.metrics import ranking
from memeval.datasets.locomo.metrics import locomo_f1, officially_refuses
from memeval.datasets.memory_agent_bench import metrics as memory_agent_bench
from memeval.datasets.opseval.metrics import character_f1
from memeval.llm.extractive.dates import moments
from memeval.llm.extractive.sentences import parse_stamp
from memeval.llm.form import read_form
from memeval.llm.tokens import count_tokens, shorten
from memeval.metrics.choice import read_index
from memeval.metrics.keywords import keyword_overlap, keyword_pass
from memeval.metrics.letters import read_letters
from memeval.metrics.mem0 import bleu1, mem0_f1
from memeval.metrics.refusal import is_refusal
from memeval.metrics.tokens import contains, exact_match, token_f1
from memeval.pipeline.execute.reader import final_answer
from memeval.records import MemoryChunk
from memeval.systems.cogcanvas.quotes import find_nearest, find_verbatim
from memeval.systems.cogcanvas.reply import read_reply
from memeval.text.words import search_terms as terms

LENGTH = 16_000


def unit(content: str) -> MemoryChunk:
    return MemoryChunk("c", content, None, "session", ("turn",), ())


UNIT = unit("Hello there. I like dogs and cats.")
FORM = "# People\n- Names:\n- Plans:\n"
NUMBERED = tuple(f"The choice {number}" for number in range(10))
LETTERED = ("JSON", "XML", "YAML", "INI, old")

READERS: dict[str, Callable[[str], object]] = {
    "is_refusal": is_refusal,
    "officially_refuses": officially_refuses,
    "read_index": lambda text: read_index(text, NUMBERED),
    "read_letters, one": lambda text: read_letters(text, LETTERED, multi_select=False),
    "read_letters, several": lambda text: read_letters(text, LETTERED, multi_select=True),
    "token_f1": lambda text: token_f1(text, "a dog, a cat"),
    "locomo_f1 by parts": lambda text: locomo_f1(text, "a dog, a cat", 1),
    "exact_match": lambda text: exact_match(text, "a dog"),
    "contains": lambda text: (contains(text, "a dog"), contains("a dog", text)),
    "mem0_f1": lambda text: mem0_f1(text, "a dog"),
    "bleu1": lambda text: bleu1(text, "a dog"),
    "keyword_overlap": lambda text: keyword_overlap(text, "a dog"),
    "keyword_pass": lambda text: keyword_pass(text, "a dog"),
    "character_f1": lambda text: character_f1(text, "a dog"),
    "memory_agent_bench parsed": memory_agent_bench.parse_answer,
    "memory_agent_bench items": lambda text: memory_agent_bench.recall_at_5_items(text, ["a dog"]),
    "memory_agent_bench substring": lambda text: memory_agent_bench.substring_exact_match(
        text, ["a dog"]
    ),
    "final_answer": final_answer,
    "read_form": lambda text: read_form(FORM, text),
    "count_tokens": count_tokens,
    "read_reply of cogcanvas": read_reply,
    "quote": lambda text: (find_verbatim(text, UNIT), find_nearest(text, UNIT)),
    "unit of a quote": lambda text: find_nearest("I like dogs", unit(text)),
    "moments": lambda text: moments(text, None),
    "shortened summary": lambda text: shorten(text, 50),
    "ranking of causes": lambda text: ranking(text, ["node_a", "db"]),
    "terms": terms,
    "parse_stamp": parse_stamp,
}

REPEATED = (
    *(
        "the ",
        "the the ",
        "no no no ",
        "not ",
        "is ",
        "a",
        "y",
        "1",
        "1 ",
        "1. ",
        "12, ",
        "3 May 2023 ",
        "I do not know. ",
    ),
    *(
        "answer: ",
        "Answer: Answer: ",
        "answer\n",
        "final answer: ",
        "there is no ",
        "based on the text, ",
        "however, ",
        "because ",
    ),
    *(
        "[",
        "](",
        "(((",
        "))))",
        "{",
        "}{",
        '[{"a":1},',
        "[1 ",
        ",",
        ", ",
        '"',
        "'\"",
        "\\",
        '\\"',
        "`",
        "|",
        "<b",
    ),
    *(
        "*",
        "**a** ",
        "#",
        "- ",
        "--",
        "—",
        "_",
        "\n",
        "\n\n- ",
        "\r",
        "\t",
        "   ",
        "\u3000",
        ".",
        ". ",
        "...",
        "!?",
        ": ",
        ";",
    ),
    *(
        "A, B, ",
        "A B ",
        "a) b) ",
        "A. JSON, ",
        "5\n",
        "5. ",
        "5) ",
        "- Name: ",
        "dr. ",
        "没有",
        "不知道,",
        "の。",
        "é",
        "\x00",
    ),
)
"""Pieces that are repeated to fill a whole text."""
BEGUN = ("A", "5", "a.", "dr.", "Answer", "I do not know")
RUNS = (" ", "\n", ")", "*", ",", '"', "- ", "A ", " the")
"""Runs that follow each beginning in `BEGUN`, and that a pattern might try at every position."""


def hostile(length: int) -> dict[str, str]:
    texts = {piece: (piece * length)[:length] for piece in REPEATED}
    return texts | {
        f"{begun}{run}…x": f"{begun}{(run * length)[: length - 20]}x"
        for begun in BEGUN
        for run in RUNS
    }


@pytest.fixture(scope="module")
def long_texts() -> dict[str, str]:
    return hostile(LENGTH)


@pytest.mark.sampled(kept=4)
@pytest.mark.parametrize("name", READERS)
def test_reading_takes_linear_time(name: str, long_texts: dict[str, str]) -> None:
    read = READERS[name]
    read("Answer: warm")

    for shape, text in long_texts.items():
        assert not grows_too_fast(lambda size, text=text: read(text[:size]), LENGTH), (name, shape)


def test_a_reply_of_brackets_is_unreadable() -> None:
    assert read_reply("[" * 200_000) is None
    assert read_reply('[{"chunk": 1}, ' + "[" * 200_000) is not None


@pytest.mark.parametrize(
    "reply",
    [
        "Answer: 5",
        "Answer: Answer: 5",
        "**Answer:** **Answer: 5**",
        "So.\nFinal answer: Answer: 5\n",
        "5",
    ],
)
def test_answer_with_a_repeated_label_is_read(reply: str) -> None:
    assert final_answer(reply) == "5"
    assert read_index(reply, NUMBERED) == 5
    assert memory_agent_bench.exact_match_parsed(reply, ["5"]) == 1.0
