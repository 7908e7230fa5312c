"""The typed tree behind the YAML. Each field declares the stage it belongs to.

`prepare`, `answer`, `judge`: the value is part of that stage's key, and so of the keys after it.
`run`: distinguishes two cells, but changes no single answer (which questions are asked, how often).
`runtime`: changes nothing that is stored (a time limit, the place of logs).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PREPARE, ANSWER, JUDGE, RUN, RUNTIME = "prepare", "answer", "judge", "run", "runtime"
STAGES = (PREPARE, ANSWER, JUDGE, RUN, RUNTIME)

AT_INGEST = "at_ingest"
"""Metadata: the field is part of `prepare` too, if the system calls a language model at ingest.
"""
LLM_INGEST = "llm_ingest"
"""Metadata: the field counts only if the system calls a language model at ingest."""
OPTIONAL = "optional"
"""Metadata: the field is left out of all keys while it is None."""
LLM_JUDGE = "llm_judge"
"""Metadata: the field counts only if the judge is a language model."""


BY_TOOLS = "by_tools"
"""Metadata: the field counts only if the group that it names, `reader` or `writer`, uses tools."""
DIRECT, CHUNKS, TOOLS = "direct", "chunks", "tools"
"""The readers are `direct` and `tools`, the writers `chunks` and `tools`."""


def at(stage: str, default: Any = None, **metadata: Any) -> Any:
    """A field of `stage`; lists and dicts are copied for each instance.

    `metadata` says more about when the field counts, by the names above.
    """
    metadata["stage"] = stage
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)

    return field(default=default, metadata=metadata)


@dataclass
class GranularityConfig:
    """Definition of a memory chunk."""

    name: str = at(PREPARE, "turn")
    size: int | None = at(PREPARE)
    """Tokens per chunk, for `chunk`."""
    overlap: int | None = at(PREPARE)
    """Tokens that neighbouring chunks share, for `chunk`."""
    speakers: bool = at(PREPARE, True)
    """Whether a chunk names who speaks, a line per turn; without, the turns' texts are joined by
    spaces.
    """


@dataclass
class JudgeConfig:
    """Judge that decides whether an answer is right."""

    name: str = at(JUDGE, "auto")
    """`auto` is the judge of the data set's own protocol, or its offline substitute; the run is
    named after the judge that was chosen.
    """
    class_: str | None = at(JUDGE)
    """`judge.class`: `package.module:Class` of a judge of your own."""
    threshold: float | None = at(JUDGE)
    """Least F1 that counts as right, for `token_f1`."""
    prompt_file: str | None = at(RUNTIME)
    """A template of your own, for the judges that are models; its text enters the judge key."""
    repeats: int = at(JUDGE, 1)
    """Judgings of each answer by a model, an odd number; the majority is the verdict."""
    reading: str = at(JUDGE, "first_word")
    """How a reply of yes or no is read: its first word, or `official`, as published figures were
    made: "yes" anywhere in it.
    """
    scoring: str = at(JUDGE, "v2")
    """Which version of BEAM's scorer counts the items of a rubric: `v1` gives half credit nothing,
    as the published table was most likely made; `v2` gives it a half.
    """
    fence: bool | None = at(JUDGE)
    """Whether question, reference and answer are sent between marks.

    None: under our templates, but not under yours.
    """


@dataclass
class PromptConfig:
    """The words under which every system answers. The text itself enters the answer key."""

    name: str = at(ANSWER, "auto")
    """`auto` answers each question in the form that it asks for. The offline reader reads no
    template: there it is `short`, and the run is named so.
    """
    file: str | None = at(RUNTIME)
    """A template of your own; its text enters the answer key."""
    choose_tokens: int = at(ANSWER, 16)
    """Tokens that a reply may have if the task is to choose: an index, or letters."""


@dataclass
class RoleModelConfig:
    """The model of another role than that of the answers; None: as the answers' model."""

    model: str | None = at(RUNTIME)
    base_url: str | None = at(RUNTIME)
    api_version: str | None = at(RUNTIME)
    api_key_env: str | None = at(RUNTIME)
    headers: dict[str, str] | None = at(RUNTIME)
    temperature: float | None = at(RUNTIME)
    max_tokens: int | None = at(RUNTIME)
    limit_parameter: str | None = at(RUNTIME)
    reasoning_effort: str | None = at(RUNTIME)
    extra_body: dict[str, Any] | None = at(RUNTIME)
    send_seed: bool | None = at(RUNTIME)
    max_concurrency: int | None = at(RUNTIME)
    timeout_s: float | None = at(RUNTIME)
    patience_s: float | None = at(RUNTIME)


@dataclass
class IngestModelConfig(RoleModelConfig):
    """The model that systems call while they ingest; None: as the answers' model."""

    model: str | None = at(PREPARE, llm_ingest=True)
    base_url: str | None = at(PREPARE, llm_ingest=True)
    temperature: float | None = at(PREPARE, llm_ingest=True)
    max_tokens: int | None = at(PREPARE, 2048, llm_ingest=True)
    limit_parameter: str | None = at(PREPARE, llm_ingest=True)
    reasoning_effort: str | None = at(PREPARE, llm_ingest=True)
    extra_body: dict[str, Any] | None = at(PREPARE, llm_ingest=True)
    send_seed: bool | None = at(PREPARE, llm_ingest=True)


@dataclass
class JudgeModelConfig(RoleModelConfig):
    """The model that judges; None: as the answers' model."""

    model: str | None = at(JUDGE, llm_judge=True)
    base_url: str | None = at(JUDGE, llm_judge=True)
    temperature: float | None = at(JUDGE, 0.0, llm_judge=True)
    max_tokens: int | None = at(JUDGE, 256, llm_judge=True)
    limit_parameter: str | None = at(JUDGE, llm_judge=True)
    reasoning_effort: str | None = at(JUDGE, llm_judge=True)
    extra_body: dict[str, Any] | None = at(JUDGE, llm_judge=True)
    send_seed: bool | None = at(JUDGE, llm_judge=True)


@dataclass
class DraftModelConfig(RoleModelConfig):
    """The model that proposes questions for `data draft`; None: as the answers' model."""

    temperature: float | None = at(RUNTIME, 0.7)
    max_tokens: int | None = at(RUNTIME, 1024)


@dataclass
class DraftCheckModelConfig(RoleModelConfig):
    """The model that answers proposed questions, to check them; None: as the answers' model."""


@dataclass
class LlmConfig:
    """The model that answers, and the settings in which other roles differ from it."""

    name: str = at(ANSWER, "extractive", at_ingest=True)
    model: str | None = at(ANSWER)
    base_url: str | None = at(ANSWER)
    """Address of the endpoint; None takes OPENAI_BASE_URL, else OpenAI's own."""
    api_version: str | None = at(RUNTIME)
    """Azure's `api-version`; the address is then that of a resource, and the model a deployment."""
    api_key_env: str = at(RUNTIME, "OPENAI_API_KEY")
    """Name of the environment variable that holds the key."""
    headers: dict[str, str] | None = at(RUNTIME)
    """Further headers of each request, for gateways: each names the environment variable that holds
    its value.
    """
    temperature: float | None = at(ANSWER, 0.0)
    max_tokens: int = at(ANSWER, 512)
    limit_parameter: str | None = at(ANSWER)
    """Name under which `max_tokens` is sent: `max_tokens` or `max_completion_tokens`; None chooses
    by the model.
    """
    reasoning_effort: str | None = at(ANSWER)
    extra_body: dict[str, Any] | None = at(ANSWER)
    """Further parameters of each request, as the provider names them."""
    send_seed: bool = at(ANSWER, True)
    max_concurrency: int = at(RUNTIME, 16)
    timeout_s: float = at(RUNTIME, 60.0)
    """Limit of one whole try, from the connection to the last byte."""
    patience_s: float = at(RUNTIME, 300.0)
    """How long to retry an endpoint that does not answer, or asks for fewer calls."""
    max_retries: int | None = at(RUNTIME)
    """Deprecated: tries after the first, at most, within `patience_s`."""
    ingest: IngestModelConfig = field(default_factory=IngestModelConfig)
    judge: JudgeModelConfig = field(default_factory=JudgeModelConfig)
    draft: DraftModelConfig = field(default_factory=DraftModelConfig)
    draft_check: DraftCheckModelConfig = field(default_factory=DraftCheckModelConfig)


@dataclass
class EmbedderConfig:
    """Model that turns texts into vectors."""

    name: str = at(PREPARE, "tfidf")
    class_: str | None = at(PREPARE)
    """`embedder.class`: `package.module:Class` of an embedder of your own."""
    model: str | None = at(PREPARE)
    width: int | None = at(PREPARE)
    """Numbers per vector; None takes the model's own."""
    base_url: str | None = at(PREPARE)
    api_version: str | None = at(RUNTIME)
    """As that of the model; None takes the model's at its address."""
    api_key_env: str | None = at(RUNTIME)
    """None takes the key of the address: the model's at its address, OPENAI_API_KEY at OpenAI's."""
    headers: dict[str, str] | None = at(RUNTIME)
    """As those of the model."""
    max_concurrency: int | None = at(RUNTIME)
    """None takes the limit of the model behind the same address and key, else 8."""
    timeout_s: float = at(RUNTIME, 60.0)
    patience_s: float = at(RUNTIME, 300.0)
    max_retries: int | None = at(RUNTIME)


@dataclass
class RerankerConfig:
    """Model that scores a system's best chunks again."""

    name: str = at(ANSWER, "default")
    """`default` is the system's own; a run is named after the reranker that was chosen."""
    class_: str | None = at(ANSWER)
    """`reranker.class`: `package.module:Class` of a reranker of your own."""
    model: str | None = at(ANSWER)
    """The cross-encoder at the endpoint."""
    base_url: str | None = at(ANSWER)
    """Address whose `/rerank` is called, for example https://api.jina.ai/v1."""
    api_key_env: str = at(RUNTIME, "RERANK_API_KEY")
    headers: dict[str, str] | None = at(RUNTIME)
    """As those of the model."""
    max_concurrency: int | None = at(RUNTIME)
    """None: use the limit already set for this address and key, else 16."""
    timeout_s: float = at(RUNTIME, 60.0)
    patience_s: float = at(RUNTIME, 300.0)


@dataclass
class ReaderConfig:
    """How the answers' model accesses the memory."""

    name: str = at(ANSWER, DIRECT, by_tools="reader")
    """`direct`: the system retrieves and the model answers once; `tools`: the model calls the
    memory's tools until it answers.
    """
    max_steps: int = at(ANSWER, 10, by_tools="reader")
    """Replies of the model per question, the answer included."""
    max_tool_calls: int = at(ANSWER, 20, by_tools="reader")
    """Tool calls per question."""
    max_result_tokens: int = at(ANSWER, 2000, by_tools="reader")
    """Tokens of one result that the model is shown; a longer one is cut visibly."""


@dataclass
class WriterConfig:
    """How conversations get into the memory."""

    name: str = at(PREPARE, CHUNKS, by_tools="writer")
    """`chunks`: the system is given every chunk; `tools`: the model of `llm.ingest` reads each
    session and writes by the memory's tools.
    """
    max_steps: int = at(PREPARE, 10, by_tools="writer")
    """Replies of the model per session."""
    max_tool_calls: int = at(PREPARE, 50, by_tools="writer")
    """Tool calls per session."""
    max_result_tokens: int = at(PREPARE, 2000, by_tools="writer")
    """Tokens of one result that the model is shown; a longer one is cut visibly."""
    max_session_tokens: int = at(PREPARE, 8000, by_tools="writer")
    """Maximum tokens of a session per reading; a longer one is read in parts, each with the limits
    above.
    """


@dataclass
class TrackingConfig:
    """Tracking of runs, so that they can be compared."""

    name: str = at(RUNTIME, "mlflow")
    uri: str | None = at(RUNTIME)
    """MLflow's address; None takes MLFLOW_TRACKING_URI, or the project's own store."""
    experiment: str | None = at(RUNTIME)
    """None: MLFLOW_EXPERIMENT_NAME, or the experiment that already contains the run, or the data
    set's name.
    """
    group: str | None = at(RUNTIME)
    """`sweep` makes each sweep a run with its cells as children."""


@dataclass
class StoreConfig:
    """Storage of rows, replies and locks."""

    url: str | None = at(RUNTIME)
    """`postgresql://host/database`; None keeps them in the files of the home."""
    memories: str | None = at(RUNTIME)
    """Address of the saved memories, such as `file:///shared/memories` or `s3://bucket/memories`;
    None keeps them in the home.
    """
    patience_s: float = at(RUNTIME, 300.0)
    """How long a database or an object store that is away is waited for."""


@dataclass
class BudgetConfig:
    """Spending limits of one command at endpoints; None means no limit."""

    usd: float | None = at(RUNTIME)
    tokens: int | None = at(RUNTIME)
    """Sent and received, embedded ones included."""
    calls: int | None = at(RUNTIME)
    """Requests, those that failed included."""


@dataclass
class RunConfig:
    """One cell, resolved."""

    dataset: dict[str, Any] = field(default_factory=lambda: {"name": "demo"})
    """`name` and the data set's own settings, whose stages its adapter's settings type declares."""
    system: dict[str, Any] = field(default_factory=lambda: {"name": "bm25"})
    """`name`, for a system of your own `class`, and its settings, whose stages the system's own
    settings type declares.
    """
    granularity: GranularityConfig = field(default_factory=GranularityConfig)
    top_k: int = at(ANSWER, 10)
    context_tokens: int | None = at(ANSWER, optional=True)
    """Tokens of context that the reader is shown at most, in whole texts and in order of rank;
    None is without a limit.
    """
    compression_turn: int | str = at(PREPARE, "never")
    """`never`, `middle`, `rolling`, or after how many turn pairs or chunks."""
    compression_unit: str = at(PREPARE, "pairs")
    """Unit of `compression_turn` and `retain_recent`: `pairs` of turns, whatever the granularity,
    or `chunks`.
    """
    retain_recent: int = at(PREPARE, 5)
    """Latest turn pairs, or chunks, that the window keeps at a compression."""
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    llm: LlmConfig = field(default_factory=LlmConfig)
    embedder: EmbedderConfig = field(default_factory=EmbedderConfig)
    reranker: RerankerConfig = field(default_factory=RerankerConfig)
    reader: ReaderConfig = field(default_factory=ReaderConfig)
    writer: WriterConfig = field(default_factory=WriterConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    stages: str = at(ANSWER, "all")
    """`retrieve` ends each question after its retrieval: no answer, no judge, no model."""
    num_runs: int = at(RUN, 1)
    """Repeats, each from end to end under its own seed."""
    seed: int = at(RUN, 0)
    """Seed of the first repeat; the others count up from it."""
    min_coverage: float = at(RUN, 0.99)
    """Share of questions that must be scored for the cell to be valid."""
    stop_after_failures: int | None = at(RUNTIME, 20)
    """Failed calls in a row at an address, after all retries, that stop the run; None: never."""
    max_ingest_loss: float = at(PREPARE, 0.01)
    """Share of a case's chunks that its ingest may lose; a case that loses more is `ingest_failed`,
    and its memory is not kept.
    """
    fresh: str | None = at(RUNTIME)
    """First stage that is run again although its results are there: `prepare`, `answer` or `judge`.
    """
    plots: bool | None = at(RUNTIME)
    """Whether plots are drawn; None takes MEMEVAL_PLOTS, else true."""
    prices: str | None = at(RUNTIME)
    """File with prices of your own models; None takes MEMEVAL_PRICES, else prices.yaml of the
    home if it exists.
    """
    objective: str = at(RUNTIME, "accuracy")
    """Metric that a sweeper which optimises gets of the cell."""
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    confirm_above_usd: float | None = at(RUNTIME)
    """Estimated cost above which the command line asks before it starts."""
    label: str | None = at(RUN, optional=True)
    """Name of the measured version, such as `v2`: names the run in every table, and keeps it
    separate from runs with other labels.
    """
    sweep_name: str | None = at(RUNTIME)
    """Set by the files in sweeps/; tags the runs."""
    tags: dict[str, Any] | None = at(RUNTIME)
    """Tags of the user's own, in MLflow."""
    note: str | None = at(RUNTIME)
    """A sentence of the user's own, above the run's description in MLflow."""
