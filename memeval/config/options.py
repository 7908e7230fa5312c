"""The options of a group, built-in and installed, and their classes, without Hydra."""

from pathlib import Path
from typing import Generic, TypeVar

from memeval.config.classes import class_at, import_named
from memeval.config.plugins import own_file, own_files, plugin, plugins, read_yaml
from memeval.errors import UserError, unknown

T = TypeVar("T")


def options(group: str) -> list[str]:
    """Names of the built-in options, sorted."""
    return [path.stem for path in own_files(group)]


def class_path(group: str, option: str) -> str | None:
    """The class of an option, by its file or entry point; None for an unknown option."""
    file = own_file(group, option)
    if file is not None:
        return _class_in(group, file)

    # Only the first: if two packages provide the name, `plugin` raises an error.
    for provider in plugins(group).get(option, ())[:1]:
        if provider.file and (named := _class_in(group, provider.file)):
            return named

        return provider.path

    return None


def _class_in(group: str, file: Path) -> str | None:
    values = read_yaml(file)
    if "class" in values:
        return str(values["class"])

    # As Hydra composes: the last of the defaults wins.
    for name in reversed(values.get("defaults", ())):
        if name not in ("_self_", file.stem) and (path := class_path(group, str(name))):
            return path

    return None


def built_in_classes(group: str) -> dict[str, str]:
    """Class path by option, for the built-in options that name a class."""
    paths = {option: class_path(group, option) for option in options(group)}
    return {option: path for option, path in paths.items() if path is not None}


def available(group: str) -> list[str]:
    """Names of the built-in options and of those that installed packages provide, sorted."""
    return sorted({*options(group), *plugins(group)})


def is_available(group: str, name: str) -> bool:
    """Whether an option is built in or from a package, which takes longer to find out."""
    return own_file(group, name) is not None or name in plugins(group)


class Registry(Generic[T]):
    """The classes of one kind by name, built-in and installed."""

    def __init__(self, group: str, base: type[T], noun: str | None = None) -> None:
        """`noun` is the word for such a class in errors, by default the group."""
        self.group, self.base, self.noun = group, base, noun or group

    def path_of(self, name: str) -> str:
        """The class path of a name. Raises `UserError` for an unknown or ambiguous name."""
        plugin(self.group, name)
        path = class_path(self.group, name)
        if path is None:
            known = {*built_in_classes(self.group), *plugins(self.group)}
            raise unknown(self.noun, name, known, f"all:  python -m memeval --help {self.group}")

        return path

    def load(self, name: str, path: str | None = None) -> type[T]:
        """The class of that name, or at `path`. Raises `UserError`."""
        label = f"{self.noun} '{name}'"
        if path is None:
            path = self.path_of(name)
            label += origin(self.group, name)

        return class_at(path=path, base=self.base, group=self.group, label=label)

    def load_object(self, name: str) -> T:
        """The object of that name, for a kind of objects. Raises `UserError`."""
        path = self.path_of(name)
        label = f"{self.noun} '{name}'{origin(self.group, name)}"
        named = import_named(path, self.group, label)
        if not isinstance(named, self.base):
            base = f"{self.base.__module__}.{self.base.__qualname__}"
            raise UserError(f"{label}: {path} is not a {base}")

        return named


def origin(group: str, name: str) -> str:
    """The package of an option as errors name it: ` of my-memory 1.0`; empty for memeval's own."""
    if own_file(group, name) is not None:
        return ""

    provider = plugin(group, name)
    return f" of {provider.package}" if provider else ""
