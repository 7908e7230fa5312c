"""Cells of a sweep are composed together: those with the same options share one composition.

Hydra composes all files again for each job: a thousand cells would take minutes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from memeval.config.integers import INTEGER_GROUPS
from memeval.config.names import homes_of, plain

Fields = DictConfig | dict[str, Any]
"""Fields composed by a job, without Hydra's own part."""


@dataclass(frozen=True)
class _Word:
    """A word of a job."""

    override: Override
    is_option: bool
    """Whether it chooses an option of a group: `system=bm25`, `+sweep=smoke`."""
    adds_field: bool
    integer: int | None
    """Value given to a group that takes any integer."""
    may_share: bool
    """Whether cells with this word may share a composition."""

    @property
    def name(self) -> str:
        return self.override.key_or_group

    @property
    def is_composed(self) -> bool:
        """Whether it is part of a composition; else it gives a field of one its value."""
        return self.is_option or self.adds_field


class _Base:
    """A composition, which cells with the same options share."""

    def __init__(self, config: DictConfig) -> None:
        """`config` is given away: Hydra's own part is taken out of it."""
        HydraConfig.instance().set_config(config)
        self._hydra = HydraConfig.instance().cfg
        with open_dict(config):
            del config["hydra"]

        self.fields = config
        values: Any = OmegaConf.to_container(config)
        self._values: dict[str, Any] | None = (
            None if any(map(_is_reference, _leaves(values))) else values
        )
        """The same as Python's own dictionaries; None if fields refer to others."""

    def give(self, words: Sequence[_Word]) -> Fields | None:
        """The fields with the values that the words give; None for a word that OmegaConf refuses.

        A field of `INTEGER_GROUPS` gets its integer.
        """
        own = [word for word in words if not word.is_composed]
        given = self._assign(own) or self._update(own)
        if given is None:
            return None

        for word in words:
            if word.integer is not None:
                given[word.name] = word.integer

        return given

    def _assign(self, words: Sequence[_Word]) -> Fields | None:
        """Python's own dictionaries with these values; None if that takes more than assignments."""
        values = copy.deepcopy(self._values)
        if values is None or not all(_put(values, word) for word in words):
            return None

        return values

    def _update(self, words: Sequence[_Word]) -> Fields | None:
        """The fields as Hydra updates them; None for a word that OmegaConf refuses."""
        fields = copy.deepcopy(self.fields)
        try:
            for word in words:
                OmegaConf.update(fields, word.name, word.override.value(), merge=True)
        except OmegaConfBaseException:
            return None

        return fields

    def announce(self, number: int, words: Sequence[_Word] = ()) -> list[str]:
        """Makes this Hydra's own config for a job; returns the job's overrides.

        `words` are those of the job if the composition is shared.
        """
        HydraConfig.instance().cfg = self._hydra
        hydra: Any = HydraConfig.get()
        with read_write(hydra.job):
            hydra.job.id, hydra.job.num = str(number), number

        # Hydra's data about the job must be about this job, not the first one.
        if words:
            with read_write(hydra.overrides):
                hydra.overrides.task = [word.override.input_line for word in words]

        with read_write(hydra.runtime.choices):
            for word in words:
                if word.integer is not None:
                    hydra.runtime.choices[word.name] = str(word.integer)

        task: Any = OmegaConf.to_container(hydra.overrides.task, resolve=False)
        return list(task)


class SweepComposer:
    """Composes the cells of a sweep: those with the same options share one composition.

    The values in which they differ are put into a copy of it.
    """

    def __init__(
        self, loader: ConfigLoader, master: DictConfig, jobs: Sequence[Sequence[str]] = ()
    ) -> None:
        """`jobs` are the overrides of all cells."""
        self._loader, self._master = loader, master
        self._options = frozenset(plain(word) for overrides in jobs for word in overrides)
        """All words of the sweep, of which some choose options: `llm=openai`."""
        self._parser = OverridesParser.create()
        self._words: dict[str, _Word] = {}
        self._bases: dict[tuple[str, ...], _Base | None] = {}
        """By options; None if a config file decides on an integer, so that copies won't do."""

    def compose(self, overrides: Sequence[str], number: int) -> tuple[Fields, list[str]]:
        """The fields of a job, as Hydra's loader composes them, and the job's overrides.

        Hydra's own config is that of the job from here on.
        """
        overrides = self._without_others_fields(overrides)
        words = [self._read(word) for word in overrides]
        shared = self._base_of(words) if _may_share(words) else None
        fields = shared.give(words) if shared else None
        if shared is None or fields is None:
            # Hydra itself reports what is wrong with a word.
            alone = _Base(self._loader.load_sweep_config(self._master, list(overrides)))
            return alone.fields, alone.announce(number)

        return fields, shared.announce(number, words)

    def _without_others_fields(self, overrides: Sequence[str]) -> list[str]:
        """The words of a cell without fields that its option does not have, but that of another
        cell has: `reranker=none,endpoint reranker.base_url=...` means the endpoint's alone.
        """
        chosen = {word.partition("=")[0].lstrip("+"): plain(word) for word in overrides}
        kept = []
        for word in overrides:
            name = word.partition("=")[0]
            homes = homes_of(name, self._options) if "." in name else ()
            own = chosen.get(name.partition(".")[0])
            is_others = own not in homes and not self._options.isdisjoint(homes)
            if own is None or not is_others:
                kept.append(word)

        return kept

    def _base_of(self, words: Sequence[_Word]) -> _Base | None:
        """The composition of the words that are part of one."""
        composed = [word for word in words if word.is_composed]
        integers = {word.name: word.integer for word in composed if word.integer is not None}
        others = [word.override.input_line or "" for word in composed if word.integer is None]
        key = (*others, *sorted(integers))

        if key not in self._bases:
            lines = [word.override.input_line or "" for word in composed]
            config = self._loader.load_sweep_config(self._master, lines)
            # A config file that assigns the field beats the option: a copy would hide that.
            is_chosen = all(config[name] == number for name, number in integers.items())
            self._bases[key] = _Base(config) if is_chosen else None

        return self._bases[key]

    def _read(self, text: str) -> _Word:
        """A word, parsed once."""
        if text not in self._words:
            (override,) = self._parser.parse_overrides([text])
            sources = self._loader.get_sources()
            is_option = any(source.is_group(override.key_or_group) for source in sources)
            self._words[text] = _Word(
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
    """The integer that a word gives to a group that takes any but 0."""
    text = str(override.value()).strip("'\"")
    is_integer = override.key_or_group in INTEGER_GROUPS and text.isascii() and text.isdigit()
    return int(text) or None if is_integer else None


def _may_share(words: Sequence[_Word]) -> bool:
    """Whether a job is a shared composition whose fields get other values.

    It is not where a field is added and given a value as well: there Hydra goes by their order.
    """
    added = [f"{word.name}." for word in words if word.adds_field]
    given = [f"{word.name}." for word in words if not word.is_composed]
    is_given = any(
        one.startswith(other) or other.startswith(one) for one in added for other in given
    )
    return all(word.may_share for word in words) and not is_given


def _put(values: dict[str, Any], word: _Word) -> bool:
    """Gives a field its value; whether that is what OmegaConf would do.

    It does more with mappings and references, and refuses unknown fields.
    """
    value = word.override.value()
    *path, last = word.name.split(".")
    inner: Any = values
    for name in path:
        inner = inner.get(name) if isinstance(inner, dict) else None

    if not isinstance(inner, dict) or last not in inner:
        return False

    items = value if isinstance(value, list) else [value]
    is_list = isinstance(inner[last], list)
    if isinstance(inner[last], dict) or (is_list and not isinstance(value, list)):
        return False
    if any(isinstance(item, dict | list) or _is_reference(item) for item in items):
        return False

    inner[last] = copy.copy(value)
    return True


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner)
    else:
        yield value


def _is_reference(value: Any) -> bool:
    """Whether a value refers to another one, or is not given yet."""
    return isinstance(value, str) and ("${" in value or value == "???")
