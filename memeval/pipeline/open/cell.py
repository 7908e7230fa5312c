"""An opened cell: its data set, templates, keys and folders, before anything is run."""

from functools import cache, cached_property
from pathlib import Path

from msgspec import Struct

from memeval.config.classes import is_built_in, path_of
from memeval.config.identity import IdentityInputs, Keys, keys, run_key
from memeval.config.options import built_in_classes
from memeval.config.paths import outputs_dir, prepared_dir
from memeval.config.schema import STAGES, TOOLS, RunConfig
from memeval.config.settings import TENANTS, TIMEOUT
from memeval.datasets.contract import Dataset, LoadedDataset
from memeval.llm.prompts import PromptTemplate
from memeval.pipeline.open.cell_prompts import Templates
from memeval.pipeline.open.retrieving import RETRIEVE, retrieves_only
from memeval.pipeline.open.system_source import IMPORTED, Source, SystemSource
from memeval.results.files import memory_folders
from memeval.text.names import file_name

LARGE = 50 * 2**20
"""Maximum size in bytes of a data file that may be read more often than the run itself needs."""


class Cell(Struct, frozen=True, dict=True):
    """One resolved configuration with the contents of its files."""

    config: RunConfig
    dataset: Dataset
    loaded: LoadedDataset
    source: Source
    """Source of the answers: a memory system, or a file of another program's answers."""
    templates: Templates
    judge_template: PromptTemplate | None
    identity: IdentityInputs
    figures_code: str
    """Identity of the code for the figures: if it changes, they are computed again from rows."""
    command: str
    """The one command that repeats the cell."""

    @cached_property
    def run_key(self) -> str:
        return run_key(self.config, self.identity)

    @property
    def is_large(self) -> bool:
        """Whether the data set is one large file."""
        path = self.loaded.path
        return path.is_file() and path.stat().st_size > LARGE

    @property
    def is_read_quickly(self) -> bool:
        """Whether the data can be read again quickly. A custom adapter may read it only once."""
        is_small = self.loaded.path.is_file() and not self.is_large
        return is_small and is_built_in(type(self.dataset))

    @property
    def seeds(self) -> range:
        """The seed of each repeat."""
        return range(self.config.seed, self.config.seed + self.config.num_runs)

    def keys(self, seed: int) -> Keys:
        if seed not in self._keys:
            self._keys[seed] = keys(self.config, self.identity, seed)

        return self._keys[seed]

    @cached_property
    def _keys(self) -> dict[int, Keys]:
        """The requested keys, kept because computing them takes milliseconds."""
        return {}

    @property
    def is_imported(self) -> bool:
        """Whether another program gave the answers."""
        return bool(self.config.system["name"] == IMPORTED)

    @property
    def has_built_in_system(self) -> bool:
        """Whether the system is built in, or no system is run."""
        return not isinstance(self.source, SystemSource) or is_built_in(self.source.system_class)

    @property
    def timeout_s(self) -> float | None:
        """Time limit of each call of the system."""
        limit: float | None = self.config.system.get(TIMEOUT)
        return limit

    @property
    def folder(self) -> Path:
        return outputs_dir() / "runs" / self.run_key

    def redoes(self, stage: str) -> bool:
        """Whether a stage is done again although its results exist: `fresh` names the first one."""
        fresh = self.config.fresh
        return fresh is not None and STAGES.index(fresh) <= STAGES.index(stage)

    def answers_file(self, seed: int) -> Path:
        return outputs_dir() / "answers" / f"{self.keys(seed).answer}.jsonl"

    def verdicts_file(self, seed: int) -> Path:
        return outputs_dir() / "verdicts" / f"{self.keys(seed).judge}.jsonl"

    def memory_folder(self, seed: int) -> Path:
        """Folder of a repeat's memories, `<data set>/<system>-<key>`; only the key counts."""
        key = self.keys(seed).prepare
        # Found by the key alone: the names before it may differ.
        saved = memory_folders(prepared_dir(), key)
        if saved:
            return saved[0]

        dataset, system = file_name(self.config.dataset["name"]), file_name(self.system_name)
        return prepared_dir() / dataset / f"{system}-{key}"

    @property
    def system_name(self) -> str:
        """The system's name, without the variant: options of the same class share memories."""
        name = str(self.config.system["name"])
        if not isinstance(self.source, SystemSource):
            return name

        system = self.source.system_class
        # The shortest is the name without a variant: `cogcanvas`, not `cogcanvas_cot`.
        return min(_options_of(path_of(system)), key=len, default=name)

    @property
    def style(self) -> str:
        """The style of the answers' template."""
        return self.source.answer_style or self.config.prompt.name

    @property
    def name(self) -> str:
        """Short and readable, for tables and MLflow's list."""
        return run_name(self.config)


def run_name(config: RunConfig) -> str:
    """A run's short and readable name: `bm25 turn k=10 keyword short extractive`."""
    parts = [config.system["name"]]
    if config.label:
        parts.append(config.label)
    if config.system["name"] == IMPORTED:
        parts.append(Path(config.system["file"]).stem)
        # A label may be the name of the file.
        return " ".join([*dict.fromkeys(parts), config.judge.name])

    parts += [config.granularity.name, f"k={config.top_k}"]
    if config.context_tokens is not None:
        parts.append(f"context={config.context_tokens}")
    if config.compression_turn != "never":
        parts.append(f"compress={config.compression_turn}")
    if config.system.get(TENANTS) is not None:
        parts.append(f"{TENANTS}={config.system[TENANTS]}")
    if config.reader.name == TOOLS:
        parts.append(f"reader={TOOLS}")
    if config.writer.name == TOOLS:
        parts.append(f"writer={TOOLS}")
    if config.dataset["sample"] is not None:
        parts.append(f"sample {config.dataset['sample']}")
    if retrieves_only(config):
        return " ".join([*parts, RETRIEVE])

    return " ".join(
        [*parts, config.judge.name, config.prompt.name, config.llm.model or config.llm.name]
    )


@cache
def _options_of(system: str) -> tuple[str, ...]:
    """The options that name a system's class."""
    return tuple(name for name, path in built_in_classes("system").items() if path == system)
