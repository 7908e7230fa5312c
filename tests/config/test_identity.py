"""Which keys change with which field. A wrong entry here means that results of different settings
are mixed, or paid for twice.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cells import STAGES as SETTINGS_STAGES
from cells import all_keys, changed, config, differing, inputs, with_digest
from hypothesis import given
from hypothesis import strategies as st

from memeval.config.identity import (
    IdentityInputs,
    digest,
    field_metadata,
    field_stages,
    join_digests,
    keys,
    run_key,
)
from memeval.config.leaves import flatten
from memeval.config.options import built_in_classes, options
from memeval.config.roles import DRAFTING
from memeval.config.schema import STAGES, RunConfig
from memeval.datasets.locate import adapter_class
from memeval.pipeline.open.opening import open_cell
from memeval.runs.compose.config import compose_config
from memeval.systems.registry import settings_of

ALL = {"prepare", "answer", "judge", "run"}
ANSWER = {"answer", "judge", "run"}
JUDGE = {"judge", "run"}
RUN = {"run"}
NONE: set[str] = set()

CHANGES: list[tuple[str, Any, set[str]]] = [
    ("dataset.name", "locomo", ALL),
    ("dataset.class", "mine:Locomo", ALL),
    ("dataset.unheard_of", 1, ALL),
    ("dataset.path", "/elsewhere/demo.json", NONE),
    ("dataset.labels", "corrected", JUDGE),
    ("dataset.images", "none", ALL),
    ("dataset.categories", [1, 2], RUN),
    ("dataset.split", "dev", RUN),
    ("dataset.limit_cases", 1, RUN),
    ("dataset.limit_questions", 5, RUN),
    ("dataset.sample", 200, RUN),
    ("dataset.sample_seed", 1, RUN),
    ("dataset.question_ids", ["conv-26/q1"], RUN),
    ("dataset.only", "wrong:16e712a2", RUN),
    ("dataset.allow_unpinned", True, NONE),
    ("dataset.canaries", 3, ALL),
    ("dataset.canary_seed", 1, ALL),
    ("dataset.category_names", "mirix", RUN),
    ("dataset.evidence_recall", "official", RUN),
    ("system.name", "renamed", RUN),
    ("system.class", "memeval.systems.retrieval.rag:Rag", RUN),
    ("system.chunk_size", 256, ALL),
    ("system.rrf_k", 30, ANSWER),
    ("system.unheard_of", 1, ALL),
    ("system.timeout_s", 5.0, NONE),
    ("max_ingest_loss", 0.2, ALL),
    ("granularity.name", "session", ALL),
    ("granularity.size", 128, ALL),
    ("granularity.overlap", 8, ALL),
    ("granularity.speakers", False, ALL),
    ("top_k", 7, ANSWER),
    ("context_tokens", 2000, ANSWER),
    ("compression_turn", 40, ALL),
    ("compression_turn", "middle", ALL),
    ("compression_unit", "chunks", ALL),
    ("retain_recent", 9, ALL),
    ("judge.name", "mem0", JUDGE),
    ("judge.class", "mine:Judge", JUDGE),
    ("judge.threshold", 0.7, JUDGE),
    ("judge.repeats", 3, JUDGE),
    ("judge.reading", "official", JUDGE),
    ("judge.scoring", "v1", JUDGE),
    ("judge.fence", False, JUDGE),
    ("judge.prompt_file", "words.txt", NONE),
    ("prompt.choose_tokens", 5, ANSWER),
    ("prompt.name", "cot", ANSWER),
    ("prompt.file", "words.txt", NONE),
    ("llm.name", "another", ANSWER),
    ("llm.model", "gpt-4o", ANSWER),
    ("llm.limit_parameter", "max_completion_tokens", ANSWER),
    ("llm.reasoning_effort", "low", ANSWER),
    ("llm.extra_body", {"top_p": 0.9}, ANSWER),
    ("llm.ingest.model", "gpt-4o", NONE),
    ("llm.ingest.base_url", "http://localhost:1", NONE),
    ("llm.ingest.api_version", "2024-10-21", NONE),
    ("llm.ingest.api_key_env", "MY_KEY", NONE),
    ("llm.ingest.headers", {"api-key": "MY_KEY"}, NONE),
    ("llm.ingest.temperature", 0.7, NONE),
    ("llm.ingest.max_tokens", 64, NONE),
    ("llm.ingest.limit_parameter", "max_completion_tokens", NONE),
    ("llm.ingest.reasoning_effort", "low", NONE),
    ("llm.ingest.extra_body", {"top_p": 0.9}, NONE),
    ("llm.ingest.send_seed", False, NONE),
    ("llm.ingest.max_concurrency", 64, NONE),
    ("llm.ingest.timeout_s", 5.0, NONE),
    ("llm.ingest.patience_s", 5.0, NONE),
    ("llm.judge.model", "gpt-4o", JUDGE),
    ("llm.judge.base_url", "http://localhost:1", JUDGE),
    ("llm.judge.api_version", "2024-10-21", NONE),
    ("llm.judge.api_key_env", "MY_KEY", NONE),
    ("llm.judge.headers", {"api-key": "MY_KEY"}, NONE),
    ("llm.judge.temperature", 0.7, JUDGE),
    ("llm.judge.max_tokens", 64, JUDGE),
    ("llm.judge.limit_parameter", "max_completion_tokens", JUDGE),
    ("llm.judge.reasoning_effort", "low", JUDGE),
    ("llm.judge.extra_body", {"top_p": 0.9}, JUDGE),
    ("llm.judge.send_seed", False, JUDGE),
    ("llm.judge.max_concurrency", 64, NONE),
    ("llm.judge.timeout_s", 5.0, NONE),
    ("llm.judge.patience_s", 5.0, NONE),
    ("llm.base_url", "http://localhost:1", ANSWER),
    ("llm.api_version", "2024-10-21", NONE),
    ("llm.api_key_env", "MY_KEY", NONE),
    ("llm.headers", {"api-key": "MY_KEY"}, NONE),
    ("llm.temperature", 0.7, ANSWER),
    ("llm.max_tokens", 64, ANSWER),
    ("llm.send_seed", False, ANSWER),
    ("llm.max_concurrency", 64, NONE),
    ("llm.timeout_s", 5.0, NONE),
    ("llm.patience_s", 5.0, NONE),
    ("llm.max_retries", 0, NONE),
    ("embedder.name", "openai", ALL),
    ("embedder.class", "mine:Embedder", ALL),
    ("embedder.model", "text-embedding-3-large", ALL),
    ("embedder.width", 256, ALL),
    ("embedder.base_url", "http://localhost:1", ALL),
    ("embedder.api_version", "2024-10-21", NONE),
    ("embedder.api_key_env", "MY_KEY", NONE),
    ("embedder.headers", {"api-key": "MY_KEY"}, NONE),
    ("embedder.max_concurrency", 1, NONE),
    ("embedder.batch_size", 32, NONE),
    ("embedder.timeout_s", 5.0, NONE),
    ("embedder.patience_s", 5.0, NONE),
    ("embedder.max_retries", 0, NONE),
    ("reranker.name", "lexical", ANSWER),
    ("reranker.class", "mine:Reranker", ANSWER),
    ("reranker.model", "cross-encoder", ANSWER),
    ("reranker.base_url", "http://localhost:1", ANSWER),
    ("reranker.api_key_env", "MY_KEY", NONE),
    ("reranker.headers", {"api-key": "MY_KEY"}, NONE),
    ("reranker.max_concurrency", 1, NONE),
    ("reranker.timeout_s", 5.0, NONE),
    ("reranker.patience_s", 5.0, NONE),
    ("reader.name", "tools", ANSWER),
    # Without `reader=tools` they have no effect.
    ("reader.max_steps", 3, NONE),
    ("reader.max_tool_calls", 3, NONE),
    ("reader.max_result_tokens", 100, NONE),
    ("writer.name", "tools", ALL),
    ("writer.max_steps", 3, NONE),
    ("writer.max_tool_calls", 3, NONE),
    ("writer.max_result_tokens", 100, NONE),
    ("writer.max_session_tokens", 100, NONE),
    ("tracking.name", "none", NONE),
    ("tracking.uri", "http://localhost:5000", NONE),
    ("stages", "retrieve", ANSWER),
    ("tracking.experiment", "paper", NONE),
    ("tracking.group", "sweep", NONE),
    ("tags", {"paper": "table2"}, NONE),
    ("note", "the run of table 2", NONE),
    ("store.url", "postgresql://localhost/memeval", NONE),
    ("store.memories", "file:///shared/memories", NONE),
    ("store.patience_s", 5.0, NONE),
    ("num_runs", 3, RUN),
    ("seed", 1, ANSWER),
    ("min_coverage", 0.5, RUN),
    ("fresh", "answer", NONE),
    ("plots", False, NONE),
    ("objective", "token_f1", NONE),
    ("budget.usd", 5.0, NONE),
    ("budget.tokens", 1000, NONE),
    ("budget.calls", 10, NONE),
    ("confirm_above_usd", 5.0, NONE),
    ("stop_after_failures", 5, NONE),
    ("prices", "other.yaml", NONE),
    ("label", "v2", RUN),
    ("sweep_name", "baselines", NONE),
]
CHANGES += [
    (path.replace("llm.judge", role), value, NONE)
    for path, value, _ in CHANGES
    if path.startswith("llm.judge.")
    for role in DRAFTING
]


@pytest.mark.parametrize(
    ("path", "value", "different"), CHANGES, ids=lambda part: part if isinstance(part, str) else ""
)
def test_each_field_changes_the_expected_keys(path: str, value: Any, different: set[str]) -> None:
    before, after = (
        all_keys(config(), inputs()),
        all_keys(changed(config(), {path: value}), inputs()),
    )
    assert differing(before, after) == different


@pytest.mark.parametrize("name", ["max_steps", "max_tool_calls", "max_result_tokens"])
def test_reader_limits_change_answer_keys_with_tools(name: str) -> None:
    with_tools = {"reader.name": "tools"}
    before = all_keys(changed(config(), with_tools), inputs())
    after = all_keys(changed(config(), {**with_tools, f"reader.{name}": 3}), inputs())
    assert differing(before, after) == ANSWER


@pytest.mark.parametrize(
    "name", ["max_steps", "max_tool_calls", "max_result_tokens", "max_session_tokens"]
)
def test_writer_limits_change_all_keys_with_tools(name: str) -> None:
    with_tools = {"writer.name": "tools"}
    before = all_keys(changed(config(), with_tools), inputs())
    after = all_keys(changed(config(), {**with_tools, f"writer.{name}": 3}), inputs())
    assert differing(before, after) == ALL


@pytest.mark.parametrize(
    ("words", "is_other"),
    [
        (["writer=tools", "system.show_window=true"], True),
        (["writer=tools", "reranker=lexical"], True),
        (["writer=tools", "system.timeout_s=5", "top_k=3"], False),
        (["writer=chunks", "reranker=lexical"], False),
    ],
)
def test_a_memory_depends_on_the_search_only_if_its_writer_searches(
    words: list[str], is_other: bool
) -> None:
    plain, other = (
        open_cell(compose_config(["system=rag", *chosen]), "") for chosen in (words[:1], words)
    )
    before, after = (keys(cell.config, cell.identity, 0) for cell in (plain, other))
    assert (before.prepare != after.prepare) == is_other


def test_every_field_is_in_the_table() -> None:
    missing = set(field_stages(RunConfig)) - {path for path, _, _ in CHANGES}
    assert not missing, (
        f"add to CHANGES in {Path(__file__).name}, with the keys that another value must "
        f"change: {sorted(missing)}"
    )


def test_every_field_declares_its_stage() -> None:
    for path, stage in field_stages(RunConfig).items():
        assert stage in STAGES, (
            f"{path} has no stage, so it is unknown whether results survive a change of it. "
            "Declare it in memeval/config/schema.py as "
            f"`at(STAGE, default)`, STAGE being the first of {', '.join(STAGES)} whose stored "
            "results another value makes wrong."
        )


def test_a_field_without_a_stage_is_found() -> None:
    @dataclass
    class Careless:
        forgotten: int = 3

    assert field_stages(Careless, "llm.") == {"llm.forgotten": None}


def test_field_stages_cover_every_leaf_of_a_config() -> None:
    leaves = {path for path in flatten(config()) if path.split(".")[0] not in ("dataset", "system")}
    assert leaves == set(field_stages(RunConfig))


@pytest.mark.parametrize("name", options("system"))
def test_every_setting_of_a_system_declares_its_stage(name: str) -> None:
    for path, stage in field_stages(settings_of(name)).items():
        assert stage in ("prepare", "answer", "runtime"), (
            f"system.{path} of {name} has no stage: give its field `metadata=INGEST` where it "
            "changes what is stored, else ANSWER"
        )


@pytest.mark.parametrize("name", sorted(built_in_classes("dataset")))
def test_every_setting_of_a_data_set_declares_its_stage(name: str) -> None:
    for path, stage in field_stages(adapter_class(name).settings_type).items():
        assert stage in STAGES, (
            f"dataset.{path} of {name} has no stage: declare it as `at(STAGE, default)`"
        )


INPUTS: list[tuple[str, Any, set[str]]] = [
    ("digests", with_digest("prepare", "data", "e" * 64), ALL),
    ("digests", with_digest("prepare", "system", "mine:Rag"), ALL),
    ("digests", with_digest("prepare", "prompt of its ingest", "h" * 64), ALL),
    ("digests", with_digest("prepare", "code", "another"), ALL),
    ("digests", with_digest("answer", "prompt", "q" * 64), ANSWER),
    ("digests", with_digest("answer", "code", "another"), ANSWER),
    ("digests", with_digest("judge", "prompt", "k" * 64), JUDGE),
    ("digests", with_digest("judge", "code", "another"), JUDGE),
    ("stages", {**SETTINGS_STAGES, "system.rrf_k": "prepare"}, ALL),
    ("stages", {**SETTINGS_STAGES, "dataset.path": "prepare"}, ALL),
    ("uses_llm_at_ingest", True, ALL),
    ("judge_uses_llm", False, JUDGE),
]


@pytest.mark.parametrize(("name", "value", "different"), INPUTS)
def test_each_input_changes_the_expected_keys(name: str, value: Any, different: set[str]) -> None:
    other = inputs(**{name: value})
    assert differing(all_keys(config(), inputs()), all_keys(config(), other)) == different


def test_every_input_is_in_the_table() -> None:
    missing = set(IdentityInputs.__struct_fields__) - {name for name, _, _ in INPUTS}
    assert not missing, (
        f"add to INPUTS in {Path(__file__).name}, with the keys that another content must "
        f"change: {sorted(missing)}"
    )


def test_digests_are_joined_by_stage() -> None:
    joined = join_digests({"prepare": {"data": "d"}}, {"prepare": {"code": "c"}}, {})
    assert joined == {"prepare": {"data": "d", "code": "c"}, "answer": {}, "judge": {}}


def test_two_digests_of_one_name_in_a_stage_are_refused() -> None:
    with pytest.raises(AssertionError, match="prepare has two digests named code"):
        join_digests({"prepare": {"code": "c"}}, {"prepare": {"code": "d"}})


@pytest.mark.parametrize(
    "path",
    [
        "llm.name",
        "llm.model",
        "llm.base_url",
        "llm.temperature",
        "llm.send_seed",
        "seed",
    ],
)
def test_answering_model_changes_a_memory_made_by_it(path: str) -> None:
    value = next(value for name, value, _ in CHANGES if name == path)
    thinking = inputs(uses_llm_at_ingest=True)
    assert (
        differing(
            all_keys(config(), thinking), all_keys(changed(config(), {path: value}), thinking)
        )
        == ALL
    )


@pytest.mark.parametrize("role", ["ingest", "judge"])
def test_role_has_every_setting_of_the_answering_model(role: str) -> None:
    metadata = field_metadata(RunConfig)
    stage, mark = {"ingest": ("prepare", "llm_ingest"), "judge": ("judge", "llm_judge")}[role]
    of_all_roles = {"llm.name", "llm.max_retries"}
    answering = {path for path in metadata if path.startswith("llm.") and path.count(".") == 1}
    for path in answering - of_all_roles:
        own = metadata[path.replace("llm.", f"llm.{role}.")]
        counts = metadata[path]["stage"] == "answer"
        assert own["stage"] == (stage if counts else "runtime")
        assert own.get(mark, False) == counts


SHAPES_A_MEMORY = [
    path
    for path, metadata in field_metadata(RunConfig).items()
    if path.startswith("llm.ingest.") and metadata["stage"] == "prepare"
]


@pytest.mark.parametrize("path", SHAPES_A_MEMORY)
def test_ingest_model_changes_a_memory_made_by_it(path: str) -> None:
    value = next(value for name, value, _ in CHANGES if name == path)
    thinking = inputs(uses_llm_at_ingest=True)
    before = all_keys(config(), thinking)
    assert differing(before, all_keys(changed(config(), {path: value}), thinking)) == ALL


def test_answering_model_does_not_change_a_memory_of_an_ingest_model() -> None:
    thinking = inputs(uses_llm_at_ingest=True)
    own = {"llm__ingest__model": "cheap"}
    small = all_keys(config(**own), thinking)
    large = all_keys(config(**own, llm__model="dear"), thinking)
    assert differing(small, large) == ANSWER

    without = all_keys(config(llm__model="dear"), thinking)
    assert differing(all_keys(config(), thinking), without) == ALL


@pytest.mark.parametrize("role", ["ingest", "judge"])
def test_naming_the_answering_model_in_a_role_changes_no_key(role: str) -> None:
    thinking = inputs(uses_llm_at_ingest=True)
    named = config(
        **{
            f"llm__{role}__model": "gpt-4o-mini",
            f"llm__{role}__base_url": "https://api.openai.com/v1",
            f"llm__{role}__send_seed": True,
        }
    )
    assert all_keys(named, thinking) == all_keys(config(), thinking)


@pytest.mark.parametrize(
    "path", ["top_k", "llm.judge.model", "llm.max_concurrency", "prompt.name", "num_runs"]
)
def test_unrelated_fields_do_not_change_a_memory_made_by_a_model(path: str) -> None:
    _, value, different = next(change for change in CHANGES if change[0] == path)
    thinking = inputs(uses_llm_at_ingest=True)
    assert (
        differing(
            all_keys(config(), thinking), all_keys(changed(config(), {path: value}), thinking)
        )
        == different
    )


def test_judge_model_changes_no_key_if_the_judge_uses_none() -> None:
    plain = inputs(judge_uses_llm=False)
    before = all_keys(config(judge__name="keyword"), plain)
    assert (
        differing(
            before, all_keys(config(judge__name="keyword", llm__judge__model="gpt-4o"), plain)
        )
        == NONE
    )


def test_run_shares_its_first_repeats_with_a_longer_run() -> None:
    longer, other = config(num_runs=3), config(seed=1)
    assert keys(longer, inputs(), 1) == keys(other, inputs(), 1)
    assert len({keys(longer, inputs(), seed) for seed in range(100)}) == 100
    assert len({keys(longer, inputs(), seed).prepare for seed in range(100)}) == 1
    assert (
        len({keys(longer, inputs(uses_llm_at_ingest=True), seed).prepare for seed in range(100)})
        == 100
    )


RUNTIME = {
    "dataset.path": st.none() | st.text(),
    "dataset.allow_unpinned": st.booleans(),
    "judge.prompt_file": st.none() | st.text(),
    "prompt.file": st.none() | st.text(),
    "llm.api_version": st.none() | st.text(),
    "llm.api_key_env": st.text(),
    "llm.headers": st.none() | st.dictionaries(st.text("abc-"), st.text()),
    "llm.max_concurrency": st.integers(1),
    "llm.timeout_s": st.floats(0.1, 1e6),
    "llm.patience_s": st.floats(0.0, 1e6),
    "llm.max_retries": st.none() | st.integers(0),
    **{
        f"llm.{role}.{field}": values
        for role in ("ingest", "judge")
        for field, values in {
            "api_version": st.none() | st.text(),
            "api_key_env": st.none() | st.text(),
            "headers": st.none() | st.dictionaries(st.text("abc-"), st.text()),
            "max_concurrency": st.none() | st.integers(1),
            "timeout_s": st.none() | st.floats(0.1, 1e6),
            "patience_s": st.none() | st.floats(0.0, 1e6),
        }.items()
    },
    "embedder.api_version": st.none() | st.text(),
    "embedder.api_key_env": st.text(),
    "embedder.headers": st.none() | st.dictionaries(st.text("abc-"), st.text()),
    "embedder.max_concurrency": st.none() | st.integers(1),
    "embedder.batch_size": st.integers(1, 128),
    "embedder.timeout_s": st.floats(0.1, 1e6),
    "embedder.patience_s": st.floats(0.0, 1e6),
    "embedder.max_retries": st.none() | st.integers(0),
    "reranker.api_key_env": st.text(),
    "reranker.headers": st.none() | st.dictionaries(st.text("abc-"), st.text()),
    "reranker.max_concurrency": st.none() | st.integers(1),
    "reranker.timeout_s": st.floats(0.1, 1e6),
    "reranker.patience_s": st.floats(0.0, 1e6),
    "tracking.name": st.text(),
    "tracking.uri": st.none() | st.text(),
    "tracking.experiment": st.none() | st.text(),
    "tracking.group": st.none() | st.text(),
    "tags": st.none() | st.dictionaries(st.text("abc"), st.text()),
    "note": st.none() | st.text(),
    "store.url": st.none() | st.text(),
    "store.memories": st.none() | st.text(),
    "store.patience_s": st.floats(0.0, 1e6),
    "fresh": st.none() | st.text(),
    "system.timeout_s": st.none() | st.floats(0.1, 1e6),
    "plots": st.none() | st.booleans(),
    "objective": st.sampled_from(["accuracy", "token_f1"]),
    "budget.usd": st.none() | st.floats(0, 1e6),
    "budget.tokens": st.none() | st.integers(0),
    "budget.calls": st.none() | st.integers(0),
    "prices": st.none() | st.text(max_size=20),
    "stop_after_failures": st.none() | st.integers(1, 10**6),
    "confirm_above_usd": st.none() | st.floats(0, 1e6),
    "sweep_name": st.none() | st.text(),
    **{path: st.just(value) for path, value, _ in CHANGES if path.startswith(DRAFTING)},
}


@given(st.fixed_dictionaries({}, optional=RUNTIME))
def test_runtime_fields_change_no_key(values: dict[str, Any]) -> None:
    declared = field_stages(RunConfig) | SETTINGS_STAGES
    assert set(RUNTIME) == {path for path, stage in declared.items() if stage == "runtime"}
    assert all_keys(changed(config(), values), inputs()) == all_keys(config(), inputs())


@given(
    st.lists(
        st.tuples(st.integers(1, 99), st.integers(0, 99), st.sampled_from(["short", "cot"])),
        min_size=2,
        unique=True,
    )
)
def test_different_answers_never_share_a_key(cells: list[tuple[int, int, str]]) -> None:
    found = {
        keys(config(top_k=top_k, prompt__name=prompt), inputs(), seed).answer
        for top_k, seed, prompt in cells
    }
    assert len(found) == len(cells)


VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(st.dictionaries(st.text(), VALUES), st.randoms())
def test_digest_ignores_only_order(content: dict[str, Any], random: Any) -> None:
    shuffled = list(content.items())
    random.shuffle(shuffled)
    assert digest(dict(shuffled)) == digest(content)
    for name, value in content.items():
        assert digest({key: other for key, other in content.items() if key != name}) != digest(
            content
        )
        assert digest(content | {name: [value]}) != digest(content)
    assert digest({"name": "1"}) != digest({"name": 1})


def test_keys_are_the_same_in_every_process() -> None:
    code = (
        "import json; from cells import all_keys, config, inputs; "
        "print(json.dumps(all_keys(config(), inputs())))"
    )
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(__file__).parent),
        }
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert json.loads(done.stdout) == all_keys(config(), inputs())


@pytest.mark.parametrize(
    ("system", "shared"),
    [
        ("system=bm25", True),
        ("system=rag", True),
        ("system=mem0 system.infer=false", True),
        ("system=mem0 system.infer=true", False),
    ],
)
def test_cells_share_a_memory_made_without_a_model(system: str, shared: bool) -> None:
    small, large = (
        open_cell(
            compose_config([*system.split(), "llm=openai", f"llm.model={model}", "top_k=7"]), ""
        ).keys(0)
        for model in ("small", "large")
    )
    assert (small.prepare == large.prepare) == shared
    assert small.answer != large.answer


def test_keys_are_16_hex_digits_and_run_key_is_distinct() -> None:
    # Another form of the JSON would change all keys: no finished run would be found again.
    assert digest({"b": ["é", None, 1.5], "a": True}) == "a57a03bf520ff445"
    assert all(
        len(key) == 16 and set(key) <= set("0123456789abcdef")
        for key in all_keys(config(), inputs()).values()
    )
    assert run_key(config(), inputs()) not in set(all_keys(config(), inputs()).values()) - {
        run_key(config(), inputs())
    }
