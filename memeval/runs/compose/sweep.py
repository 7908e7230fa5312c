"""Cells of a sweep are composed together: those with the same options share one composition.

Hydra composes all files again for each job: a thousand cells would take minutes.
"""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from memeval.config.grids import words_of_cell
from memeval.config.names import options_with_field, without_marks
from memeval.config.overrides import INTEGER_GROUPS
from memeval.runs.compose.composition import Composition, Fields, ParsedOverride, SeparateOptions

FILE = "file://"
"""Prefix of a search path entry of Hydra that is a user's folder."""
MANY = 12
"""Number of compositions of a sweep after which the others are assembled."""


class SweepComposer:
    """Composes the cells of a sweep: those with the same options share one composition.

    Their differing values are set in a copy of it.
    """

    def __init__(
        self, loader: ConfigLoader, master: DictConfig, jobs: Sequence[Sequence[str]] = ()
    ) -> None:
        """`jobs` are the overrides of all cells."""
        self._loader, self._master = loader, master
        self._options = frozenset(map(without_marks, chain.from_iterable(jobs)))
        """All overrides of the sweep, some of which choose options: `llm=openai`."""
        self._folders = _user_folders(loader)
        self._parser = OverridesParser.create()
        self._words: dict[str, ParsedOverride] = {}
        self._compositions: dict[tuple[str, ...], Composition | None] = {}
        """By options; None if a config file sets an integer itself: a copy would be wrong."""
        self._separate_options: dict[tuple[str, ...], SeparateOptions] = {}

    def compose(self, overrides: Sequence[str], number: int) -> tuple[Fields, list[str]]:
        """The fields of a job, as Hydra's loader composes them, and the job's overrides.

        Afterwards, Hydra's own config is that of this job.
        """
        overrides = self._without_others_fields(overrides)
        parsed = list(map(self._read, overrides))
        words, choices = self._expand_cell(parsed)
        shared = self._shared_composition(words) if _may_share(words) else None
        fields = shared.fields_with(words) if shared else None
        if shared is None or fields is None:
            # Hydra itself reports a mistake in an override.
            composition = Composition.of(self._load(overrides))
            assert composition.fields is not None
            return composition.fields, composition.announce(number, (), {})

        for word in words:
            if word.integer is not None:
                choices[word.name] = str(word.integer)

        return fields, shared.announce(number, [word.line for word in parsed], choices)

    def _expand_cell(
        self, parsed: Sequence[ParsedOverride]
    ) -> tuple[Sequence[ParsedOverride], dict[str, str]]:
        """A job's overrides, with those of its cell instead of `+cell=smoke-1`, and that choice.

        The job's own options and fields come after those of the cell, and override them.
        """
        cells, rest, chosen = [], [], set()
        for word in parsed:
            if word.name == "cell" and word.may_share:
                cells.append(word)
            else:
                rest.append(word)
                if word.is_option:
                    chosen.add(word.name)

        option = str(cells[0].override.value()) if len(cells) == 1 else ""
        lines = words_of_cell(option)
        if lines is None:
            return parsed, {}

        cell_words = [word for word in map(self._read, lines) if word.name not in chosen]
        return [*cell_words, *rest], {"cell": option}

    def _without_others_fields(self, overrides: Sequence[str]) -> list[str]:
        """The overrides of a cell without fields that belong only to an option of another cell: in
        `reranker=none,endpoint reranker.base_url=...`, the URL is for `endpoint` alone.
        """
        chosen = {word.partition("=")[0].lstrip("+"): without_marks(word) for word in overrides}
        kept = []
        for word in overrides:
            name = word.partition("=")[0]
            owners: Sequence[str] = ()
            if "." in name:
                owners = options_with_field(name, self._options, self._folders)

            choice = chosen.get(name.partition(".")[0])
            is_foreign = choice not in owners and not self._options.isdisjoint(owners)
            if choice is None or not is_foreign:
                kept.append(word)

        return kept

    def _shared_composition(self, words: Sequence[ParsedOverride]) -> Composition | None:
        composed, integers, others = [], {}, []
        for word in words:
            if not word.is_composed:
                continue

            composed.append(word)
            if word.integer is None:
                others.append(word.line)
            else:
                integers[word.name] = word.integer

        key = (*others, *sorted(integers))
        if key not in self._compositions:
            base = self._assemble(composed)
            # An assembled composition can only be given plain values.
            if base is None or base.fields_with(words) is None:
                base = self._compose_shared(composed, integers)

            self._compositions[key] = base

        return self._compositions[key]

    def _compose_shared(
        self, words: Sequence[ParsedOverride], integers: Mapping[str, int]
    ) -> Composition | None:
        config = self._load([word.line for word in words])
        for name, number in integers.items():
            # A config file that assigns the field overrides the option: a copy would hide that.
            if config[name] != number:
                return None

        return Composition.of(config)

    def _assemble(self, words: Sequence[ParsedOverride]) -> Composition | None:
        """A composition of options composed separately; None for a sweep's first ones."""
        options, lines = {}, []
        for word in words:
            if word.is_option and not word.line.startswith("+"):
                options[word.name] = word
            else:
                lines.append(word.line)

        if len(self._compositions) < MANY or not 2 <= len(options) == len(words) - len(lines):
            return None

        frame = tuple(lines)
        if frame not in self._separate_options:
            self._separate_options[frame] = SeparateOptions(self._load, frame)

        return self._separate_options[frame].assemble(list(options.values()))

    def _load(self, lines: Sequence[str]) -> DictConfig:
        return self._loader.load_sweep_config(self._master, list(lines))

    def _read(self, text: str) -> ParsedOverride:
        if text not in self._words:
            (override,) = self._parser.parse_overrides([text])
            sources = self._loader.get_sources()
            is_option = any(source.is_group(override.key_or_group) for source in sources)
            self._words[text] = ParsedOverride(
                override=override,
                is_option=is_option,
                adds_field=not is_option and (override.is_add() or override.is_force_add()),
                integer=_integer(override),
                may_share=not (
                    override.is_hydra_override()
                    or override.package is not None
                    or override.is_delete()
                    or override.is_sweep_override()
                ),
            )

        return self._words[text]


def _integer(override: Override) -> int | None:
    """The integer that an override gives to a group that takes any positive integer."""
    text = str(override.value()).strip("'\"")
    if override.key_or_group in INTEGER_GROUPS and text.isascii() and text.isdigit():
        return int(text) or None

    return None


def _user_folders(loader: ConfigLoader) -> tuple[Path, ...]:
    """The folders of options that were given with `--config-dir`."""
    paths = [element.path or "" for element in loader.get_search_path().get_path()]
    return tuple(Path(path.removeprefix(FILE)) for path in paths if path.startswith(FILE))


def _may_share(words: Sequence[ParsedOverride]) -> bool:
    """Whether a job can use a shared composition in which only the values of fields differ.

    It can't if a field is both added and assigned: then the order of the overrides matters.
    """
    added, assigned = [], []
    for word in words:
        if not word.may_share:
            return False
        if word.adds_field:
            added.append(f"{word.name}.")
        elif not word.is_option:
            assigned.append(f"{word.name}.")

    for field, other in product(added, assigned):
        if field.startswith(other) or other.startswith(field):
            return False

    return True
