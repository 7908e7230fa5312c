"""The identity of a judge contains every setting of the judge and of its requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from doubles.endpoint import ScriptedEndpoint
from doubles.replies import scripted_reply
from test_auto_judge import model, opened, run

from memeval.errors import UserError
from memeval.pipeline.measure.provenance import protocol
from memeval.pipeline.open.judge_identity import judge_identity
from memeval.results import JudgeIdentity, is_same_judge
from memeval.results.fields import read_as

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(scripted_reply) as served:
        yield served


def identity(*words: str) -> JudgeIdentity:
    found = judge_identity(opened(*words))
    assert found is not None
    return found


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("judge=mem0", "mem0 ("),
        ("llm.judge.model=other", "llm (other"),
        ("llm.judge.base_url=http://127.0.0.1:9/v1", "at 127.0.0.1:9/v1"),
        ("llm.judge.temperature=0.7", "temperature=0.7"),
        ("llm.judge.max_tokens=64", "max_tokens=64"),
        ("llm.judge.limit_parameter=max_completion_tokens", "max_completion_tokens=4352"),
        ("llm.judge.reasoning_effort=low", "reasoning_effort=low"),
        ("llm.judge.send_seed=false", "seed=false"),
        ("+llm.judge.extra_body.top_p=0.5", "top_p=0.5"),
        ("judge.repeats=3", "repeats=3"),
        ("judge.fence=false", "fence=false"),
    ],
)
def test_every_setting_of_a_model_judge_changes_its_identity(
    word: str, shown: str, endpoint: ScriptedEndpoint
) -> None:
    usual, other = (
        identity("judge=llm", *model(endpoint)),
        identity("judge=llm", *model(endpoint), word),
    )
    assert is_same_judge(usual, identity("judge=llm", *model(endpoint)))
    assert not is_same_judge(usual, other) and usual.digest != other.digest
    assert shown in other.shown and shown not in usual.shown


@pytest.mark.parametrize(
    ("judge", "word", "shown"),
    [
        ("longmemeval", "judge.reading=official", "reading=official"),
        ("beam", "judge.scoring=v1", "scoring=v1"),
    ],
)
def test_how_replies_are_read_and_scored_changes_the_identity(
    judge: str, word: str, shown: str, endpoint: ScriptedEndpoint
) -> None:
    words = (f"dataset=demo_{judge}", f"judge={judge}", *model(endpoint))
    usual, other = identity(*words), identity(*words, word)
    assert not is_same_judge(usual, other) and usual.digest != other.digest
    assert shown in other.shown and shown not in usual.shown


@pytest.mark.slow
def test_text_of_the_judges_prompt_changes_its_identity(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    file = tmp_path / "strict.txt"
    keys = set()
    for word in ("right", "correct"):
        file.write_text(f"Is it {word}? {{question}} {{gold}} {{answer}}", encoding="utf-8")
        keys.add(identity("judge=llm", *model(endpoint), f"judge.prompt_file={file}").digest)

    assert len(keys) == 2


@pytest.mark.slow
def test_model_of_the_answers_does_not_change_the_judges_identity(
    endpoint: ScriptedEndpoint,
) -> None:
    judge = ["judge=llm", *model(endpoint), "llm.judge.model=judge"]
    assert identity(*judge) == identity(*judge, "llm.model=other", "llm.temperature=0.9")


@pytest.mark.slow
def test_threshold_is_in_the_protocol_and_defaults_to_the_data_sets() -> None:
    for value in (0.3, 0.7):
        cell = opened("judge=token_f1", f"judge.threshold={value}")
        line = protocol(cell.config, cell.loaded.sha256, judge_identity(cell))
        assert f"judge=token_f1 (threshold={value})" in line

    # The data set's own default is the judge's default, although no YAML file names it.
    assert identity("dataset=demo_opseval") == identity("dataset=demo_opseval", "judge=token_f1")


@pytest.mark.slow
def test_run_json_contains_the_judges_identity(endpoint: ScriptedEndpoint, home: Path) -> None:
    few = ["dataset.limit_cases=1", "dataset.limit_questions=2"]
    summary = run("dataset=demo", *few, *model(endpoint), "llm.judge.temperature=0.2")
    (path,) = home.glob("outputs/runs/*/run.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["judge"]["request"] == {"max_tokens": 256, "temperature": 0.2, "seed": True}
    assert content["judge"]["address"] == endpoint.base_url
    assert content["tags"]["judge_key"] == read_as(content["judge"], JudgeIdentity).digest
    assert type(summary).read(path.parent).judge == summary.judge

    only = run("dataset=demo", *few, "stages=retrieve")
    assert only.judge is None and "judge_key" not in only.tags


@pytest.mark.slow
def test_model_can_judge_the_answers_of_the_offline_reader(
    endpoint: ScriptedEndpoint, home: Path
) -> None:
    few = ["dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=2"]
    judge = ["llm=extractive", "judge=llm", "llm.judge.model=judge"]
    summary = run(*few, *judge, f"llm.judge.base_url={endpoint.base_url}")
    assert {body["model"] for _, body in endpoint.requests} == {"judge"}
    assert summary.metrics["coverage"] == 1.0 and summary.tags["deterministic"] == "true"
    assert summary.judge is not None
    assert (summary.judge.model, summary.judge.address) == ("judge", endpoint.base_url)
    assert summary.params["llm"] == "extractive" and summary.params["llm.judge.model"] == "judge"

    # The answers are shared with the run without any model, under the same key.
    offline = run(*few, "judge=keyword")
    answers = (home / "outputs" / "answers").glob("*.jsonl")
    assert len([path for path in answers if not path.name.endswith(".texts.jsonl")]) == 1
    assert (
        offline.judge == JudgeIdentity("keyword") and "llm.judge.temperature" not in offline.params
    )
    assert identity(*few, "llm=extractive", *judge[2:], "judge=auto").name == "llm"


def test_judge_settings_without_a_model_or_key_are_refused() -> None:
    with pytest.raises(UserError, match="temperature needs llm"):
        opened("llm=extractive", "judge=keyword", "llm.judge.temperature=0.3")
    with pytest.raises(UserError, match="judge=llm needs a language model") as refused:
        opened("llm=extractive", "judge=llm")

    assert any("llm.judge.model=" in hint for hint in refused.value.hints)
    with pytest.raises(UserError, match="key is not sent there"):
        opened("judge=llm", "llm.judge.model=m", "llm.judge.base_url=https://example.com/v1")
