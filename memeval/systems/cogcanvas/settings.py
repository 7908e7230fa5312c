"""Settings of `cogcanvas` and of all its variants."""

from dataclasses import dataclass, field
from typing import Literal

from memeval.systems.base import ANSWER, INGEST, NOT_NEGATIVE, POSITIVE, SHARE
from memeval.systems.reranking import RerankedSettings


@dataclass(frozen=True)
class CogCanvasSettings(RerankedSettings):
    """Settings of `cogcanvas` and of all its variants."""

    # The name is older than the word "chunk", and users' configurations contain it.
    batch_units: int = field(default=10, metadata=INGEST | POSITIVE)
    """Maximum chunks per call."""
    batch_tokens: int = field(default=1000, metadata=INGEST | POSITIVE)
    """Maximum tokens of a call's chunks; a longer chunk gets its own call."""
    earlier: int = field(default=0, metadata=INGEST | NOT_NEGATIVE)
    """Latest artifacts of earlier calls shown in each call. Calls then wait for each other."""
    gleaning: bool = field(default=True, metadata=INGEST)
    """Whether to read each batch a second time, for what the first reading missed."""
    glean_overlap: float = field(default=0.8, metadata=INGEST | SHARE)
    """Share of common words above which an artifact counts as a repetition and is dropped."""
    dates: Literal["span", "point"] = field(default="span", metadata=INGEST)
    """Relative dates: `span`, as precise as stated; `point`, each as a single day."""
    temporal_fallback: bool = field(default=False, metadata=INGEST)
    """Whether expressions of time that no artifact quotes become events."""
    index_text: Literal["content_quote", "full"] = field(default="content_quote", metadata=INGEST)
    """Text that is embedded and indexed: content and quote, or also speaker and dates."""
    graph: bool = field(default=True, metadata=ANSWER)
    """Whether neighbours in the graph are retrieved, too."""
    graph_hops: int = field(default=3, metadata=ANSWER | POSITIVE)
    """Maximum hops to a neighbour; each hop leaves 0.8 of the score."""
    graph_expansion: Literal["best_path", "published"] = field(default="best_path", metadata=ANSWER)
    """Spread of scores: by the best path, or in the published order (first path counts)."""
    # The graph is built again whenever a memory is loaded, so its rules are settings of the answer:
    # a sweep over them repeats no extraction.
    reference_threshold: float = field(default=0.5, metadata=ANSWER | SHARE)
    """Minimum cosine for a reference between two artifacts without a common word."""
    overlap_threshold: float = field(default=0.3, metadata=ANSWER | SHARE)
    """Minimum cosine of two artifacts with a common word, for references and causes."""
    causal_threshold: float = field(default=0.45, metadata=ANSWER | SHARE)
    """Minimum cosine for a cause without a common word."""
    todo_window: int = field(default=5, metadata=ANSWER | NOT_NEGATIVE)
    """How many extraction calls to look back from a todo for its decision."""
    insight_window: int = field(default=3, metadata=ANSWER | NOT_NEGATIVE)
    """How many calls to look back from an insight for its facts and decisions."""
    constraint_window: int = field(default=2, metadata=ANSWER | NOT_NEGATIVE)
    """How many calls to look back from a decision for its facts and reminders."""
    constraint_links: int = field(default=2, metadata=ANSWER | POSITIVE)
    """Maximum facts and reminders per decision; the latest ones are linked."""
    constraint_overlap: bool = field(default=True, metadata=ANSWER)
    """Whether a decision and its facts must have a common word."""
    event_window: int = field(default=10, metadata=ANSWER | NOT_NEGATIVE)
    """How many calls to look back from a decision for its events."""
    event_chain: bool = field(default=False, metadata=ANSWER)
    """Whether each event is also linked to the next one in time that shares something rare."""
    temporal_edges: bool = field(default=True, metadata=ANSWER)
    """Whether the edges from decisions to earlier facts, reminders and events count."""
    retrieval: Literal["dense", "hybrid"] = field(default="hybrid", metadata=ANSWER)
    """Ranking of artifacts: by vectors, or by 0.7 * vectors + 0.3 * BM25."""
    dense_norm: Literal["none", "max"] = field(default="none", metadata=ANSWER)
    """Whether cosines are used as they are, or divided by the best one."""
    reranker: str = field(default="lexical", metadata=ANSWER)
    """Reranker of the artifacts that were found, under `reranker=default`."""
    rerank_candidates: int = field(default=30, metadata=ANSWER | POSITIVE)
    """Number of artifacts whose neighbours are found, if there is a reranker; otherwise `top_k`."""
    rerank_pool: Literal["expanded", "candidates"] = field(default="expanded", metadata=ANSWER)
    """Artifacts to rerank: candidates and neighbours, or the best `rerank_candidates`."""
    show: Literal["full", "compact"] = field(default="full", metadata=ANSWER)
    """Parts of an artifact that the reader sees: all, or its type's initial, date and content."""
    context_budget: int = field(default=5000, metadata=ANSWER | POSITIVE)
    """Maximum tokens of the artifacts shown, by the published estimate."""
    show_window: bool = field(default=False, metadata=ANSWER)
    """Whether to also show the agent's window, which is everything before any compression."""
    cot: bool = field(default=True, metadata=ANSWER)
    """Whether to answer step by step instead of briefly."""
    # The default of the last published version. In the published runs each variant has its own
    # number, so the cell's is not used.
    top_k: int | None = field(default=15, metadata=ANSWER | POSITIVE)
    """Maximum artifacts shown, instead of the cell's `top_k`; None uses the cell's."""
    adaptive_k: bool = field(default=True, metadata=ANSWER)
    """Whether a `top_k` below 15 is raised to 12 for questions of time, 15 for reasons."""

    @property
    def max_shown(self) -> int | None:
        """Maximum artifacts shown, instead of the cell's `top_k`."""
        return self.top_k
