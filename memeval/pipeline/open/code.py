"""The code of each stage: an edit in a checkout repeats only the stages that use it."""

import hashlib
import inspect
import linecache
import re
from collections.abc import Container
from pathlib import Path
from typing import Any, Self
from weakref import WeakKeyDictionary

from msgspec import Struct

from memeval.config.classes import is_built_in, path_of
from memeval.config.identity import Digests
from memeval.config.plugins import packages_of
from memeval.config.schema import ANSWER, JUDGE, PREPARE, TOOLS, RunConfig
from memeval.config.sources import code_identity
from memeval.errors import UserError
from memeval.metrics.registry import added_metrics
from memeval.results.own_prices import without_prices

_MODELS = {
    "extractive": "memeval.llm.extractive",
    "openai": "memeval.llm.openai",
    "mock": "memeval.llm.mock",
}

_MEMORY_PACKAGES = (
    "memeval.systems",
    "memeval.retrieval",
    "memeval.retrieval.embedding",
    "memeval.datasets",
    "memeval.llm.contract",
    "memeval.llm.extractive",
    "memeval.llm.form",
    "memeval.llm.memory_prompts",
    "memeval.llm.tokens",
    "memeval.text.words",
)
"""Packages that a system consists of, without calls of endpoints: replies are cached by content."""
_BUILDS = (
    "memeval.datasets.granularity",
    "memeval.pipeline.execute.builder",
    "memeval.pipeline.execute.compression",
    "memeval.pipeline.execute.ingest",
    "memeval.pipeline.execute.memory",
    "memeval.pipeline.execute.memory_build",
    "memeval.pipeline.execute.timeline",
)
"""Modules that build memories."""
_TOOL_CALLS = (
    "memeval.pipeline.execute.tool_arguments",
    "memeval.pipeline.execute.tool_loop",
    "memeval.pipeline.execute.tool_results",
)
"""Modules that run a model's calls of tools."""
_ADDED = re.compile(r"(\S+)=(\S+)")
"""Name and code of an added metric in the identity of the figures' code."""
_LOOK_UPS = (
    "memeval.datasets.fetch",
    "memeval.datasets.locate",
    "memeval.datasets.locomo.names",
    "memeval.datasets.registry",
    "memeval.judges.registry",
    "memeval.metrics.formats",
    "memeval.metrics.metric",
    "memeval.metrics.registry",
    "memeval.retrieval.rerank",
    "memeval.systems.registry",
)
"""Modules that look others up by name: an entry for one data set does not affect another."""


_imported_as: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""sha256 of the file of each custom class when it was first used."""


def stage_code(
    config: RunConfig,
    *,
    system: str | None,
    dataset: type,
    judge: type,
    embedder: type,
    reranker: type | None = None,
) -> Digests:
    """The identity of the code behind each stage; `system` is the module of the system, if any."""
    model = _MODELS.get(config.llm.name, "")
    builds = list(_BUILDS)
    if config.writer.name == TOOLS:
        builds += [*_TOOL_CALLS, "memeval.pipeline.execute.tool_writer"]

    asks = ["memeval.pipeline.execute.question", "memeval.pipeline.execute.reader", model]
    if config.reader.name == TOOLS:
        asks += [*_TOOL_CALLS, "memeval.pipeline.execute.tool_reader"]
    if reranker is not None:
        asks.append(reranker.__module__)

    # The judge and the metrics of a benchmark are in its package, but build no memory: editing them
    # must not repeat the ingest.
    package = dataset.__module__.rpartition(".")[0]
    scores = f"{package}.metrics"
    # The mock's replies depend on its code alone, unlike those of an endpoint.
    mock = model if config.llm.name == "mock" else ""
    prepare = code_identity(
        [*builds, system or "", dataset.__module__, embedder.__module__, mock],
        within=_MEMORY_PACKAGES,
        outside=(*_LOOK_UPS, f"{package}.info", f"{package}.judge", scores),
    )
    answer = code_identity(
        asks, within=("memeval.llm.extractive", "memeval.retrieval", "memeval.text.words")
    )
    # A judge may inherit its reading of replies, so the code of its base classes also counts.
    judges = [base.__module__ for base in judge.__mro__]
    judging = code_identity(
        [*judges, scores, "memeval.pipeline.execute.judging"],
        within=("memeval.judges", "memeval.metrics", "memeval.datasets", "memeval.text.words"),
        outside=_LOOK_UPS,
    )
    return {PREPARE: {"code": prepare}, ANSWER: {"code": answer}, JUDGE: {"code": judging}}


def figures_code(dataset: type) -> str:
    """The identity of the code that computes the figures from the rows. It is in no key."""
    measures = (
        "memeval.metrics.accuracy",
        "memeval.metrics.metric",
        "memeval.metrics.spending",
        "memeval.metrics.stored",
        "memeval.pipeline.open.judge_identity",
        "memeval.pipeline.measure.figures",
        "memeval.pipeline.execute.metrics",
        "memeval.pipeline.measure.provenance",
        "memeval.pipeline.measure.records",
        "memeval.pipeline.execute.rows",
        "memeval.pipeline.measure.run_notes",
        "memeval.pipeline.measure.selection",
        "memeval.pipeline.measure.summary",
        "memeval.pipeline.measure.spending",
    )
    built_in = code_identity(
        [*measures, dataset.__module__],
        within=("memeval.metrics", "memeval.datasets", "memeval.statistics", "memeval.text.words"),
        outside=_LOOK_UPS,
    )
    return " ".join([built_in, *_code_of_added_metrics()])


def _code_of_added_metrics() -> list[str]:
    added = []
    for metric in added_metrics():
        sources = [metric.of_answer, metric.of_record]
        added += [f"{metric.name}={class_identity(source)}" for source in sources if source]

    return added


class OtherMetrics(Struct, frozen=True):
    """The added metrics, such as those of packages, that differ between a run and this process."""

    here: frozenset[str]
    """Names of those that this process has, and the run lacks or has with different code."""
    run: frozenset[str]
    """Names of those that the run lists, and this process lacks."""

    @classmethod
    def of(cls, code: str) -> Self:
        """`code` is the run's `figures_code`."""
        of_run = set(_ADDED.findall(without_prices(code)))
        installed = set(_ADDED.findall(" ".join(_code_of_added_metrics())))
        here = frozenset(dict(installed - of_run))
        return cls(here=here, run=frozenset(dict(of_run - installed)) - here)

    def include(self, figure: str, computed: Container[str]) -> bool:
        """Whether a figure of a run belongs to them; `computed` are the figures computed here."""
        name = figure.partition("/")[0].removesuffix("_std")
        # A run may list anything, but can't hide a figure that is computed here.
        return name in self.here or (name in self.run and figure not in computed)


def class_identity(identified: Any) -> str:
    """`module:Class`; for a custom class also the sha256 of its file, and its package's version.

    For a class in a notebook, it is the sha256 of the cell. Raises `UserError` if the class is not
    that of the file because the file was edited since, and if no source is found.
    """
    if not hasattr(identified, "__qualname__"):
        identified = type(identified)  # an object that can be called

    name = path_of(identified)
    if is_built_in(identified):
        return name

    try:
        source = Path(inspect.getfile(identified)).read_bytes()
    except (OSError, TypeError):
        if identified.__module__ != "__main__":
            return name  # a class in C

        source = _cell_source(identified)
        if not source:
            raise UserError(
                f"{name} has no source file, so changes to it can't be detected",
                "write it to a file, and import it from there",
            ) from None

    digest = hashlib.sha256(source).hexdigest()
    if _imported_as.setdefault(identified, digest) != digest:
        raise UserError(
            f"{name} was imported before its file was edited",
            "restart Python, or import it again:  importlib.reload(my_module)",
        )

    identity = f"{name}@{digest}"
    packages = packages_of(identified.__module__)
    return f"{identity} {packages}" if packages else identity


def class_digests(stage: str, name: str, identified: type[Any] | None) -> Digests:
    """A custom class's contribution to the keys. Built-in classes are in the digest of the code."""
    if identified is None or is_built_in(identified):
        return {}

    return {stage: {name: class_identity(identified)}}


def _cell_source(identified: Any) -> bytes:
    """The cell of a notebook that defines a class or function; empty if it is not known."""
    members = [identified, *vars(identified).values()]
    codes = [member.__code__ for member in members if inspect.isfunction(member)]
    return "".join(linecache.getlines(codes[0].co_filename)).encode() if codes else b""
