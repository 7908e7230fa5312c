"""LIGHT: what it notes about a pair, what it finds, and which parts of its scratchpad it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from memeval.errors import UserError
from memeval.llm.contract import Completion, Prompt
from memeval.llm.memory_prompts import NotesPrompt, RelevancePrompt
from memeval.llm.model import LanguageModel
from memeval.records import MemoryChunk, Query, Role, Usage
from memeval.systems.light.system import pairs_of, pieces, text_of, turns_of

from .conftest import DATES, Builder, by_session, conversation

Reply = Callable[[Prompt], str]


class Writer(LanguageModel):
    """Computes replies from the prompt, and remembers every prompt."""

    name = "writer"

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.asked: list[tuple[Prompt, Role]] = []

    async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
        self.asked.append((prompt, role))
        return Completion(self.reply(prompt), Usage(role, self.name, "offline", 1, 1), 0.0)


def kind_of(prompt: Prompt) -> str:
    """The kind of reply that a prompt requests, by the last line of its template."""
    if isinstance(prompt, RelevancePrompt):
        return "filter"

    assert isinstance(prompt, NotesPrompt)
    wanted = {"The card,": "facts", "New notes,": "notes", "The condensed": "condense"}
    last = prompt.user_template.splitlines()[-1]
    return next(kind for start, kind in wanted.items() if last.startswith(start))


def by_kind(**replies: str) -> Writer:
    return Writer(lambda prompt: replies[kind_of(prompt)])


def echo(prompt: Prompt) -> str:
    """Facts and notes repeat the last message of the prompt; all notes are relevant."""
    return "yes" if isinstance(prompt, RelevancePrompt) else prompt.said[-1]  # type: ignore[attr-defined]


def test_pairs_are_consecutive_turns_of_a_session() -> None:
    chunks = conversation()
    assert [len(pair) for pair in pairs_of(chunks)] == [2, 2, 1, 2, 2]
    assert [len(pair) for pair in pairs_of(by_session(chunks))] == [1, 1]

    first = next(pairs_of(chunks))
    assert turns_of(first) == ("D1:1", "D1:2")
    assert text_of(first).count("2023") == 1


def test_pieces_are_whole_lines() -> None:
    assert pieces(["a b\nc d", "e f g h i", "j"], 4) == ["a b\nc d", "e f g h i", "j"]
    assert pieces([], 4) == []


def test_each_pair_gets_facts_and_notes(build: Builder) -> None:
    model = Writer(echo)
    driver = build("light", model=model)
    driver.remember(conversation())
    kinds = [kind_of(prompt) for prompt, _ in model.asked]
    assert kinds == ["facts", "notes"] * 5
    assert {role for _, role in model.asked} == {Role.INGEST}

    first, second = (model.asked[place][0] for place in (0, 2))
    assert isinstance(first, NotesPrompt) and isinstance(second, NotesPrompt)
    assert first.before == "" and "Biscuit" in second.before
    assert len(second.said) == 2

    health = driver.call("health")
    assert (health.asked, health.stored, health.lost) == (9, 9, 0)
    dumped = driver.call("dump")
    assert [item["kind"] for item in dumped] == ["facts"] * 5 + ["scratchpad"] * 5
    assert dumped[0]["turn_ids"] == ["D1:1", "D1:2"] and dumped[0]["time"] == DATES[0].isoformat()


def test_pair_is_found_by_its_facts_and_shown_verbatim(build: Builder) -> None:
    def reply(prompt: Prompt) -> str:
        if isinstance(prompt, NotesPrompt) and "violinist" in " ".join(prompt.said):
            return "music in the family: a sister"

        return "(nothing)"

    driver = build("light", model=Writer(reply), top_k=1, recent_pairs=0)
    driver.remember(conversation())
    answer = driver.ask(Query("Is there music in the family?"))
    assert answer.retrieved is not None
    assert [chunk.turn_ids for chunk in answer.retrieved] == [("D1:3", "D1:4")]
    assert "Clara is a violinist" in driver.reader.contexts[0][0]


def test_pair_without_facts_is_found_by_its_own_words(build: Builder) -> None:
    model = by_kind(facts="(nothing)", notes="(nothing)", filter="no")
    driver = build("light", model=model, recent_pairs=0, top_k=1)
    driver.remember(conversation())
    (found,) = driver.ask(Query("a violinist in Lisbon")).retrieved or ()
    assert found.turn_ids == ("D1:3", "D1:4")


def test_the_latest_pairs_are_shown_once(build: Builder) -> None:
    driver = build("light", top_k=5, recent_pairs=2, filter_scratchpad=False)
    driver.remember(conversation())
    driver.ask(Query("What about the bakery?"))
    (context,) = driver.reader.contexts
    assert len([text for text in context if text.endswith("birthday\nAnn: Bye!")]) == 2
    # Once as a pair, and once in the scratchpad, which is one piece here.
    assert sum("Cinnamon rolls" in text for text in context[:-1]) == 1


def test_model_selects_relevant_pieces_of_the_scratchpad(build: Builder) -> None:
    def reply(prompt: Prompt) -> str:
        if isinstance(prompt, RelevancePrompt):
            return "Yes." if "Norway" in prompt.text else "no"

        return echo(prompt)

    model = Writer(reply)
    driver = build("light", model=model, top_k=1, recent_pairs=0, piece_tokens=1)
    driver.remember(conversation())
    driver.ask(Query("Who went hiking?"))
    notes = driver.reader.contexts[0][1:]
    assert notes and all("Norway" in note for note in notes)
    assert model.asked[-1][1] is Role.ANSWER


def test_piece_is_left_out_only_if_the_model_says_no(build: Builder) -> None:
    driver = build("light", model=by_kind(facts="a", notes="Tea.", filter="hm"), recent_pairs=0)
    driver.remember(conversation())
    driver.ask(Query("What?"))
    assert driver.reader.contexts[0][-1] == "Tea.\nTea.\nTea.\nTea.\nTea."


def test_a_long_scratchpad_is_condensed(build: Builder) -> None:
    model = by_kind(facts="a", notes="one two three four five", condense="short", filter="yes")
    driver = build("light", model=model, scratchpad_tokens=5)
    driver.remember(conversation())
    kinds = [kind_of(prompt) for prompt, _ in model.asked]
    assert kinds.count("condense") == 2
    pad = [item["text"] for item in driver.call("dump") if item["kind"] == "scratchpad"]
    assert pad == ["short"]
    assert driver.ask(Query("What?")).notes == {"scratchpad": "condensed, because it was too long"}


def test_empty_condensation_keeps_the_notes(build: Builder) -> None:
    model = by_kind(facts="a", notes="one two three four five", condense=" ", filter="yes")
    driver = build("light", model=model, scratchpad_tokens=10)
    driver.remember(conversation())
    pad = [item for item in driver.call("dump") if item["kind"] == "scratchpad"]
    assert len(pad) == 5


def test_empty_reply_is_a_loss_but_reply_of_nothing_is_not(build: Builder) -> None:
    driver = build("light", model=by_kind(facts="(nothing)", notes="(nothing)", filter="no"))
    driver.remember(conversation())
    assert driver.call("health").lost == 0 and driver.call("dump") == []
    assert driver.ask(Query("Who is Biscuit?")).retrieved

    driver = build("light", model=by_kind(facts="a", notes="", filter="no"))
    driver.remember(conversation())
    assert driver.call("health").lost == 9


def test_pair_that_does_not_fit_is_left_out_and_noted(build: Builder) -> None:
    chunks = conversation()
    chunks[0] = replace(chunks[0], content="Ann: Biscuit " * 1_000)
    driver = build("light", top_k=5, recent_pairs=0, context_tokens=1_000)
    driver.remember(chunks)
    answer = driver.ask(Query("Who is Biscuit?"))
    assert answer.retrieved is not None
    assert all("D1:1" not in chunk.turn_ids for chunk in answer.retrieved)
    assert answer.notes == {"episodes": "some did not fit into context_tokens"}


def test_very_long_message_is_cut_in_the_prompt(build: Builder) -> None:
    endless = MemoryChunk("m0", "user: " + "word " * 50_000, None, "s1", ("m0",), ("user",))
    model = Writer(echo)
    build("light", model=model).remember([endless])
    prompt = model.asked[0][0]
    assert isinstance(prompt, NotesPrompt) and len(prompt.said[0]) == 70_000


def test_loaded_memory_answers_identically(build: Builder, folder: Path) -> None:
    model = by_kind(facts="a", notes="one two three four five", condense="short", filter="yes")
    driver = build("light", model=model, scratchpad_tokens=5)
    driver.remember(conversation())
    driver.call("save", folder)
    loaded = build("light", model=model, scratchpad_tokens=5)
    loaded.call("load", folder)
    question = Query("Who is Biscuit?")
    assert loaded.ask(question) == driver.ask(question)


@pytest.mark.parametrize("name", ["fact_tokens", "scratchpad_tokens", "context_tokens"])
def test_settings_without_room_are_refused(build: Builder, name: str) -> None:
    with pytest.raises(UserError, match=rf"system\.{name} must be above 0"):
        build("light", {name: 0})
    with pytest.raises(UserError, match=r"system\.recent_pairs must be at least 0"):
        build("light", recent_pairs=-1)
