"""cogcanvas: extraction, edges between artifacts, retrieval, and what is shown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memeval.config.schema import GranularityConfig
from memeval.datasets.granularity import chunks
from memeval.datasets.locate import build as dataset_of
from memeval.errors import ModelError, UserError
from memeval.llm.contract import Completion, Prompt
from memeval.llm.extractive import ExtractiveModel
from memeval.llm.memory_prompts import ExtractPrompt
from memeval.llm.metering import Ledger, metered
from memeval.llm.model import LanguageModel, MeteredModel
from memeval.llm.prompts import load_builtin
from memeval.records import MemoryChunk, Query, Role
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.retrieval.rerank import Reordering
from memeval.systems.cogcanvas.artifacts import KINDS, Artifact, read_artifacts, write_artifacts
from memeval.systems.cogcanvas.dates import day_of, resolve_dates
from memeval.systems.cogcanvas.extraction import Extractor, batches
from memeval.systems.cogcanvas.graph import Canvas
from memeval.systems.cogcanvas.quotes import find_nearest, find_verbatim
from memeval.systems.cogcanvas.reply import ItemsReply, read_reply
from memeval.systems.cogcanvas.retrieval import CanvasIndex, hybrid, shares
from memeval.systems.cogcanvas.settings import CogCanvasSettings
from memeval.testing.model import ScriptedModel

from .conftest import Builder, by_session, conversation

DEMO = Path(__file__).parents[2] / "data" / "demo" / "demo.json"
SAID = datetime(2023, 5, 8, 13, 56)


@cache
def demo(granularity: str) -> tuple[tuple[MemoryChunk, ...], ...]:
    return tuple(
        tuple(chunks(case, GranularityConfig(granularity)))
        for case in dataset_of("locomo", Path(), path=str(DEMO), allow_unpinned=True).cases()
    )


def extractor_of(model: LanguageModel, **rules: Any) -> Extractor:
    return Extractor(
        model=model,
        seed=0,
        settings=CogCanvasSettings(**rules),
    )


def extracted(
    units: Sequence[MemoryChunk], *, gleaning: bool = True, model: ScriptedModel | None = None
) -> tuple[list[Artifact], Extractor]:
    extractor = extractor_of(model or ScriptedModel(), gleaning=gleaning)
    return asyncio.run(extractor.extract(batches(units, 10, 1000))), extractor


def replying(*items: Any) -> ScriptedModel:
    return ScriptedModel(lambda prompt: json.dumps(items))


def item(quote: str, chunk: Any = 1, **more: Any) -> dict[str, Any]:
    return {
        "type": "key_fact",
        "content": "Something.",
        "quote": quote,
        "chunk": chunk,
        "date": "",
        "people": [],
        **more,
    }


def artifact(quote: str, kind: str = "event", **more: Any) -> Artifact:
    given: dict[str, Any] = {
        "content": quote,
        "speaker": "Ann",
        "turn_ids": ("D1:1",),
        "time": SAID,
        "dates": (),
        "people": (),
        "chunk_index": 0,
        "start": 0,
        "batch": 0,
    }
    return Artifact(kind=kind, quote=quote, **(given | more))


# Extraction


@pytest.mark.parametrize("granularity", ["turn", "round", "session"])
def test_every_quote_in_the_demo_set_is_verbatim_in_its_turn(
    granularity: str,
) -> None:
    turns = {
        (number, unit.turn_ids[0]): unit
        for number, case in enumerate(demo("turn"))
        for unit in case
    }
    for number, units in enumerate(demo(granularity)):
        found, extractor = extracted(units)
        assert len(found) > len(demo("turn")[number]) / 2
        assert extractor.counts["dropped"] == 0
        for one in found:
            (turn,) = one.turn_ids
            said = turns[number, turn]
            assert one.quote in said.content
            assert one.time == said.time or granularity == "round"
            assert one.kind in KINDS
            assert said.content.startswith(f"{one.speaker}: ")
            assert units[one.chunk_index].content[one.start :].startswith(one.quote)


def test_relative_dates_in_a_quote_are_resolved_by_the_day_of_the_turn() -> None:
    found, _ = extracted(conversation())
    assert next(one for one in found if "Biscuit yesterday" in one.quote).dates == ("7 May 2023",)
    assert next(one for one in found if "last week" in one.quote).dates == (
        "The week before 8 May 2023",
    )


@pytest.mark.parametrize(
    ("quote", "claimed", "dates"),
    [
        ("I left yesterday", "1999-01-01", ("7 May 2023",)),
        ("I left at last", "2023-05-06", ("6 May 2023",)),
        ("I left at last", "June 2021", ("June 2021",)),
        ("I left at last", "recently", ()),
        ("I left at last", "", ()),
    ],
)
def test_date_from_the_model_is_used_only_if_the_quote_has_none(
    quote: str, claimed: str, dates: tuple[str, ...]
) -> None:
    assert resolve_dates(quote, SAID, claimed) == dates
    assert resolve_dates("yesterday", None, "") == ()


def test_gleaning_finds_more_and_keeps_what_was_found() -> None:
    units = demo("turn")[0]
    (once, first), (twice, second) = extracted(units, gleaning=False), extracted(units)
    assert set(once) < set(twice)
    assert second.counts["calls"] == 2 * first.counts["calls"] == 2 * len(batches(units, 10, 1000))


def test_second_pass_is_shown_artifacts_of_the_first() -> None:
    model = ScriptedModel()
    extracted(conversation(), model=model)
    first, second = (prompt for _, prompt in model.prompts)
    assert isinstance(first, ExtractPrompt)
    assert isinstance(second, ExtractPrompt)
    assert first.chunks == second.chunks == tuple(chunk.text for chunk in conversation())
    assert not first.known
    assert second.known
    assert all(role is Role.INGEST for role, _ in model.prompts)
    assert f"- {second.known[0]}\n" in second.messages()[1]["content"]


def test_wrong_chunk_and_loose_quote_are_repaired_and_invented_quote_dropped() -> None:
    units = conversation()
    model = replying(
        item("My sister Clara is a violinist in Lisbon", 2),
        item("i QUIT my job — at the bank", 6),
        item("Cinnamon rolls and a cake for the birthday of Biscuit", "8"),
        item("the moon is made of cheese", 1.5),
        item("", None),
        "no object",
        item("Ann: Norway must be lovely", 3, type="Person Attribute", people=["Ann", 7, "Norway"]),
    )
    found, extractor = extracted(units, gleaning=False, model=model)
    assert [(one.turn_ids, one.quote) for one in found] == [
        (("D1:3",), "Norway must be lovely"),
        (("D1:4",), "My sister Clara is a violinist in Lisbon"),
        (("D2:1",), "I quit my job at the bank"),
        (("D2:3",), "Cinnamon rolls, and a cake for Biscuit's birthday"),
    ]
    assert found[0].kind == "person_attribute"
    assert found[0].people == ("Norway",)
    assert extractor.counts == {"calls": 1, "repaired": 3, "dropped": 3}


def test_repeated_artifact_is_kept_once() -> None:
    found, extractor = extracted(
        conversation(),
        model=replying(item("I quit my job at the bank", 6), item("my job at the bank", 6)),
    )
    assert len(found) == 1
    assert extractor.counts["repeated"] == 3


def test_different_artifacts_from_one_sentence_are_kept() -> None:
    quote = "My sister Clara is a violinist in Lisbon"
    found, extractor = extracted(
        conversation(),
        gleaning=False,
        model=replying(
            item(quote, 4, type="relationship", content="Clara is Ann's sister."),
            item(quote, 4, type="person_attribute", content="Clara plays the violin."),
            item(quote, 4, content="Clara plays the violin."),
            item("violinist in Lisbon", 4, content="Clara lives in Lisbon, Portugal."),
        ),
    )
    kinds = ["relationship", "person_attribute", "key_fact", "key_fact"]
    assert [one.kind for one in found] == kinds
    assert extractor.counts == {"calls": 1}


def test_quote_is_attributed_to_its_turn_if_lines_can_be_separated() -> None:
    (session, _) = by_session(conversation())
    found = find_verbatim("I went hiking in Norway", session)
    assert found is not None
    assert (found.line.speaker, found.line.turn_ids) == ("Bob", ("D1:2",))
    loose = MemoryChunk("c", "a text about hiking", None, "s", ("D1:1", "D1:2"), ())
    whole = find_verbatim("about hiking", loose)
    assert whole is not None
    assert whole.line.turn_ids == ("D1:1", "D1:2")
    assert find_nearest("!!!", loose) is None


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("art", "They start.", None),
        ("art", "An artist.", None),
        ("ART", "It is art!", "art"),
        ("路由协议", "请先配置路由协议后再重启设备。", "路由协议"),
    ],
)
def test_loose_quote_is_of_whole_words_if_these_are_spaced(
    quote: str, text: str, found: str | None
) -> None:
    nearest = find_nearest(quote, MemoryChunk("c", text, None, "s", ("D1:1",), ()))
    assert (nearest and nearest.quote) == found


def test_escaped_control_characters_and_surrogates_can_be_saved(tmp_path: Path) -> None:
    escaped = item("I quit my job", 6, content="Ann\ud83d \x00quit\u2028it.", people=["Bo\ud83d"])
    found, _ = extracted(conversation(), gleaning=False, model=replying(escaped))
    write_artifacts(tmp_path, found, {})
    ((saved,), _) = read_artifacts(tmp_path)
    assert (saved.content, saved.people) == ("Ann\ufffd quit it.", ("Bo\ufffd",))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('[{"a": 1}, {"b": 2}]', ItemsReply(({"a": 1}, {"b": 2}), closed=True)),
        ('```json\n[{"a": 1}]\n```', ItemsReply(({"a": 1},), closed=True)),
        ('{"artifacts": [{"a": 1}]}', ItemsReply(({"a": 1},), closed=True)),
        ("[]", ItemsReply((), closed=True)),
        ('[{"a": 1}, {"b": "brok', ItemsReply(({"a": 1},), closed=False)),
        ('[{"a": "brok', None),
        ("there is nothing", None),
        ("", None),
    ],
)
def test_cut_reply_is_read_as_far_as_it_goes(text: str, read: ItemsReply | None) -> None:
    assert read_reply(text) == read


@pytest.mark.parametrize("deterministic", [True, False])
def test_unreadable_reply_is_counted_and_noted_with_the_answer(
    build: Builder, *, deterministic: bool
) -> None:
    model = ScriptedModel(lambda prompt: "I would rather not.")
    model.deterministic = deterministic  # if not, it is asked twice
    driver = build("cogcanvas", model=model)
    driver.remember(conversation())
    answer = driver.ask(Query("puppy"))
    assert answer.retrieved == ()
    assert answer.notes == {"extraction": "1 of 1 replies unreadable"}


def test_chunks_missing_from_a_cut_reply_are_requested_again() -> None:
    units = conversation()

    def reply(prompt: Prompt) -> str:
        assert isinstance(prompt, ExtractPrompt)
        whole = json.dumps(
            [item(unit.split(": ", 1)[1], number) for number, unit in enumerate(prompt.chunks, 1)]
        )
        return whole if len(whole) < 700 else whole[:700]

    class CutModel(ScriptedModel):
        async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
            completion = await super().complete(prompt, role=role, seed=seed)
            is_whole = completion.text.endswith("]")
            return replace(completion, finish_reason="stop" if is_whole else "length")

    model: Any = MeteredModel(CutModel(reply))
    with metered(Ledger()) as ledger:
        found, extractor = extracted(units, gleaning=False, model=model)

    assert ledger.calls > 1 and ledger.cut_calls == 0, "what was cut was asked for again"
    assert {turn for one in found for turn in one.turn_ids} == {
        turn for unit in units for turn in unit.turn_ids
    }
    assert extractor.counts["cut"] == extractor.counts["calls"] - 1 > 0


def test_batches_cover_all_chunks_within_the_limits() -> None:
    units = demo("turn")[0]
    for most_chunks, most_tokens in ((10, 10**6), (1, 10**6), (10**6, 200), (7, 150), (10, 1)):
        cut = batches(units, most_chunks, most_tokens)
        assert [number for batch in cut for number, _ in batch] == list(range(len(units)))
        assert max(map(len, cut)) <= most_chunks
        if most_tokens == 1:
            assert all(len(batch) == 1 for batch in cut)


def test_batches_are_requested_concurrently_and_a_failure_fails_the_ingest() -> None:
    class Slow(ExtractiveModel):
        under_way = peak = 0

        async def complete(self, prompt: Prompt, *, role: Role, seed: int = 0) -> Completion:
            self.under_way += 1
            self.peak = max(self.peak, self.under_way)
            await asyncio.sleep(0)
            self.under_way -= 1
            return await super().complete(prompt, role=role, seed=seed)

    slow = Slow()
    cut = batches(demo("turn")[0], 10, 1000)
    asyncio.run(extractor_of(slow).extract(cut))
    assert slow.peak == len(cut) > 5
    with pytest.raises(ModelError):
        extracted(conversation(), model=ScriptedModel(fails=True))


# Event chain (the published rules are in test_cogcanvas_published)


def canvas_of(*artifacts: Artifact) -> Canvas:
    """A graph that has only the event chain: artifacts from one call have no other edges."""
    texts = [one.content_quote for one in artifacts]
    vectors = asyncio.run(CharTfidfEmbedder(width=2048).embed(texts))
    return Canvas(artifacts, vectors, CogCanvasSettings(event_chain=True))


def test_events_are_chained_in_the_order_of_their_dates() -> None:
    canvas = canvas_of(
        artifact("Otto sailed away", people=("Otto",), dates=("9 June 2023",)),
        artifact("Otto packed his trunk", people=("Otto",), dates=("7 May 2023",)),
        artifact("It rained", people=()),
        artifact("Otto came back", people=("Otto",), dates=("July 2023",)),
    )
    (chain,) = (edges for edges in canvas.edges if len(edges.pairs))
    assert (chain.rule, sorted(chain.pairs.tolist())) == ("chain", [[0, 3], [1, 0]])
    assert day_of(("The week before 9 June 2023",), None) == datetime(2023, 6, 2).date()


def test_score_decays_with_each_hop_and_edges_work_both_ways() -> None:
    chain = [
        artifact(name, people=("Otto",), dates=(f"{day} May 2023",))
        for day, name in enumerate(("aaa", "bbb", "ccc", "ddd"), 1)
    ]
    canvas = canvas_of(*chain)
    for seeds, hops, temporal, reached in (
        ({0: 1}, 2, True, {0: 1, 1: 0.8, 2: 0.64}),
        ({1: 0.1, 3: 1}, 3, True, {0: 0.512, 1: 0.64, 2: 0.8, 3: 1}),
        ({0: 1}, 3, False, {0: 1}),
        ({}, 3, True, {}),
    ):
        assert canvas.expand(seeds, hops, temporal=temporal) == pytest.approx(reached)


# Retrieval and what is shown


def test_query_vector_of_another_width_is_a_clear_error() -> None:
    index = CanvasIndex(
        artifacts=[artifact("Otto sailed away")],
        texts=["Otto sailed away"],
        counts={},
        vectors=np.ones((1, 3), dtype=np.float32),
        embedder=CharTfidfEmbedder(width=5),
        settings=CogCanvasSettings(),
    )
    with pytest.raises(ModelError, match="has 5 numbers, but those of the memory have 3"):
        asyncio.run(index.scores("Otto", words=False, normalised=False))


def test_hybrid_score_mixes_scores_relative_to_the_best() -> None:
    mixed = hybrid(shares(np.array([0.5, 0.25, -0.1])), np.array([0.0, 4.0, 2.0]))
    assert mixed.tolist() == pytest.approx([0.7, 0.65, 0.15])
    assert shares(np.zeros(3)).tolist() == [0, 0, 0]
    assert shares(np.zeros(0)).tolist() == []


def test_artifact_text_has_date_type_quote_and_additional_content() -> None:
    one = artifact(
        "I adopted a puppy yesterday",
        content="Ann adopted Biscuit the puppy",
        dates=("7 May 2023",),
    )
    assert one.text == (
        "[1:56 pm on 8 May 2023] event told by Ann: I adopted a puppy yesterday "
        "(7 May 2023: Ann adopted Biscuit the puppy)"
    )
    assert one.full_text == (
        "Ann: I adopted a puppy yesterday\nAnn adopted Biscuit the puppy\n7 May 2023"
    )
    assert artifact("It rained", "key_fact", time=None, speaker="").text == "key fact: It rained"


def test_window_and_artifacts_are_shown_after_rolling_compressions(build: Builder) -> None:
    units = conversation()
    settings = {"top_k": 2, "adaptive_k": False, "show_window": True}
    driver = build("cogcanvas", settings, model=ExtractiveModel())
    driver.call("reset")
    for number, unit in enumerate(units, 1):
        driver.call("ingest", unit)
        if number in (3, 6):
            driver.call("compress", units[number - 2 : number])
    driver.call("consolidate")
    answer = driver.ask(Query("the puppy Biscuit that Ann adopted"))
    assert answer.retrieved is not None
    assert answer.retrieved[0].turn_ids == ("D1:1",), "what left the window lives on as an artifact"
    assert driver.reader.contexts[-1] == [unit.text for unit in answer.retrieved] + [
        unit.text for unit in units[4:]
    ]


@pytest.mark.parametrize(("index_text", "first"), [("full", "D1:1"), ("content_quote", "D2:3")])
def test_speaker_is_found_only_if_the_full_text_is_searched(
    build: Builder, index_text: str, first: str
) -> None:
    driver = build("cogcanvas", {"index_text": index_text}, model=ExtractiveModel())
    driver.remember(conversation())
    found = driver.ask(Query("Ann")).retrieved
    assert found and found[0].turn_ids == (first,)


def test_a_small_top_k_is_raised_for_questions_of_time_and_of_reasons(build: Builder) -> None:
    driver = build("cogcanvas", {"top_k": 2}, model=ExtractiveModel())
    driver.remember(demo("turn")[0])
    asked = ("Who is Gustav?", "When did Gustav move in?", "Why did Gustav move in?")
    answers = [driver.ask(Query(question)) for question in asked]
    assert [len(answer.retrieved or ()) for answer in answers] == [2, 12, 15]


@pytest.mark.parametrize("pool", ["candidates", "expanded"])
def test_neighbours_of_the_candidates_are_reranked_if_the_pool_is_expanded(
    build: Builder, monkeypatch: pytest.MonkeyPatch, pool: str
) -> None:
    reorder, counts = Reordering.reorder, []

    async def counting(self: Reordering, query: str, ranked: Any) -> list[tuple[int, float]]:
        counts.append(len(ranked))
        return await reorder(self, query, ranked)

    monkeypatch.setattr(Reordering, "reorder", counting)
    settings = {"rerank_candidates": 2, "rerank_pool": pool}
    driver = build("cogcanvas", settings, model=ExtractiveModel(), reranker="lexical")
    driver.remember(demo("turn")[0])
    driver.ask(Query("Which food does Gustav refuse?"))
    assert counts == [2] if pool == "candidates" else counts[0] > 2


@pytest.mark.parametrize("compress_after", [3, 9, 99])
def test_window_is_not_shown_by_default(build: Builder, compress_after: int) -> None:
    settings = {"top_k": 2, "adaptive_k": False}
    driver = build("cogcanvas", settings, model=ExtractiveModel())
    driver.remember(conversation(), compress_after=compress_after)
    driver.ask(Query("puppy"))
    assert len(driver.reader.contexts[-1]) == 2


def test_loaded_canvas_answers_identically_without_a_model(build: Builder, folder: Path) -> None:
    driver = build("cogcanvas", model=ExtractiveModel())
    driver.remember(demo("turn")[0], compress_after=60)
    driver.call("save", folder)
    assert {path.name for path in folder.iterdir()} == {
        "artifacts.json",
        "chunks.json",
        "vectors.npy",
    }
    loaded = build("cogcanvas")
    loaded.call("load", folder)
    queries = [
        Query("When did Gustav move in?"),
        Query("Which food does Gustav refuse?"),
        Query("zzz"),
    ]
    assert [loaded.ask(query) for query in queries] == [driver.ask(query) for query in queries]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_units": 0}, "system.batch_units must be above 0"),
        ({"graph_hops": 0}, "system.graph_hops must be above 0"),
        ({"top_k": 0}, "system.top_k must be above 0"),
        ({"reference_threshold": 0.0}, "system.reference_threshold must be above 0"),
        ({"glean_overlap": 1.5}, "system.glean_overlap must be at most 1"),
        ({"todo_window": -1}, "system.todo_window must be at least 0"),
        ({"reranker": "lexicol"}, "unknown value of system.reranker"),
    ],
)
def test_invalid_setting_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        CogCanvasSettings(**given)


@pytest.mark.parametrize("name", ["extract", "glean"])
def test_extraction_templates_contain_no_example(name: str) -> None:
    template = load_builtin(name)
    assert '"quote": "..."' in template.system, "few-shot examples of the original held test items"
    assert {kind for kind in KINDS if f"- {kind}:" in template.system} == set(KINDS)
