"""full_history, last_k, semantic_recall, working_memory and combined: the configurations of
chat-memory frameworks.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from memeval.errors import UserError
from memeval.llm.form import field_names
from memeval.llm.memory_prompts import WorkingMemoryPrompt
from memeval.llm.prompts import load_builtin
from memeval.llm.tokens import count_tokens
from memeval.records import Query, Role
from memeval.runs.compose.config import compose_config
from memeval.systems.registry import settings_of, system_class

from .conftest import Builder, ScriptedModel, by_session, conversation

TEXTS = [unit.text for unit in conversation()]
TEMPLATE = "# People\n- Pets:\n- Work:\n# Ahead\n- Plans:"


def filled(**fields: str) -> str:
    """A reply that fills the template."""
    return "\n".join(
        [
            "# People",
            *(line for name in ("Pets", "Work") for line in (f"- {name}:", fields.get(name, ""))),
            "# Ahead",
            "- Plans:",
            fields.get("Plans", ""),
        ]
    )


def test_full_history_is_in_order_and_drops_the_oldest_over_budget(build: Builder) -> None:
    whole, cut = (
        build("full_history"),
        build("full_history", max_context_tokens=sum(map(count_tokens, TEXTS[-2:]))),
    )
    for driver in (whole, cut):
        driver.remember(conversation(), compress_after=5)
    assert whole.ask(Query("Who?")).notes == {}
    assert cut.ask(Query("Who?")).notes["cut_chunks"] == 7
    assert whole.reader.contexts == [TEXTS]
    assert cut.reader.contexts == [TEXTS[-2:]]


@pytest.mark.parametrize(("last", "shown"), [(1, TEXTS[-1:]), (6, TEXTS[-6:]), (50, TEXTS)])
def test_last_k_shows_the_last_messages_across_sessions(
    build: Builder, last: int, shown: list[str]
) -> None:
    driver = build("last_k", last_messages=last, top_k=1)
    driver.remember(conversation())
    answer = driver.ask(Query("puppy"))
    assert driver.reader.contexts == [shown]
    assert answer.retrieved is None
    assert answer.ranking is None


@pytest.mark.parametrize(
    ("reach", "shown"), [(0, [3]), (1, [2, 3, 4]), (2, [1, 2, 3, 4]), (9, [0, 1, 2, 3, 4])]
)
def test_neighbours_come_from_the_same_session(
    build: Builder, reach: int, shown: list[int]
) -> None:
    driver = build("semantic_recall", top_k=1, recall={"message_range": reach}, last_messages=0)
    driver.remember(conversation())
    answer = driver.ask(Query("Which violinist is in Lisbon?"))
    assert [unit.turn_ids for unit in answer.retrieved or ()] == [("D1:4",)]
    assert driver.reader.contexts == [[TEXTS[place] for place in shown]]


def test_shared_neighbours_are_shown_once_in_order_of_time(build: Builder) -> None:
    driver = build("semantic_recall", top_k=3, recall={"message_range": 1}, last_messages=0)
    driver.remember(conversation())
    answer = driver.ask(Query("the bakery sells cinnamon rolls and sourdough bread"))
    places = [TEXTS.index(text) if text != TEXTS[-1] else 8 for text in driver.reader.contexts[-1]]
    assert places == sorted(set(places))
    assert len(answer.retrieved or ()) == 3
    assert (answer.retrieved or ())[0].turn_ids[0].startswith("D2:")


@pytest.mark.parametrize(("top_k", "own", "hits"), [(3, None, 3), (5, 2, 2), (2, 5, 2)])
def test_top_k_limits_the_number_of_hits(
    build: Builder, top_k: int, own: int | None, hits: int
) -> None:
    driver = build("semantic_recall", top_k=top_k, recall={"top_k": own})
    driver.remember(conversation())
    answer = driver.ask(Query("puppy"))
    assert len(answer.retrieved or ()) == hits
    assert len(answer.ranking or ()) == len(conversation())
    assert answer.notes == ({"recall": "top_k=2 bounds recall.top_k=5"} if own == 5 else {})


@pytest.mark.parametrize("name", ["semantic_recall", "combined"])
def test_scope_thread_recalls_nothing_and_notes_it(build: Builder, name: str) -> None:
    driver = build(name, recall={"scope": "thread"})
    driver.remember(conversation())
    answer = driver.ask(Query("puppy"))
    assert answer.retrieved == ()
    assert answer.ranking == ()
    assert answer.notes == {
        "recall": "recall.scope=thread recalls nothing, because every question opens a new thread"
    }


def test_scope_does_not_change_what_is_stored(build: Builder, folder: Path) -> None:
    resource, thread = (
        build("semantic_recall", last_messages=0),
        build("semantic_recall", last_messages=0, recall={"scope": "thread"}),
    )
    thread.remember(conversation())
    thread.call("save", folder)
    resource.call("load", folder)
    assert "Biscuit" in resource.ask(Query("puppy")).text


def test_recalled_and_last_messages_are_shown_once_each(build: Builder) -> None:
    driver = build("semantic_recall", top_k=1, last_messages=3, recall={"message_range": 0})
    driver.remember(conversation())
    answer = driver.ask(Query("Which violinist is in Lisbon?"))
    assert [unit.turn_ids for unit in answer.retrieved or ()] == [("D1:4",)]
    assert driver.reader.contexts == [[TEXTS[3], *TEXTS[-3:]]]
    assert settings_of("semantic_recall")().last_messages == 10  # type: ignore[attr-defined]


def test_form_template_is_given_as_text_or_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "form.txt"
    file.write_text(TEMPLATE, encoding="utf-8")
    kind = type(settings_of("working_memory")().working_memory)  # type: ignore[attr-defined]
    assert kind(template=str(file)).template == TEMPLATE
    assert kind(template=TEMPLATE.replace("\n", "\\n")).template == TEMPLATE
    assert kind(template=TEMPLATE).template == TEMPLATE
    with pytest.raises(UserError, match="can't be read"):
        kind(template=str(tmp_path))


def test_hint_for_a_form_can_be_pasted_into_the_command_line() -> None:
    kind = type(settings_of("working_memory")().working_memory)  # type: ignore[attr-defined]
    with pytest.raises(UserError) as raised:
        kind(template="Anything")

    hint = raised.value.hints[0]
    (word,) = shlex.split(hint.partition("for example:")[2])
    config = compose_config(["system=working_memory", word])
    assert "\n" not in word, "it is one line to paste"
    assert kind(template=config.system["working_memory"]["template"]).template == (
        "# People\n- Names:\n# Ahead\n- Plans:"
    )


def test_the_form_is_filled_after_each_session(build: Builder) -> None:
    model = ScriptedModel(
        lambda messages: filled(
            Pets="Ann: a puppy", Plans="Bob: a bakery" if len(model.calls) > 1 else ""
        )
    )
    driver = build(
        "working_memory", model=model, working_memory={"template": TEMPLATE}, last_messages=2
    )
    driver.remember(conversation())
    prompts = [prompt for prompt, _, _ in model.calls if isinstance(prompt, WorkingMemoryPrompt)]
    assert [prompt.chunks for prompt in prompts] == [tuple(TEXTS[:5]), tuple(TEXTS[5:])]
    assert [prompt.template for prompt in prompts] == [TEMPLATE] * 2
    assert prompts[0].previous == ""
    assert prompts[1].previous == "# People\n- Pets:\nAnn: a puppy\n- Work:\n# Ahead\n- Plans:"
    assert {(role, seed) for _, role, seed in model.calls} == {(Role.INGEST, 7)}
    driver.ask(Query("Who?"))
    form = "# People\n- Pets:\nAnn: a puppy\n- Work:\n# Ahead\n- Plans:\nBob: a bakery"
    assert driver.reader.contexts == [[form, *TEXTS[-2:]]]
    health = driver.call("health")
    assert (health.asked, health.lost) == (len(TEXTS), 0)


def test_a_long_session_fills_the_form_in_several_calls(build: Builder) -> None:
    replies = [filled(Pets="Ann: a puppy"), "- Work:\nBob: a bank", "- Plans:\nBob: a bakery"]
    model = ScriptedModel(lambda messages: replies[len(model.calls) - 1])
    driver = build(
        "working_memory",
        model=model,
        working_memory={
            "template": TEMPLATE,
            "batch_tokens": sum(map(count_tokens, TEXTS[:4])),
        },
    )
    driver.remember(conversation()[:7])
    prompts = [prompt for prompt, _, _ in model.calls if isinstance(prompt, WorkingMemoryPrompt)]
    assert [prompt.chunks for prompt in prompts] == [
        tuple(TEXTS[:4]),
        tuple(TEXTS[4:5]),
        tuple(TEXTS[5:7]),
    ]
    assert "Ann: a puppy" in prompts[1].previous
    driver.ask(Query("Who?"))
    assert driver.reader.contexts[-1][0] == filled(
        Pets="Ann: a puppy", Work="Bob: a bank", Plans="Bob: a bakery"
    )


def test_reply_cannot_drop_headings_or_earlier_field_content(build: Builder) -> None:
    replies = [
        filled(Pets="Ann: a puppy", Work="Bob: a bank"),
        "Sure! Here it is:\n- **Work:** Bob: a bakery\n# Notes\nnothing else",
    ]
    model = ScriptedModel(lambda messages: replies[len(model.calls) - 1])
    driver = build(
        "working_memory", model=model, working_memory={"template": TEMPLATE}, last_messages=1
    )
    driver.remember(conversation())
    answer = driver.ask(Query("Who?"))
    assert (
        driver.reader.contexts[-1][0]
        == "# People\n- Pets:\nAnn: a puppy\n- Work:\nBob: a bakery\n# Ahead\n- Plans:"
    )
    assert answer.notes == {
        "working memory": "1 of 2 replies left fields out, which kept their old content"
    }


@pytest.mark.parametrize("name", ["working_memory", "combined"])
@pytest.mark.parametrize("granularity", ["turn", "session"])
def test_built_in_form_keeps_its_headings_offline(
    build: Builder, name: str, granularity: str
) -> None:
    template = load_builtin("working_memory_template").user
    driver = build(name)
    driver.remember(conversation() if granularity == "turn" else by_session(conversation()))
    driver.ask(Query("Who?"))
    lines = driver.reader.contexts[-1][0].splitlines()
    assert [line for line in lines if line in template.splitlines()] == template.splitlines()
    assert any("Clara" in line for line in lines)
    assert len(field_names(template)) > 8


def test_loaded_form_calls_no_model(build: Builder, folder: Path) -> None:
    driver = build("combined")
    driver.remember(conversation())
    driver.call("save", folder)
    loaded = build(
        "combined", model=ScriptedModel(lambda messages: pytest.fail("no model should be asked"))
    )
    loaded.call("load", folder)
    assert loaded.ask(Query("puppy")) == driver.ask(Query("puppy"))
    assert loaded.reader.contexts == driver.reader.contexts


def test_combined_shows_form_recall_and_last_messages_once_each(build: Builder) -> None:
    driver = build("combined", last_messages=3, recall={"top_k": 1})
    driver.remember(conversation())
    answer = driver.ask(Query("Which violinist is in Lisbon?"))
    form, *messages = driver.reader.contexts[-1]
    assert form.startswith("# ")
    assert messages == [*TEXTS[2:5], *TEXTS[-3:]]
    # The form, the hit, then the others from the latest back.
    assert driver.reader.orders[-1] == [0, 2, 6, 5, 4, 3, 1]
    assert [unit.turn_ids for unit in answer.retrieved or ()] == [("D1:4",)]


def test_combined_has_its_own_defaults_for_recall() -> None:
    kind: Any = settings_of("combined")
    assert (kind().recall.top_k, kind().recall.message_range, kind().last_messages) == (5, 1, 20)
    assert (
        settings_of("semantic_recall")().recall.top_k,
        settings_of("semantic_recall")().recall.message_range,
    ) == (None, 2)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", ["full_history", "last_k", "semantic_recall", "working_memory", "combined"]
)
def test_only_systems_with_a_form_call_a_model_at_ingest(name: str) -> None:
    kind, settings = system_class(name), settings_of(name)()
    thinks = name in ("working_memory", "combined")
    assert kind.uses_llm_at_ingest(settings) == thinks
    assert kind.ingest_templates(settings) == (
        ("working_memory", "working_memory_template") if thinks else ()
    )


@pytest.mark.parametrize("name", ["last_k", "semantic_recall", "working_memory", "combined"])
def test_a_compression_of_the_window_loses_no_message(build: Builder, name: str) -> None:
    whole, cut = build(name), build(name)
    whole.remember(conversation())
    cut.remember(conversation(), compress_after=5)
    assert whole.ask(Query("puppy")) == cut.ask(Query("puppy"))


def test_window_of_an_agent_has_form_and_last_messages(build: Builder) -> None:
    """Under `reader=tools` they are shown with the question."""
    template = {"template": "# People\n- Pets:"}
    driver = build("combined", working_memory=template, last_messages=2)
    driver.remember(conversation())
    *last, form = [chunk.text for chunk in driver.call("window")]
    assert form.startswith("# People\n- Pets:\n")
    assert last == TEXTS[-2:]


@pytest.mark.parametrize("name", ["last_k", "working_memory"])
def test_system_without_search_refuses_reader_tools(name: str) -> None:
    kind = system_class(name)
    settings = settings_of(name)()
    kind.check_use(settings, reader="direct", writer="tools")
    with pytest.raises(UserError, match="searches nothing"):
        kind.check_use(settings, reader="tools", writer="chunks")
