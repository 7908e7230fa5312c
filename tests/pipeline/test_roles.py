"""Models by role through the command line: which model is called where, with which limits and key,
and what is made again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from conftest_pipeline import HURRIED, Command, records, summary
from doubles.endpoint import Faults, ScriptedEndpoint
from doubles.loopback import Request
from doubles.replies import scripted_reply

FEW = ("dataset=demo", "dataset.limit_cases=1", "dataset.limit_questions=3", "tracking=none")
ROLES = ("llm.model=answers", "llm.ingest.model=ingest", "llm.judge.model=judge", "judge=llm")


def reply(body: Mapping[str, Any]) -> str:
    """A verdict from the judge; from other models an extraction or an answer."""
    if body["model"] == "judge":
        return '{"reason": "scripted", "label": "CORRECT"}'

    return scripted_reply(body)


def at(endpoint: ScriptedEndpoint, *more: str) -> tuple[str, ...]:
    return (*FEW, "llm=openai", f"llm.base_url={endpoint.base_url}", *more)


def calls(endpoint: ScriptedEndpoint) -> Counter[str]:
    """Number of requests by model."""
    return Counter(body["model"] for _, body in endpoint.requests)


def bodies(endpoint: ScriptedEndpoint, model: str) -> list[dict[str, Any]]:
    return [body for _, body in endpoint.requests if body["model"] == model]


@pytest.mark.parametrize(
    "system",
    [
        ("system=summarization", "compression_turn=middle"),
        pytest.param(("system=cogcanvas",), marks=pytest.mark.slow),
    ],
)
def test_ingest_runs_once_for_several_answer_models(
    memeval: Command, tmp_path: Path, system: tuple[str, ...]
) -> None:
    roles = ("llm.ingest.model=ingest", "max_ingest_loss=1", "judge=keyword")
    with ScriptedEndpoint(reply) as endpoint:
        memeval(*at(endpoint, *system, *roles, "llm.model=small"))
        first = calls(endpoint)
        memeval(*at(endpoint, *system, *roles, "llm.model=large"))
        both = calls(endpoint)
        memeval(*at(endpoint, *system, *roles, "llm.model=large", "llm.ingest.model=other"))

    assert first["ingest"] > 0 and first["small"] == 3
    assert both == first + Counter(large=3)
    assert calls(endpoint)["other"] > 0
    assert len([path for path in tmp_path.glob("data/prepared/*/*") if path.is_dir()]) == 2


def test_azure_answers_and_judges_and_another_url_embeds(memeval: Command) -> None:
    with ScriptedEndpoint(reply) as azure, ScriptedEndpoint() as other:
        memeval(
            *(*FEW, "system=rag", *ROLES, "llm=openai", f"llm.base_url={azure.address}"),
            *("llm.api_version=2024-10-21", "embedder=openai", "embedder.model=vectors"),
            f"embedder.base_url={other.base_url}",
        )

    version = "chat/completions?api-version=2024-10-21"
    assert Counter(path for path, _ in azure.requests) == {
        f"/openai/deployments/answers/{version}": 3,
        f"/openai/deployments/judge/{version}": 3,
    }
    assert {path for path, _ in other.requests} == {"/v1/embeddings"}


def test_each_role_calls_its_model_with_its_own_token_limit(
    memeval: Command, tmp_path: Path
) -> None:
    with ScriptedEndpoint(reply) as endpoint:
        memeval(*at(endpoint, "system=cogcanvas", *ROLES, "max_ingest_loss=1"))

    limits = {
        model: {body["max_tokens"] for body in bodies(endpoint, model)} for model in calls(endpoint)
    }
    assert limits == {"answers": {512}, "ingest": {2048}, "judge": {256}}
    models = {usage["role"]: usage["model"] for row in records(tmp_path) for usage in row["usage"]}
    assert (models["answer"], models["judge"]) == ("answers", "judge")
    params = summary(tmp_path)["params"]
    assert params["llm.ingest.model"] == "ingest"
    assert params["llm.ingest.base_url"] == params["llm.base_url"], "what is left open is resolved"


@pytest.mark.slow
def test_settings_of_an_uncalled_role_are_not_recorded(memeval: Command, tmp_path: Path) -> None:
    with ScriptedEndpoint(reply) as endpoint:
        memeval(*at(endpoint, "system=bm25", "judge=llm", "llm.model=m"))

    params = summary(tmp_path)["params"]
    assert params["llm.judge.model"] == "m"
    assert not [name for name in params if name.startswith("llm.ingest.")]


@pytest.mark.slow
def test_a_choice_gets_sixteen_tokens(memeval: Command) -> None:
    with ScriptedEndpoint(lambda body: "0") as endpoint:
        few = ("dataset.limit_cases=1", "dataset.limit_questions=2", "tracking=none")
        memeval("dataset=demo_locomo_mc10", *few, "llm=openai", f"llm.base_url={endpoint.base_url}")

    assert {body["max_tokens"] for _, body in endpoint.requests} == {16}


class KeyedEndpoint(ScriptedEndpoint):
    """An endpoint that remembers which key each model was called with."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.keys: set[tuple[str, str]] = set()

    async def respond(self, request: Request, writer: Any) -> bool:
        body = json.loads(request.raw)
        self.keys.add((body["model"], request.headers.get("authorization", "")))
        return await super().respond(request, writer)


@pytest.mark.slow
def test_roles_have_their_own_keys_and_urls(memeval: Command) -> None:
    with KeyedEndpoint(reply) as answers, KeyedEndpoint(reply) as judges:
        memeval(
            *at(answers, *ROLES, "system=cogcanvas", "max_ingest_loss=1"),
            "llm.ingest.api_key_env=INGEST_KEY",
            "llm.ingest.max_concurrency=1",
            f"llm.judge.base_url={judges.base_url}",
            "llm.judge.api_key_env=JUDGE_KEY",
            "llm.max_concurrency=4",
            INGEST_KEY="key-of-the-ingest",
            JUDGE_KEY="key-of-the-judge",
        )

    assert answers.keys == {("answers", "Bearer test"), ("ingest", "Bearer key-of-the-ingest")}
    assert judges.keys == {("judge", "Bearer key-of-the-judge")}


@pytest.mark.slow
def test_key_of_the_answers_is_not_sent_to_other_urls(memeval: Command) -> None:
    with (
        KeyedEndpoint(reply) as answers,
        KeyedEndpoint(reply) as judges,
        KeyedEndpoint(reply) as ingests,
        KeyedEndpoint(reply) as embeds,
    ):
        memeval(
            *("-m", "system=cogcanvas,rag"),
            *at(answers, *ROLES, "max_ingest_loss=1"),
            f"llm.judge.base_url={judges.base_url}",
            f"llm.ingest.base_url={ingests.base_url}",
            "embedder=openai",
            f"embedder.base_url={embeds.base_url}",
        )

    assert {key for _, key in answers.keys} == {"Bearer test"}
    for endpoint in (judges, ingests, embeds):
        assert {key for _, key in endpoint.keys} == {"Bearer none"}


def test_two_limits_for_one_key_are_refused(memeval: Command) -> None:
    with ScriptedEndpoint() as endpoint:
        done = memeval(*at(endpoint, "llm.judge.max_concurrency=2"), check=False)

    assert done.returncode == 2 and "set two limits" in done.stderr
    assert endpoint.count() == 0


@pytest.mark.slow
def test_missing_key_of_a_role_is_reported_before_any_call(
    memeval: Command,
) -> None:
    with ScriptedEndpoint() as endpoint:
        remote = ("llm.judge.base_url=https://judge.example/v1", "llm.judge.api_key_env=JUDGE_KEY")
        done = memeval(*at(endpoint, *remote), check=False)

    assert done.returncode == 2
    assert "llm.judge needs a key for https://judge.example/v1" in done.stderr
    assert endpoint.count() == 0


@pytest.mark.slow
def test_provider_parameters_are_sent_only_for_their_role(memeval: Command) -> None:
    with ScriptedEndpoint(reply) as endpoint:
        memeval(
            *at(endpoint, "judge=llm", "llm.model=answers"),
            "llm.reasoning_effort=low",
            "llm.limit_parameter=max_completion_tokens",
            "llm.temperature=null",
            "llm.extra_body={top_p: 0.9, chat_template_kwargs: {enable_thinking: false}}",
            "llm.judge.model=judge",
        )

    for body in bodies(endpoint, "answers"):
        assert body["reasoning_effort"] == "low" and body["top_p"] == 0.9
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
        assert body["max_completion_tokens"] == 512 + 4096
        assert "max_tokens" not in body and "temperature" not in body

    for body in bodies(endpoint, "judge"):
        assert body["max_tokens"] == 256 and body["temperature"] == 0.0
        assert "top_p" not in body and "reasoning_effort" not in body


class Refusing(ScriptedEndpoint):
    """Refuses every request with the given error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(faults=Faults({"bad_request": 1.0}))
        self._error = error

    async def _misbehave(self, fault: str, body: Mapping[str, Any], writer: Any) -> bool:
        from doubles.loopback import send

        return await send(writer, 400, json.dumps({"error": self._error}).encode())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (
            {"message": "Unrecognized request argument supplied: seed"},
            "; use llm.send_seed=false",
        ),
        (
            {"message": "'temperature' does not support 0.0 with this model"},
            "; use llm.temperature=null",
        ),
        (
            {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this "
                "model. Use 'max_completion_tokens' instead.",
                "param": "max_tokens",
            },
            "; use llm.limit_parameter=max_completion_tokens (and see llm.max_tokens)",
        ),
        ({"message": "unknown field top_p"}, "; use llm.extra_body without 'top_p'"),
        ({"message": "the prompt is too long", "param": "messages"}, "too long"),
    ],
)
def test_error_for_a_refused_parameter_names_its_setting(
    memeval: Command, tmp_path: Path, error: Mapping[str, Any], hint: str
) -> None:
    with Refusing(error) as endpoint:
        done = memeval(*at(endpoint, "llm.extra_body={top_p: 0.9}"), check=False)

    assert "Traceback" not in done.stderr
    rows = records(tmp_path)
    assert {row["status"] for row in rows} == {"answer_failed"}
    assert all(row["error"].endswith(hint) for row in rows)


def cut_below(tokens: int) -> Any:
    """An edit that cuts replies of the ingest model whose token limit is below `tokens`."""

    def edit(payload: dict[str, Any]) -> None:
        choice = payload["choices"][0]
        if payload["model"] == "ingest" and payload["limit"] < tokens:
            choice["finish_reason"] = "length"
            choice["message"]["content"] = choice["message"]["content"][:20]

    return edit


class Cutting(ScriptedEndpoint):
    """Cuts replies of the ingest model whose token limit is below `tokens`."""

    def __init__(self, tokens: int) -> None:
        super().__init__(reply, edit=cut_below(tokens))

    def _completion(self, body: Mapping[str, Any], text: str | None) -> dict[str, Any]:
        return {**super()._completion(body, text), "limit": body["max_tokens"]}


@pytest.mark.slow
def test_cut_extraction_is_requested_again_with_twice_the_tokens(
    memeval: Command, tmp_path: Path
) -> None:
    with Cutting(3000) as endpoint:
        memeval(*at(endpoint, *ROLES, "system=cogcanvas", "max_ingest_loss=1"))

    limits = Counter(body["max_tokens"] for body in bodies(endpoint, "ingest"))
    assert limits[2048] > 0 and limits[4096] >= limits[2048]
    notes = [note["text"] for note in summary(tmp_path)["notes"]]
    assert not any("cut at their token limit" in note for note in notes)
    assert "cut_at_ingest" not in summary(tmp_path)["tags"]


@pytest.mark.slow
def test_extractions_that_stay_cut_are_counted_and_flagged(
    memeval: Command, tmp_path: Path
) -> None:
    with Cutting(10**6) as endpoint:
        lossy = ("max_ingest_loss=1", "stop_after_failures=null")
        done = memeval(*at(endpoint, *ROLES, "system=cogcanvas", *lossy), check=False)

    run = summary(tmp_path)
    assert any("cut at their token limit" in note["text"] for note in run["notes"])
    assert run["tags"]["cut_at_ingest"] == "true"
    assert run["metrics"]["ingest_lost"] > 0
    assert "cut at ingest" in done.stdout
    assert done.returncode == 1 and run["tags"]["nothing_found"] == "true", "all was lost"


@pytest.mark.slow
def test_case_with_many_cut_extractions_fails(memeval: Command, tmp_path: Path) -> None:
    with Cutting(10**6) as endpoint:
        words = at(endpoint, *ROLES, "system=cogcanvas", "stop_after_failures=null")
        memeval(*words, check=False)

    rows = records(tmp_path)
    assert {row["status"] for row in rows} == {"ingest_failed"}
    assert all("replies were cut at their token limit" in row["error"] for row in rows)
    assert "llm.ingest.max_tokens" in rows[0]["error"]


@pytest.mark.slow
def test_run_stops_if_all_extractions_are_cut_and_names_the_limit(memeval: Command) -> None:
    with Cutting(10**6) as endpoint:
        done = memeval(*at(endpoint, *ROLES, "system=cogcanvas"), check=False)

    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "(stop_after_failures=20): raise llm.ingest.max_tokens\n" in done.stderr


def test_run_that_a_refusal_stops_names_the_setting(memeval: Command) -> None:
    few = ("dataset=demo", "dataset.limit_cases=1", "tracking=none", "system=dense")
    with ScriptedEndpoint(most_texts=32) as endpoint:
        embedder = ("embedder=openai", f"embedder.base_url={endpoint.base_url}")
        refused = memeval(*few, *embedder, "stop_after_failures=1", check=False)
        assert refused.returncode == 1
        assert "use a smaller embedder.batch_size (stop_after_failures=1)" in refused.stderr
        memeval(*few, *embedder, "embedder.batch_size=32")


@pytest.mark.slow
def test_vectors_of_another_width_than_before_fail_with_a_hint(
    memeval: Command, tmp_path: Path
) -> None:
    few = ("dataset=demo", "dataset.limit_cases=1", "tracking=none", "system=dense")
    with ScriptedEndpoint(width=64) as endpoint:
        embedder = ("embedder=openai", f"embedder.base_url={endpoint.base_url}")
        memeval(*few, *embedder, "dataset.limit_questions=2")
        endpoint.width = 32
        memeval(*few, *embedder, "dataset.limit_questions=6", check=False, constants=HURRIED)

    rows = records(tmp_path)
    assert [row["status"] for row in rows] == ["ok"] * 2 + ["answer_failed"] * 4
    assert all("use embedder.width=32" in row["error"] for row in rows[2:])
