"""The real mem0ai library, in verbatim mode and with a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memeval.errors import ModelError, UserError
from memeval.llm.contract import ChatPrompt
from memeval.records import CorrectRequest, ForgetRequest, Query, Role
from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.systems.external.mem0 import Mem0, Mem0Settings
from memeval.systems.external.mem0_library import describe_search, has_keywords, prepare_import

from .conftest import DATES, Builder, ScriptedModel, conversation


def extraction(messages: list[dict[str, str]]) -> str:
    """One memory per call: the last characters of the new message, as a model would reword them."""
    new = messages[-1]["content"].split("## New Messages\n")[1].split("\n##")[0]
    return json.dumps(
        {
            "memory": [
                {
                    "id": "0",
                    "text": f"It is known that {new.strip()[-30:]}",
                    "attributed_to": "user",
                }
            ]
        }
    )


def test_verbatim_mode_calls_no_model_and_returns_chunks(build: Builder) -> None:
    driver = build("mem0", top_k=2)
    driver.remember(conversation())
    answer = driver.ask(Query("Where does Clara play the violin?"))
    assert answer.retrieved is not None
    assert answer.retrieved[0].text in {chunk.text for chunk in conversation()}
    assert answer.retrieved[0].turn_ids == ("D1:4",)
    assert answer.notes == {"mem0_search": describe_search()}


class WordIds:
    """Stands in for fastembed's sparse vectors."""

    def __init__(self, model_name: str) -> None:
        pass

    def embed(self, texts: Sequence[str]) -> list[SimpleNamespace]:
        vectors = []
        for text in texts:
            ids = np.unique([zlib.crc32(word.encode()) for word in text.lower().split()])
            vectors.append(SimpleNamespace(indices=ids, values=np.ones(len(ids))))
        return vectors


class Absent:
    """fastembed without a network: the library is there, and its model is not."""

    def __init__(self, model_name: str) -> None:
        raise ValueError(f"Could not load model {model_name} from any source.")


@pytest.fixture
def keyword_search() -> Iterator[None]:
    has_keywords.cache_clear()
    yield
    has_keywords.cache_clear()


@pytest.mark.usefixtures("keyword_search")
def test_memory_with_keywords_can_be_saved(
    build: Builder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(SparseTextEmbedding=WordIds))
    query = Query("Where does Clara play the violin?")
    driver, loaded = build("mem0", top_k=2), build("mem0", top_k=2)
    driver.remember(conversation())
    driver.call("save", folder)
    loaded.call("load", folder)
    assert describe_search().startswith("by vectors and keywords;")
    assert loaded.ask(query) == driver.ask(query)


@pytest.mark.usefixtures("keyword_search")
def test_keyword_search_is_off_if_its_model_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", SimpleNamespace(SparseTextEmbedding=Absent))
    assert describe_search().startswith("by vectors; not installed: keywords (needs fastembed and")


def test_threshold_leaves_out_dissimilar_chunks(build: Builder) -> None:
    loose, strict = build("mem0", threshold=0.0, top_k=9), build("mem0", threshold=0.3, top_k=9)
    for driver in (loose, strict):
        driver.remember(conversation())
    query = Query("Where does Clara play the violin?")
    assert len(strict.ask(query).retrieved or ()) < len(loose.ask(query).retrieved or ())
    assert all((unit.score or 0) >= 0.3 for unit in strict.ask(query).retrieved or ())


def test_infer_mode_calls_the_model_once_per_chunk(build: Builder) -> None:
    model = ScriptedModel(extraction)
    driver = build("mem0", infer=True, model=model)
    driver.remember(conversation())
    assert len(model.calls) == len(conversation())
    for prompt, role, seed in model.calls:
        assert isinstance(prompt, ChatPrompt)
        assert prompt.options == {"response_format": {"type": "json_object"}}
        assert (role, seed) == (Role.INGEST, 7)


def test_inferred_memories_carry_the_date_and_turn_of_their_chunk(build: Builder) -> None:
    driver = build("mem0", infer=True, model=ScriptedModel(extraction), top_k=1)
    driver.remember(conversation())
    answer = driver.ask(Query("a cake for Biscuit's birthday"))
    assert answer.retrieved is not None
    assert answer.retrieved[0].turn_ids == ("D2:3",)
    assert answer.retrieved[0].text.startswith("[9:05 am on 20 June 2023] It is known that")


def test_prompt_has_the_date_of_the_turn_and_not_the_current_date(build: Builder) -> None:
    model = ScriptedModel(extraction)
    driver = build("mem0", infer=True, model=model)
    driver.remember(conversation())
    for (prompt, _, _), chunk in zip(model.calls, conversation(), strict=True):
        assert chunk.time is not None
        asked = prompt.messages()[-1]["content"]
        assert f"## Observation Date\n{chunk.time.date().isoformat()}" in asked
        assert f"## Current Date\n{chunk.time.date().isoformat()}" in asked
        assert date.today().isoformat() not in asked


def test_equal_runs_send_equal_prompts(build: Builder) -> None:
    sent = []
    for _ in range(2):
        model = ScriptedModel(extraction)
        build("mem0", infer=True, model=model).remember(conversation())
        sent.append([prompt.messages() for prompt, _, _ in model.calls])
    assert sent[0] == sent[1]


def test_inferred_memories_are_dumped(build: Builder, folder: Path) -> None:
    driver, loaded = (build("mem0", infer=True, model=ScriptedModel(extraction)) for _ in range(2))
    driver.remember(conversation())
    items = driver.call("dump")
    assert items[0] == {
        "kind": "fact",
        "text": "It is known that puppy called Biscuit yesterday",
        "turn_ids": ["D1:1"],
        "time": DATES[0].isoformat(),
    }
    driver.call("save", folder)
    loaded.call("load", folder)
    assert loaded.call("dump") == items


def test_inferred_memories_are_saved(build: Builder, folder: Path) -> None:
    driver = build("mem0", infer=True, model=ScriptedModel(extraction))
    driver.remember(conversation())
    driver.call("save", folder)
    loaded = build("mem0", infer=True)
    loaded.call("load", folder)
    for text in ("Biscuit's birthday", "violinist", "Bye"):
        assert loaded.ask(Query(text)) == driver.ask(Query(text))


@pytest.mark.parametrize("infer", [False, True])
def test_forget_and_correct_affect_only_the_user_who_asks(
    build: Builder, folder: Path, infer: bool
) -> None:
    """Two users say the same in one store, and a repeated import brings back what was forgotten."""
    driver = build("mem0", infer=infer, model=ScriptedModel(extraction))
    own, others = (
        [replace(chunk, user=user) for chunk in conversation()] for user in ("user-1", "user-2")
    )
    driver.remember([*others, *own])

    def found(text: str, user: str) -> list[str]:
        results = driver.call("probe", Query(text, user=user), 20)
        return [result.text for result in results if text in result.text]

    assert len(found("Biscuit", "user-1")) == len(found("Biscuit", "user-2")) == 2
    request = ForgetRequest(words="Forget Biscuit.", about="Biscuit", user="user-1")
    assert driver.call("forget", request) == 2
    assert driver.call("forget", request) == 0
    change = CorrectRequest(words="", old="birthday", new="wedding", user="user-2")
    assert driver.call("correct", change) == 1
    for _ in range(2):
        assert (found("Biscuit", "user-1"), len(found("Biscuit", "user-2"))) == ([], 2)
        assert (found("wedding", "user-1"), len(found("wedding", "user-2"))) == ([], 1)
        assert found("birthday", "user-2") == []
        driver.call("consolidate")

    driver.call("save", folder)
    driver.call("load", folder)
    assert (found("Biscuit", "user-1"), len(found("wedding", "user-2"))) == ([], 1)
    for chunk in own:
        driver.call("ingest", chunk)

    driver.call("consolidate")
    assert len(found("Biscuit", "user-1")) == 2
    assert len(found("wedding", "user-2")) == 1


def test_a_corrected_memory_that_is_extracted_again_is_stored_once(build: Builder) -> None:
    def reply(messages: list[dict[str, str]]) -> str:
        return json.dumps({"memory": [{"id": "0", "text": f"The puppy is called {name}"}]})

    name = "Biscuit"
    driver = build("mem0", infer=True, model=ScriptedModel(reply))
    driver.remember(conversation()[:1])
    assert driver.call("correct", CorrectRequest(words="", old="Biscuit", new="Cookie")) == 1

    name = "Cookie"
    driver.call("ingest", conversation()[1])
    driver.call("consolidate")
    assert [item["text"] for item in driver.call("dump")] == ["The puppy is called Cookie"]
    assert driver.call("health").lost == 0


@pytest.mark.parametrize("user", ["", "user-1"])
def test_a_memory_that_was_saved_at_an_earlier_checkpoint_can_be_changed(
    user: str, build: Builder, folder: Path
) -> None:
    saved, loaded = (build("mem0", case_id=f"ann@{name}") for name in ("march", "april"))
    saved.remember([replace(chunk, user=user) for chunk in conversation()])
    saved.call("save", folder)
    loaded.call("load", folder)

    query = Query("Biscuit", user=user)
    assert loaded.call("probe", query, 5) == saved.call("probe", query, 5) != []
    request = CorrectRequest(words="", old="Biscuit", new="Cookie", user=user)
    assert loaded.call("correct", request) == saved.call("correct", request) > 0
    forget = ForgetRequest(words="", about="Cookie", user=user)
    assert loaded.call("forget", forget) == saved.call("forget", forget) > 0


def test_a_memory_that_is_lost_for_one_user_is_stored_again(
    build: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if another user stored the same text. mem0 drops an entry that its store refuses
    twice.
    """
    # Imported only now: mem0 contacts its host unless that is disabled before the import.
    prepare_import()
    from memeval.systems.external.mem0_plugs import UnitQdrant

    refused: list[str] = []

    def insert(self: UnitQdrant, vectors: Any, payloads: Any = None, ids: Any = None) -> None:
        of_second = [one["user_id"] for one in payloads if one["user_id"].endswith("user-2")]
        if "Biscuit" in str(payloads) and of_second and len(refused) < 2:
            refused.extend(of_second[:1])
            raise ValueError("busy")

        of_class(self, vectors, payloads, ids)

    of_class = UnitQdrant.insert
    monkeypatch.setattr(UnitQdrant, "insert", insert)
    texts = ["The puppy is called Biscuit", "Ann bakes"]
    reply = json.dumps({"memory": [{"text": text} for text in texts]})
    driver = build("mem0", infer=True, model=ScriptedModel(lambda messages: reply))
    chunk = conversation()[0]
    driver.remember([replace(chunk, user=user) for user in ("user-1", "user-2")])

    assert len(refused) == 2
    assert driver.call("health").lost == 0
    assert sorted(item["text"] for item in driver.call("dump")) == sorted(texts * 2)


@pytest.mark.parametrize("reply", ["I can't help with that.", '{"memory": [', ""])
def test_replies_without_json_are_counted(build: Builder, folder: Path, reply: str) -> None:
    driver = build("mem0", infer=True, model=ScriptedModel(lambda messages: reply))
    driver.remember(conversation()[:3])
    assert driver.ask(Query("Biscuit")).notes["mem0_unparsed_replies"] == 3
    assert driver.ask(Query("Biscuit")).retrieved == ()
    driver.call("save", folder)
    loaded = build("mem0", infer=True)
    loaded.call("load", folder)
    assert loaded.ask(Query("Biscuit")) == driver.ask(Query("Biscuit"))


def test_empty_list_of_memories_is_not_an_unparsed_reply(build: Builder) -> None:
    driver = build("mem0", infer=True, model=ScriptedModel(lambda messages: '{"memory": []}'))
    driver.remember(conversation()[:3])
    assert "mem0_unparsed_replies" not in driver.ask(Query("Biscuit")).notes


def test_model_error_is_raised_unchanged_and_not_logged(
    build: Builder, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(messages: list[dict[str, str]]) -> str:
        raise ModelError("refused")

    with pytest.raises(ModelError, match="refused"):
        build("mem0", infer=True, model=ScriptedModel(fail)).remember(conversation())

    assert not caplog.records


@pytest.mark.parametrize("calls_as_before", [2, 100])
def test_change_of_vector_width_is_a_clear_error(
    build: Builder, monkeypatch: pytest.MonkeyPatch, calls_as_before: int
) -> None:
    """While memories are stored, and when a question is asked."""
    calls = []

    async def embed(self: CharTfidfEmbedder, texts: Sequence[str]) -> Any:
        vectors = await of_class(self, texts)
        calls.append(len(texts))
        return vectors if len(calls) <= calls_as_before else 0 * vectors[:, :8]

    of_class = CharTfidfEmbedder.embed
    monkeypatch.setattr(CharTfidfEmbedder, "embed", embed)
    driver = build("mem0", infer=True, model=ScriptedModel(extraction))

    with pytest.raises(ModelError, match="has 8 numbers, but those of the memory have 512"):
        driver.remember(conversation())
        calls_as_before = 0
        driver.ask(Query("What is the puppy called?"))


@pytest.mark.parametrize("infer", [False, True])
def test_vectors_that_are_not_of_length_1_are_refused(
    build: Builder, monkeypatch: pytest.MonkeyPatch, infer: bool
) -> None:
    """mem0's store is searched by the dot product, which ranks them wrongly."""

    async def embed(self: CharTfidfEmbedder, texts: Sequence[str]) -> Any:
        return 3 * await of_class(self, texts)

    of_class = CharTfidfEmbedder.embed
    monkeypatch.setattr(CharTfidfEmbedder, "embed", embed)
    driver = build("mem0", infer=infer, model=ScriptedModel(extraction))
    with pytest.raises(ModelError, match="not of length 1"):
        driver.remember(conversation())


def test_scores_do_not_depend_on_earlier_questions(build: Builder) -> None:
    driver = build("mem0", top_k=9)
    driver.remember(conversation())
    first = driver.ask(Query("What is the puppy called?"))
    for number in range(20):
        driver.ask(Query(f"bakery {number}"))
    assert driver.ask(Query("What is the puppy called?")) == first


def test_equal_memories_are_found_in_order_even_after_some_were_deleted(
    build: Builder, folder: Path
) -> None:
    driver = build("mem0", threshold=0.0, top_k=9)
    chunks = conversation()
    greeting = replace(chunks[0], content="Ann: Good morning.")
    equal = [replace(greeting, turn_ids=(f"D3:{number}",)) for number in range(100)]
    driver.remember([*chunks, *equal])
    assert driver.call("forget", ForgetRequest(words="", about="Biscuit")) == 2
    driver.call("save", folder)
    again = build("mem0", threshold=0.0, top_k=9)
    again.call("load", folder)

    for asked in (driver, again):
        found = asked.ask(Query("Good morning.")).retrieved or ()
        assert [entry.turn_ids for entry in found] == [chunk.turn_ids for chunk in equal[:9]]


def test_missing_library_is_refused_with_an_install_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mem0", None)
    with pytest.raises(UserError, match="needs the mem0ai library") as raised:
        Mem0.resolve_settings(Mem0Settings(), has_language_model=False)
    assert raised.value.hints == ("install it:  pip install 'memeval-bench[mem0]'",)


OFFLINE = """
import asyncio, os, sys, tempfile

asked = []

def watch(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect"):
        asked.append((event, repr(arguments)))

sys.addaudithook(watch)

from memeval.retrieval.embedding.tfidf import CharTfidfEmbedder
from memeval.records import MemoryChunk, Query
from memeval.systems.base import SystemContext, ReaderReply
from memeval.systems.external.mem0 import Mem0, Mem0Settings

class Reader:
    async def answer(self, query, context, *, order=()):
        return ReaderReply("|".join(context), None, 0)

async def main():
    loop = asyncio.get_running_loop()
    def run_sync(awaitable):
        async def wait():
            return await awaitable
        return asyncio.run_coroutine_threadsafe(wait(), loop).result()
    parts = SystemContext(Reader(), None, CharTfidfEmbedder(width=256), 2, 0, "case 1", run_sync)
    system = Mem0(Mem0Settings(infer=False), parts)
    await system.ingest(MemoryChunk("D1:1", "Ann: I have a puppy", None, "s1", ("D1:1",), ("Ann",)))
    await asyncio.to_thread(system.consolidate)
    answer = await system.answer(Query("puppy"))
    system.close()
    return answer.text

home = set(os.listdir(os.environ["HOME"]))
print(asyncio.run(main()))
assert set(os.listdir(os.environ["HOME"])) == home, os.listdir(os.environ["HOME"])
assert not asked, asked
"""


@pytest.mark.slow
def test_verbatim_run_uses_no_network_and_writes_nothing_to_home(
    tmp_path: Path,
) -> None:
    place = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE],
        capture_output=True,
        text=True,
        env=place,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "Ann: I have a puppy"
    assert done.stderr == ""
