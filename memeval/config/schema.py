"""The typed tree behind the YAML. Each field declares the stage it belongs to.

`prepare`, `answer`, `judge`: the value is part of that stage's key, and so of the keys after it.
`run`: distinguishes two cells, but changes no single answer (which questions are asked, how often).
`runtime`: changes nothing that is stored (a time limit, the place of logs).
"""

from dataclasses import dataclass, field
from typing import Any

PREPARE, ANSWER, JUDGE, RUN, RUNTIME = "prepare", "answer", "judge", "run", "runtime"
STAGES = (PREPARE, ANSWER, JUDGE, RUN, RUNTIME)

AT_INGEST = "at_ingest"
"""Metadata: the field is part of `prepare` too, if the system calls a language model at ingest."""
LLM_INGEST = "llm_ingest"
"""Metadata: the field counts only if the system calls a language model at ingest."""
OPTIONAL = "optional"
"""Metadata: the field is left out of all keys while it is None."""
LLM_JUDGE = "llm_judge"
"""Metadata: the field counts only if the judge is a language model."""
BY_TOOLS = "by_tools"
"""Metadata: the field counts only if the group that it names, `reader` or `writer`, uses tools."""
ONE_OF = "one_of"
"""Metadata: the values that are allowed; the bounds of a number are those of
`memeval.errors.check_number`. None is allowed, too.
"""
LIMIT_PARAMETERS = ("max_tokens", "max_completion_tokens")
DIRECT, CHUNKS, TOOLS = "direct", "chunks", "tools"
"""The readers are `direct` and `tools`, the writers `chunks` and `tools`."""


def at(stage: str, default: Any = None, **metadata: Any) -> Any:
    """A field of `stage`; `metadata` defines when it counts and which values are allowed, with the
    names above as keys.
    """
    return field(default=default, metadata={**metadata, "stage": stage})


@dataclass
class GranularityConfig:
    """Definition of a memory chunk."""

    name: str = at(PREPARE, "turn")
    size: int | None = at(PREPARE, least=1)
    """Tokens per chunk, for `chunk`."""
    overlap: int | None = at(PREPARE, least=0)
    """Tokens that neighbouring chunks share, for `chunk`."""
    speakers: bool = at(PREPARE, True)
    """Whether a chunk names the speakers, one line per turn; otherwise the turns' texts are joined
    by spaces.
    """


@dataclass
class JudgeConfig:
    """Judge that decides whether an answer is right."""

    name: str = at(JUDGE, "auto")
    """`auto` is the judge of the data set's own protocol, or its offline substitute; the run is
    named after the judge that was chosen.
    """
    class_: str | None = at(JUDGE)
    """`judge.class`: `package.module:Class` of a custom judge."""
    threshold: float | None = at(JUDGE, least=0, most=1)
    """Minimum F1 that counts as right, for `token_f1`."""
    prompt_file: str | None = at(RUNTIME)
    """A custom template for judges that are models; its text is part of the judge key."""
    repeats: int = at(JUDGE, 1, least=1)
    """Number of times a model judges each answer, odd; the majority is the verdict."""
    reading: str = at(JUDGE, "first_word", one_of=("first_word", "official"))
    """Reading of a yes-or-no reply: `first_word`, or `official`, as for published figures: "yes"
    anywhere in it.
    """
    scoring: str = at(JUDGE, "v2", one_of=("v1", "v2"))
    """Which version of BEAM's scorer counts the items of a rubric: `v1` counts half credit as 0, as
    most likely in the published table; `v2` counts it as one half.
    """
    fence: bool | None = at(JUDGE)
    """Whether question, reference and answer are sent between tags.

    None: with our templates, but not with yours.
    """


@dataclass
class PromptConfig:
    """The prompt template with which every system answers. Its text is part of the answer key."""

    name: str = at(ANSWER, "auto")
    """`auto` answers each question in the form that it asks for. The offline reader uses no
    template: for it, `auto` means `short`, and the run is named accordingly.
    """
    file: str | None = at(RUNTIME)
    """A custom template; its text is part of the answer key."""
    choose_tokens: int = at(ANSWER, 16, least=1)
    """Token limit of a reply that chooses an answer: an index, or letters."""


@dataclass
class RoleModelConfig:
    """The model of a role other than answering; None: same as the answers' model."""

    model: str | None = at(RUNTIME)
    base_url: str | None = at(RUNTIME)
    api_version: str | None = at(RUNTIME)
    api_key_env: str | None = at(RUNTIME)
    headers: dict[str, str] | None = at(RUNTIME)
    temperature: float | None = at(RUNTIME, least=0)
    max_tokens: int | None = at(RUNTIME, least=1)
    limit_parameter: str | None = at(RUNTIME, one_of=LIMIT_PARAMETERS)
    reasoning_effort: str | None = at(RUNTIME)
    extra_body: dict[str, Any] | None = at(RUNTIME)
    send_seed: bool | None = at(RUNTIME)
    max_concurrency: int | None = at(RUNTIME, least=1, most=1000)
    timeout_s: float | None = at(RUNTIME)
    patience_s: float | None = at(RUNTIME, least=0)


@dataclass
class IngestModelConfig(RoleModelConfig):
    """The model that systems call while they ingest; None: same as the answers' model."""

    model: str | None = at(PREPARE, llm_ingest=True)
    base_url: str | None = at(PREPARE, llm_ingest=True)
    temperature: float | None = at(PREPARE, llm_ingest=True, least=0)
    max_tokens: int | None = at(PREPARE, 2048, llm_ingest=True, least=1)
    limit_parameter: str | None = at(PREPARE, llm_ingest=True, one_of=LIMIT_PARAMETERS)
    reasoning_effort: str | None = at(PREPARE, llm_ingest=True)
    extra_body: dict[str, Any] | None = at(PREPARE, llm_ingest=True)
    send_seed: bool | None = at(PREPARE, llm_ingest=True)


@dataclass
class JudgeModelConfig(RoleModelConfig):
    """The model that judges; None: same as the answers' model."""

    model: str | None = at(JUDGE, llm_judge=True)
    base_url: str | None = at(JUDGE, llm_judge=True)
    temperature: float | None = at(JUDGE, 0.0, llm_judge=True, least=0)
    max_tokens: int | None = at(JUDGE, 256, llm_judge=True, least=1)
    limit_parameter: str | None = at(JUDGE, llm_judge=True, one_of=LIMIT_PARAMETERS)
    reasoning_effort: str | None = at(JUDGE, llm_judge=True)
    extra_body: dict[str, Any] | None = at(JUDGE, llm_judge=True)
    send_seed: bool | None = at(JUDGE, llm_judge=True)


@dataclass
class DraftModelConfig(RoleModelConfig):
    """The model that proposes questions for `data draft`; None: same as the answers' model."""

    temperature: float | None = at(RUNTIME, 0.7, least=0)
    max_tokens: int | None = at(RUNTIME, 1024, least=1)


@dataclass
class DraftCheckModelConfig(RoleModelConfig):
    """The model that checks proposed questions by answering them; None: the answers' model."""


@dataclass
class LlmConfig:
    """The model that answers, and the settings of other roles that differ from it."""

    name: str = at(ANSWER, "extractive", at_ingest=True)
    model: str | None = at(ANSWER)
    base_url: str | None = at(ANSWER)
    """URL of the endpoint; None: OPENAI_BASE_URL, else OpenAI's own."""
    api_version: str | None = at(RUNTIME)
    """Azure's `api-version`; the URL is then an Azure resource's, the model a deployment."""
    api_key_env: str = at(RUNTIME, "OPENAI_API_KEY")
    """Name of the environment variable that contains the key."""
    headers: dict[str, str] | None = at(RUNTIME)
    """Additional headers of each request, for gateways: header names mapped to environment
    variables.
    """
    temperature: float | None = at(ANSWER, 0.0, least=0)
    max_tokens: int = at(ANSWER, 512, least=1)
    limit_parameter: str | None = at(ANSWER, one_of=LIMIT_PARAMETERS)
    """Name under which `max_tokens` is sent: `max_tokens` or `max_completion_tokens`; None: depends
    on the model.
    """
    reasoning_effort: str | None = at(ANSWER)
    extra_body: dict[str, Any] | None = at(ANSWER)
    """Further parameters of each request, as the provider names them."""
    send_seed: bool = at(ANSWER, True)
    max_concurrency: int = at(RUNTIME, 16, least=1, most=1000)
    timeout_s: float = at(RUNTIME, 60.0)
    """Time limit of one whole try, from the connection to the last byte."""
    patience_s: float = at(RUNTIME, 300.0, least=0)
    """Seconds to keep retrying an endpoint that does not answer or asks for fewer calls."""
    max_retries: int | None = at(RUNTIME, least=0, most=1000)
    """Deprecated: maximum tries after the first, within `patience_s`."""
    ingest: IngestModelConfig = field(default_factory=IngestModelConfig)
    judge: JudgeModelConfig = field(default_factory=JudgeModelConfig)
    draft: DraftModelConfig = field(default_factory=DraftModelConfig)
    draft_check: DraftCheckModelConfig = field(default_factory=DraftCheckModelConfig)


MAX_TEXTS = 128
"""Maximum texts per embedding request: vectors of any width then fit into the limit of a reply."""


@dataclass
class EmbedderConfig:
    """Model that turns texts into vectors."""

    name: str = at(PREPARE, "tfidf")
    class_: str | None = at(PREPARE)
    """`embedder.class`: `package.module:Class` of a custom embedder."""
    model: str | None = at(PREPARE)
    width: int | None = at(PREPARE, least=1)
    """Numbers per vector; None: the model's own width."""
    base_url: str | None = at(PREPARE)
    api_version: str | None = at(RUNTIME)
    """As for the model; None: the model's, if the URL is the same."""
    api_key_env: str | None = at(RUNTIME)
    """None: the key for the URL (the model's key at its URL, OPENAI_API_KEY at OpenAI's)."""
    headers: dict[str, str] | None = at(RUNTIME)
    """As for the model."""
    max_concurrency: int | None = at(RUNTIME, least=1, most=1000)
    """None: the limit of the model behind the same URL and key, else 8."""
    batch_size: int = at(RUNTIME, MAX_TEXTS, least=1, most=MAX_TEXTS)
    """Maximum number of texts per request."""
    timeout_s: float = at(RUNTIME, 60.0)
    patience_s: float = at(RUNTIME, 300.0, least=0)
    max_retries: int | None = at(RUNTIME, least=0, most=1000)


@dataclass
class RerankerConfig:
    """Model that scores a system's best chunks again."""

    name: str = at(ANSWER, "default")
    """`default` is the system's own; a run is named after the reranker that was chosen."""
    class_: str | None = at(ANSWER)
    """`reranker.class`: `package.module:Class` of a custom reranker."""
    model: str | None = at(ANSWER)
    """The cross-encoder at the endpoint."""
    base_url: str | None = at(ANSWER)
    """Base URL of the `/rerank` endpoint, for example https://api.jina.ai/v1."""
    api_key_env: str = at(RUNTIME, "RERANK_API_KEY")
    headers: dict[str, str] | None = at(RUNTIME)
    """As for the model."""
    max_concurrency: int | None = at(RUNTIME, least=1, most=1000)
    """None: use the limit already set for this URL and key, else 16."""
    timeout_s: float = at(RUNTIME, 60.0)
    patience_s: float = at(RUNTIME, 300.0, least=0)


@dataclass
class ReaderConfig:
    """How the answers' model accesses the memory."""

    name: str = at(ANSWER, DIRECT, by_tools="reader", one_of=(DIRECT, TOOLS))
    """`direct`: the system retrieves and the model answers once; `tools`: the model calls the
    memory's tools until it answers.
    """
    max_steps: int = at(ANSWER, 10, by_tools="reader", least=1)
    """Maximum replies of the model per question, including the answer."""
    max_tool_calls: int = at(ANSWER, 20, by_tools="reader", least=1)
    """Maximum tool calls per question."""
    max_result_tokens: int = at(ANSWER, 2000, by_tools="reader", least=10)
    """Maximum tokens of a result that the model is shown; a longer result is visibly cut."""


@dataclass
class WriterConfig:
    """How conversations get into the memory."""

    name: str = at(PREPARE, CHUNKS, by_tools="writer", one_of=(CHUNKS, TOOLS))
    """`chunks`: the system gets every chunk; `tools`: the model of `llm.ingest` reads each session
    and writes with the memory's tools.
    """
    max_steps: int = at(PREPARE, 10, by_tools="writer", least=1)
    """Maximum replies of the model per session."""
    max_tool_calls: int = at(PREPARE, 50, by_tools="writer", least=1)
    """Maximum tool calls per session."""
    max_result_tokens: int = at(PREPARE, 2000, by_tools="writer", least=10)
    """Maximum tokens of a result that the model is shown; a longer result is visibly cut."""
    max_session_tokens: int = at(PREPARE, 8000, by_tools="writer", least=100)
    """Maximum tokens of a session that are read at a time; a longer session is read in parts, each
    with the limits above.
    """


@dataclass
class TrackingConfig:
    """Tracking of runs in MLflow."""

    name: str = at(RUNTIME, "mlflow", one_of=("mlflow", "none"))
    uri: str | None = at(RUNTIME)
    """MLflow's URL; None: MLFLOW_TRACKING_URI, else the project's own store."""
    experiment: str | None = at(RUNTIME)
    """None: MLFLOW_EXPERIMENT_NAME, else the experiment that already contains the run, else the
    data set's name.
    """
    group: str | None = at(RUNTIME, one_of=("sweep",))
    """`sweep` makes each sweep a run with its cells as children."""


@dataclass
class StoreConfig:
    """Storage of rows, replies and locks."""

    url: str | None = at(RUNTIME)
    """`postgresql://host/database`; None: in the files of the home."""
    memories: str | None = at(RUNTIME)
    """URL of the saved memories, such as `file:///shared/memories` or `s3://bucket/memories`;
    None: in the home.
    """
    patience_s: float = at(RUNTIME, 300.0, least=0)
    """Seconds to wait for a database or an object store that is unavailable."""


@dataclass
class BudgetConfig:
    """Spending limits of one command at endpoints; None means no limit."""

    usd: float | None = at(RUNTIME, least=0)
    tokens: int | None = at(RUNTIME, least=0)
    """Tokens sent and received, including embedded ones."""
    calls: int | None = at(RUNTIME, least=0)
    """Requests, including failed ones."""


@dataclass
class RunConfig:
    """One cell, resolved."""

    dataset: dict[str, Any] = field(default_factory=lambda: {"name": "demo"})
    """`name` and the data set's own settings. Its adapter's settings type declares their stages."""
    system: dict[str, Any] = field(default_factory=lambda: {"name": "bm25"})
    """`name`, `class` if it is a custom system, and the system's settings. Its settings type
    declares their stages.
    """
    granularity: GranularityConfig = field(default_factory=GranularityConfig)
    # Rows with a count above `records.MOST` could not be read again.
    top_k: int = at(ANSWER, 10, least=1, most=1_000_000_000)
    context_tokens: int | None = at(ANSWER, optional=True, least=1)
    """Maximum tokens of context that the reader is shown, in whole texts and in order of rank;
    None: no limit.
    """
    compression_turn: int | str = at(PREPARE, "never")
    """`never`, `middle`, `rolling`, or a number of turn pairs or chunks."""
    compression_unit: str = at(PREPARE, "pairs", one_of=("pairs", "chunks"))
    """Unit of `compression_turn` and `retain_recent`: `pairs` of turns, at any granularity, or
    `chunks`.
    """
    retain_recent: int = at(PREPARE, 5, least=0)
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
    stages: str = at(ANSWER, "all", one_of=("all", "retrieve"))
    """`retrieve` ends each question after its retrieval: no answer, no judge, no model."""
    num_runs: int = at(RUN, 1, least=1, most=10_000)
    """Number of repeats; each is a complete run with its own seed."""
    seed: int = at(RUN, 0)
    """Seed of the first repeat; the others count up from it."""
    min_coverage: float = at(RUN, 0.99, least=0, most=1)
    """Minimum share of scored questions for the cell to be valid."""
    stop_after_failures: int | None = at(RUNTIME, 20, least=1)
    """Consecutive failed calls at a URL, after all retries, that stop the run; None: never."""
    max_ingest_loss: float = at(PREPARE, 0.01, least=0, most=1)
    """Maximum share of a case's chunks that its ingest may lose; a case that loses more is
    `ingest_failed`, and its memory is not kept.
    """
    fresh: str | None = at(RUNTIME, one_of=(PREPARE, ANSWER, JUDGE))
    """First stage to repeat although its results exist: `prepare`, `answer` or `judge`."""
    plots: bool | None = at(RUNTIME)
    """Whether plots are drawn; None: MEMEVAL_PLOTS, else true."""
    prices: str | None = at(RUNTIME)
    """File with custom model prices; None: MEMEVAL_PRICES, else the home's prices.yaml, if any."""
    objective: str = at(RUNTIME, "accuracy")
    """Metric of the cell that an optimising sweeper gets."""
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    confirm_above_usd: float | None = at(RUNTIME, least=0)
    """Estimated cost in dollars above which the command line asks for confirmation."""
    label: str | None = at(RUN, optional=True)
    """Name of the measured version, such as `v2`: appears in every table, and separates the run
    from runs with other labels.
    """
    sweep_name: str | None = at(RUNTIME)
    """Set by the files in sweeps/; tags the runs."""
    tags: dict[str, Any] | None = at(RUNTIME)
    """The user's own tags, in MLflow."""
    note: str | None = at(RUNTIME)
    """The user's own note, above the run's description in MLflow."""
