"""Compositions that cells of a sweep share, and compositions that are assembled from options."""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from msgspec import Struct
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from memeval.text.redaction import strings_in

Fields = DictConfig | dict[str, Any]
"""The composed fields of a job, without the `hydra` section."""


class ParsedOverride(Struct, frozen=True):
    override: Override
    is_option: bool
    """Whether it chooses an option of a group: `system=bm25`, `+sweep=smoke`."""
    adds_field: bool
    integer: int | None
    """Value given to a group that takes any integer."""
    may_share: bool
    """Whether cells with this override may share a composition."""

    @property
    def name(self) -> str:
        return self.override.key_or_group

    @property
    def line(self) -> str:
        """The override as it was typed."""
        return self.override.input_line or ""

    @property
    def is_composed(self) -> bool:
        """Whether it takes part in composition; else it assigns a value to an existing field."""
        return self.is_option or self.adds_field


class Composition(Struct, frozen=True):
    """A composition that cells with the same options share."""

    fields: DictConfig | None
    """None if the composition was assembled: then it has only `values`."""
    values: dict[str, Any] | None
    """The fields as plain dictionaries; None if a field refers to another or has no value yet."""
    hydra: Any
    """The `hydra` section, which is updated for each job in turn."""
    choices: Mapping[str, str]
    """The chosen option of each group, for `hydra.runtime.choices`."""

    @classmethod
    def of(cls, config: DictConfig) -> Self:
        """Takes ownership of `config`, and removes its `hydra` section."""
        HydraConfig.instance().set_config(config)
        with open_dict(config):
            del config["hydra"]

        values: Any = OmegaConf.to_container(config)
        if any(map(_is_reference, strings_in(values))):
            values = None

        hydra: Any = HydraConfig.instance().cfg
        choices: Any = OmegaConf.to_container(hydra.hydra.runtime.choices)
        return cls(config, values, hydra, choices)

    def fields_with(self, words: Sequence[ParsedOverride]) -> Fields | None:
        """The fields with these overrides applied; None if one can't be applied.

        A field of `INTEGER_GROUPS` gets its integer.
        """
        assigned = [word for word in words if not word.is_composed]
        fields = self._assign(assigned) or self._update(assigned)
        if fields is None:
            return None

        for word in words:
            if word.integer is not None:
                fields[word.name] = word.integer

        return fields

    def _assign(self, words: Sequence[ParsedOverride]) -> Fields | None:
        """The fields as plain dictionaries with these values; None if assignments don't suffice."""
        values = copy.deepcopy(self.values)
        if values is None or not all(_assign_field(values, word) for word in words):
            return None

        return values

    def _update(self, words: Sequence[ParsedOverride]) -> Fields | None:
        """The fields as Hydra updates them; None without `fields`, or if OmegaConf refuses one."""
        if self.fields is None:
            return None

        fields = copy.deepcopy(self.fields)
        try:
            for word in words:
                OmegaConf.update(fields, word.name, word.override.value(), merge=True)
        except OmegaConfBaseException:
            return None

        return fields

    def announce(self, number: int, task: Sequence[str], choices: Mapping[str, str]) -> list[str]:
        """Sets this as Hydra's own config, with the data of a job; returns the job's overrides.

        If jobs share the composition, `task` contains the overrides of this job, and `choices` the
        options that only it has; otherwise both are empty.
        """
        HydraConfig.instance().cfg = self.hydra
        hydra: Any = HydraConfig.get()
        with read_write(hydra.job):
            hydra.job.id, hydra.job.num = str(number), number

        # Hydra's job data must describe this job, not the first one.
        if task:
            with read_write(hydra.overrides):
                hydra.overrides.task = list(task)

        with read_write(hydra.runtime):
            hydra.runtime.choices = {**self.choices, **choices}

        overrides: Any = OmegaConf.to_container(hydra.overrides.task, resolve=False)
        return list(overrides)


class SeparateOptions:
    """Options composed separately, from which compositions are assembled: for five systems and four
    data sets, Hydra composes ten times instead of twenty.
    """

    def __init__(
        self, compose: Callable[[Sequence[str]], DictConfig], frame: Sequence[str]
    ) -> None:
        """`frame` contains the overrides that all of these compositions share."""
        self._compose, self._frame = compose, list(frame)
        self._frame_alone = self._composition(())
        self._rest = _rest_of(self._frame_alone) if self._frame_alone else {}
        self._by_option: dict[str, tuple[Any, str] | None] = {}
        """By option: the value of its group's field, and its name in Hydra's choices; None for an
        option that changes anything else.
        """

    def assemble(self, words: Sequence[ParsedOverride]) -> Composition | None:
        """The composition with these options; None if only Hydra can compose it."""
        if self._frame_alone is None or self._frame_alone.values is None:
            return None

        values, choices = dict(self._frame_alone.values), dict(self._frame_alone.choices)
        for word in words:
            key = word.line if word.integer is None else word.name
            if key not in self._by_option:
                self._by_option[key] = self._change_by(word, self._frame_alone)

            part = self._by_option[key]
            if part is None:
                return None

            values[word.name], choices[word.name] = part

        return Composition(None, values, self._frame_alone.hydra, choices)

    def _composition(self, lines: Sequence[str]) -> Composition | None:
        """The composition of the frame with these overrides; None if they need others as well."""
        with suppress(HydraException, OmegaConfBaseException):
            return Composition.of(self._compose([*self._frame, *lines]))

        return None

    def _change_by(self, word: ParsedOverride, plain: Composition) -> tuple[Any, str] | None:
        """The field and the choice that an option sets; None if it changes anything else."""
        name, base = word.name, self._composition([word.line])
        if base is None or base.values is None or plain.values is None:
            return None
        if name not in base.values or name not in base.choices:
            return None
        if word.integer is not None and base.values[name] != word.integer:
            return None

        # Compared as strings, so 1, 1.0 and true differ, and the order counts.
        before = repr([{**plain.values, name: 0}, {**plain.choices, name: 0}, self._rest])
        after = repr([{**base.values, name: 0}, {**base.choices, name: 0}, _rest_of(base)])
        return (base.values[name], base.choices[name]) if before == after else None


def _rest_of(base: Composition) -> dict[str, Any]:
    """The `hydra` section without the chosen options and the job's data."""
    rest: dict[str, Any] = OmegaConf.to_container(base.hydra.hydra)  # type: ignore[assignment]
    del rest["runtime"]["choices"], rest["job"]["override_dirname"], rest["overrides"]["task"]
    return rest


def _assign_field(values: dict[str, Any], word: ParsedOverride) -> bool:
    """Assigns a field its value if OmegaConf would do just that; returns whether it did.

    OmegaConf does more with mappings and references, and refuses unknown fields.
    """
    value = word.override.value()
    *path, last = word.name.split(".")
    inner: Any = values
    for name in path:
        if not isinstance(inner, dict):
            return False

        inner = inner.get(name)

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


def _is_reference(value: Any) -> bool:
    """Whether a value refers to another one, or is not given yet."""
    return isinstance(value, str) and ("${" in value or value == "???")
