"""A config source that serves all options to Hydra.

These are the files in conf/, each read once; `<group>/<integer>`; `sweep/<name>` from the folder
sweeps/; `cell/<name>-<number>` from a sweep's grids; and the options of installed packages: YAML
files, and classes, whose options have the fields of their settings type. A class that is named only
by its path (`overrides.py`) is served like these.
"""

import os
import pickle
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from memeval.config.classes import import_named
from memeval.config.grids import cell_config, replace_grids, sweep_file, sweep_files, words_of_cell
from memeval.config.integers import INTEGER
from memeval.config.leaves import flatten
from memeval.config.overrides import CLASS_OPTION, GROUPS
from memeval.config.paths import conf_dir
from memeval.config.plugins import (
    METRIC,
    PARTS,
    SWEEP,
    Plugin,
    option_file,
    plugin,
    plugins,
    read_yaml,
)
from memeval.config.schema import (
    EmbedderConfig,
    JudgeConfig,
    LlmConfig,
    PromptConfig,
    RerankerConfig,
)
from memeval.config.settings import REQUIRED, default_of
from memeval.errors import UserError

_SCHEMAS: Mapping[str, type[Any]] = {
    "judge": JudgeConfig,
    "embedder": EmbedderConfig,
    "reranker": RerankerConfig,
    "llm": LlmConfig,
    "prompt": PromptConfig,
}
"""Groups whose options all have the same fields. In other groups, the settings types have them."""
Served = tuple[DictConfig, dict[str, str | None]]
"""A config with its header."""


def served_fields(group: str, option: str) -> dict[str, Any] | None:
    """The fields of an option that is a class, including `name` and `class`.

    None if no package has the option. Raises `UserError` for a class that can't be imported, and
    for an option of two packages.
    """
    if group in GROUPS and (match := CLASS_OPTION.fullmatch(option)):
        label = f"{group} '{match['name'] or match['path'].rpartition(':')[2]}'"
        part = import_named(match["path"], group, label)
        name = match["name"] or _name_of(group, match["path"], part)
        return {"name": name, "class": match["path"], **_settings(group, part)}

    if group not in PARTS or group == METRIC:
        return None

    provider = plugin(group, option)
    if provider is None or provider.path is None:
        return None
    part = None
    if group not in _SCHEMAS:
        part = import_named(provider.path, group, f"{group} '{option}' of {provider.package}")

    # Including the class, as in memeval's own files: an option that extends this one inherits it.
    own_class = {"class": provider.path} if group in GROUPS else {}
    return {"name": option, **own_class, **_settings(group, part)}


def describe(group: str, part: Plugin) -> str:
    """The first line of a class's docstring; empty for an option without a class."""
    if part.path is None or group == "prompt":
        return ""

    part_object = import_named(part.path, group, f"{group} '{part.name}' of {part.package}")
    return (part_object.__doc__ or "").strip().partition("\n")[0]


@cache
def chosen_options(
    name: str, words: frozenset[str], folders: tuple[Path, ...] = ()
) -> tuple[str, ...]:
    """The options that `words` choose and that have the field `name`, their own or inherited;
    `folders` are the user's.
    """
    group, _, field = name.partition(".")
    owners: list[str] = []
    for word in sorted(words):
        key, _, values = word.partition("=")
        if key != group or group not in PARTS:
            continue

        for option in map(str.strip, values.split(",")):
            names = _field_names(group, option, folders)
            # A field may have subfields: `system.tools` has `system.tools.deny`.
            if any(f"{known}.".startswith(f"{field}.") for known in names):
                owners.append(f"{group}={option}")

    return tuple(owners)


def package_fields(group: str) -> Mapping[str, Sequence[str]]:
    """The fields of all options that packages provide for a group, with these options."""
    owners: dict[str, list[str]] = {}
    for option in sorted(plugins(group)):
        # An option that can't be imported is reported when it is chosen.
        with suppress(UserError):
            for field in sorted(_field_names(group, option)):
                owners.setdefault(f"{group}.{field}", []).append(f"{group}={option}")

    return owners


def _field_names(group: str, option: str, folders: Sequence[Path] = ()) -> Collection[str]:
    """The fields of an option, including inherited ones; `folders` are the user's."""
    file = _file(group, option)
    for folder in folders:
        user_file = folder / group / f"{option}.yaml"
        if file is None and user_file.is_file():
            file = user_file

    if file is None:
        return served_fields(group, option) or ()

    loaded = read_yaml(file)
    names = set(flatten(loaded))
    for base in loaded.get("defaults", ()):
        if isinstance(base, str) and base not in ("_self_", option):
            names |= set(_field_names(group, base, folders))

    return names


def _name_of(group: str, path: str, part: Any) -> str:
    """Name of an option that is given only by a class path."""
    if group == "judge":
        return "auto"

    return str(getattr(getattr(part, "info", None), "name", path.rpartition(":")[2]))


def _settings(group: str, part: Any) -> dict[str, Any]:
    """The fields of a class's settings with their defaults, as YAML values."""
    schema = _SCHEMAS.get(group) or getattr(part, "settings_type", None)
    if not (isinstance(schema, type) and is_dataclass(schema)):
        return {}  # refused when the settings are read

    values = _defaults(schema)
    return {name: value for name, value in values.items() if name not in ("name", "class_")}


def _defaults(schema: type[Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for entry in fields(schema):
        if not entry.init or entry.metadata.get("deprecated"):
            continue

        value = default_of(entry)
        if value is MISSING:
            value = REQUIRED

        if is_dataclass(value) and not isinstance(value, type):
            values[entry.name] = _defaults(type(value))
        elif isinstance(value, tuple):
            values[entry.name] = list(value)
        elif _is_yaml(value):
            values[entry.name] = value

    return values


def _is_yaml(value: Any) -> bool:
    """Whether YAML can represent a default. If it can't, the setting is not listed."""
    try:
        OmegaConf.create({"value": value})
    except OmegaConfBaseException:
        return False

    return True


class ServedConfigs(ConfigSource):
    """Serves the files of a folder, and the options that have no file in it."""

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

    def _serve(self, name: str) -> Served | None:
        """The config of that name with its header; None if memeval does not serve it."""
        # `_global_`, as in the files of these groups: the value is a field of the root.
        if integer := INTEGER.fullmatch(name):
            return OmegaConf.create({integer[1]: int(integer[2])}), {"package": "_global_"}

        group, _, option = name.rpartition("/")
        if group == "cell":
            cell = cell_config(option)
            return None if cell is None else (cell, {"package": "_global_"})

        file = _file(group, option)
        if file is not None:
            config, header = _read(file)
            if group == SWEEP:
                config = replace_grids(option, config)

            return config, header

        values = served_fields(group, option)
        return None if values is None else (OmegaConf.create(values), {"package": None})

    def available(self) -> bool:
        return True

    def is_group(self, config_path: str) -> bool:
        if config_path in ("", SWEEP, "cell") or _package_choices(config_path):
            return True

        return os.path.isdir(Path(self.path, config_path))  # noqa: PTH112

    def is_config(self, config_path: str) -> bool:
        name = config_path.removesuffix(".yaml")
        group, _, option = name.rpartition("/")
        if group == "cell":
            return words_of_cell(option) is not None
        if INTEGER.fullmatch(name):
            return True
        if group in GROUPS and CLASS_OPTION.fullmatch(option):
            return True

        return _file(group, option) is not None or option in _package_choices(group)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Lists presets only, not integers."""
        names: set[str] = set()
        if results_filter != ObjectType.CONFIG:
            folders = Path(self.path, config_path).glob("*/")
            names |= {folder.name for folder in folders}
            if config_path == "":
                names.add(SWEEP)
        if results_filter != ObjectType.GROUP:
            files = Path(self.path, config_path).glob("*.yaml")
            names |= {file.stem for file in files}
            others = sweep_files() if config_path == SWEEP else _package_choices(config_path)
            names.update(others)

        return sorted(names)


def _read(file: Path) -> Served:
    """A file with its header. It is parsed once, and again after it was changed."""
    # The composition modifies its input. Unpickling takes a fifth of the time of `deepcopy`.
    served: Served = pickle.loads(_parsed(file, file.read_text(encoding="utf-8")))
    return served


@cache
def _parsed(file: Path, text: str) -> bytes:
    config = OmegaConf.load(file)
    assert isinstance(config, DictConfig), f"{file.name} is not a mapping"
    return pickle.dumps((config, ConfigSource._get_header_dict(text)))


def _package_choices(group: str) -> Collection[str]:
    """The options that packages provide for a group. A metric is not chosen: all are measured."""
    return () if group == METRIC else plugins(group)


def _file(group: str, option: str) -> Path | None:
    """The file of an option or of a sweep; None if there is no file."""
    return sweep_file(option) if group == SWEEP else option_file(group, option)


class ServedConfigsPath(SearchPathPlugin):
    """Replaces Hydra's source for the files in conf/ with ours."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        served = f"{ServedConfigs.scheme()}://{conf_dir()}"
        for element in search_path.get_path():
            if element.path == str(conf_dir()):
                element.path = served
                return

        # `--config-path` named a user's folder, which comes first.
        search_path.append("memeval", served)


def register() -> None:
    """Makes the options known to Hydra, and to joblib's workers."""
    for source in (ServedConfigs, ServedConfigsPath):
        Plugins.instance().register(source)
