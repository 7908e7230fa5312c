"""Groups that take any positive integer: `top_k=7`, `-m top_k=3,wide,12`, `compression_turn=40`.

Hydra 1.3 refuses an integer as a group choice before it asks any config source. So integers of
these groups are quoted where overrides enter (the command line, a sweep's parameters), and a config
source of our own serves `<group>/<integer>`. Nothing of Hydra is patched.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from memeval.config.grids import CELL, cell_config, is_sweep, over_cells, read_sweep
from memeval.config.overrides import check_one_reranker, full_override
from memeval.config.paths import conf_dir, sweeps_dir

INTEGER_GROUPS = ("top_k", "compression_turn")
_INTEGER = re.compile(rf"({'|'.join(INTEGER_GROUPS)})/0*([1-9][0-9]*)")
_SWEEP = re.compile(r"sweep/([\w-]+)")


class ServedConfigs(ConfigSource):
    """Serves options that have no file of their own in conf/.

    `<group>/<integer>`; `sweep/<name>` from the folder sweeps/; and `cell/<name>-<number>` from a
    sweep's grids.
    """

    @staticmethod
    def scheme() -> str:
        return "memeval"

    def load_config(self, config_path: str) -> ConfigResult:
        name = config_path.removesuffix(".yaml")
        served = self._serve(name)
        if served is None:
            raise ConfigLoadError(f"Config not found : {config_path}")

        config, header = served

        return ConfigResult(
            config=config, path=f"memeval://{name}", provider=self.provider, header=header
        )

    def _serve(self, name: str) -> tuple[DictConfig, dict[str, str | None]] | None:
        """The config of that name with its header; None where it is not ours to serve."""
        # `_global_`, as in the files of these groups: the value is a field of the root.
        if integer := _INTEGER.fullmatch(name):
            return OmegaConf.create({integer[1]: int(integer[2])}), {"package": "_global_"}

        cell = CELL.fullmatch(name)
        config = cell_config(cell[1], int(cell[2])) if cell else None
        if config is not None:
            return config, {"package": "_global_"}

        sweep = _SWEEP.fullmatch(name)
        if sweep and is_sweep(sweep[1]):
            return self._read_sweep(sweep[1])

        return None

    def _read_sweep(self, name: str) -> tuple[DictConfig, dict[str, str | None]]:
        text = read_sweep(name)
        loaded = OmegaConf.create(text)
        assert isinstance(loaded, DictConfig), f"{name}.yaml is not a mapping"
        return over_cells(name, loaded), self._get_header_dict(text)

    def available(self) -> bool:
        return True

    def is_group(self, config_path: str) -> bool:
        return config_path in ("", "sweep", "cell")

    def is_config(self, config_path: str) -> bool:
        name = config_path.removesuffix(".yaml")
        if cell := CELL.fullmatch(name):
            return cell_config(cell[1], int(cell[2])) is not None

        sweep = _SWEEP.fullmatch(name)
        if sweep and is_sweep(sweep[1]):
            return True

        return _INTEGER.fullmatch(name) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Presets only: integers are not listed."""
        if config_path == "sweep" and results_filter != ObjectType.GROUP:
            return sorted(path.stem for path in sweeps_dir().glob("*.yaml"))

        return ["sweep"] if config_path == "" and results_filter != ObjectType.CONFIG else []


class ServedConfigsPath(SearchPathPlugin):
    """Puts our source behind the main one."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        search_path.append("memeval", "memeval://served")


class QuoteIntegers(Callback):
    """Quotes the integers in a sweep's own parameters, and gives settings their full paths, before
    the sweeper reads them.

    It raises nothing, for Hydra would swallow it.
    """

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        params = OmegaConf.select(config, "hydra.sweeper.params")
        if not params:
            return

        with read_write(config), open_dict(config):
            for key, value in list(params.items()):
                word = quote_integers([full_override(f"{key}={value}")])[0]
                del params[key]
                path, _, choices = word.partition("=")
                params[path] = choices


def register() -> None:
    """Makes the groups known to Hydra.

    Called before it starts. joblib's workers inherit the registration.
    """
    for plugin in (ServedConfigs, ServedConfigsPath):
        Plugins.instance().register(plugin)


def as_hydra_words(words: Sequence[str]) -> list[str]:
    """A user's overrides as Hydra takes them.

    Raises `UserError` where words choose different rerankers.
    """
    check_one_reranker(words)
    return quote_integers([full_override(word) for word in words])


def quote_integers(overrides: Sequence[str]) -> list[str]:
    """`overrides` with the numbers of `INTEGER_GROUPS` quoted, so that Hydra takes them as options
    and says itself which it can't find.
    """
    return [
        _quote(override) if override.lstrip("+").split("=", 1)[0] in INTEGER_GROUPS else override
        for override in overrides
    ]


def _quote(text: str) -> str:
    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException:
        return text  # Hydra parses it again, and reports the mistake

    values = _values(override)
    if all(isinstance(value, str) for value in values):
        return text

    return f"{override.get_key_element()}={','.join(map(_as_option, values))}"


def _values(override: Override) -> list[Any]:
    if override.is_discrete_sweep() and override.value_type is not ValueType.GLOB_CHOICE_SWEEP:
        return list(override.sweep_iterator(transformer=_plain))

    return [] if override.is_delete() or override.is_sweep_override() else [override.value()]


def _plain(value: Any) -> Any:
    return getattr(value, "text", value)


def _as_option(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_as_option, value))}]"

    return value if isinstance(value, str) else f"'{value}'"


def unquote_integer(override: str) -> str:
    """An override of `INTEGER_GROUPS` as a user types it: `top_k='7'` is `top_k=7`."""
    return re.sub(rf"^(\+?(?:{'|'.join(INTEGER_GROUPS)})=)'([0-9]+)'$", r"\1\2", override)


def options(group: str) -> list[str]:
    """Named options of a group in conf/."""
    return sorted(path.stem for path in (conf_dir() / group).glob("*.yaml"))


def option_value(group: str, option: str) -> Any:
    """What `group=option` sets: the integer itself, or what the option's file in conf/ assigns.

    None for an option from elsewhere.
    """
    if option.isdigit():
        return int(option)

    path = conf_dir() / group / f"{option}.yaml"
    return OmegaConf.select(OmegaConf.load(path), group) if path.is_file() else None
