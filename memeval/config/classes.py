"""Finds the class behind a name or a path: of a system, a data set or a judge.

A built-in's YAML in conf/ names its class, `package.module:Class`; an installed package brings
classes by entry points; a class of one's own is named on the command line or in a YAML.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar

from memeval.config.paths import conf_dir
from memeval.errors import MemevalError, UserError, unknown
from memeval.shown import one_line

T = TypeVar("T")


@cache
def built_in_classes(group: str) -> Mapping[str, str]:
    """Class path by option, of all options of conf/<group> whose YAML has a `class`."""
    # Hydra is not at hand wherever names are looked up, and must not be imported for that.
    from yaml import safe_load  # type: ignore[import-untyped]

    classes: dict[str, str] = {}
    for path in sorted((conf_dir() / group).glob("*.yaml")):
        values: Any = safe_load(path.read_text(encoding="utf-8"))
        if values and values.get("class"):
            classes[path.stem] = values["class"]
    return classes


def class_path_of(group: str, name: str, what: str) -> str:
    """The class path of a name: a built-in's, else that of an entry point `memeval.<group>s`.

    Raises `UserError` with the nearest names for an unknown one; `what` is the thing as an error
    calls it.
    """
    built_in = built_in_classes(group)
    if name in built_in:
        return built_in[name]

    points = {point.name: point.value for point in entry_points(group=f"memeval.{group}s")}
    if name not in points:
        raise unknown(what, name, {*built_in, *points})
    return points[name]


def class_at(path: str, base: type[T], group: str, what: str) -> type[T]:
    """The class, a subclass of `base`.

    `group` is the config group that names it, `what` the thing as an error calls it.

    Raises `UserError` for a path of another form, and for one that leads to no such class.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise UserError(f"{group}.class must read package.module:Class, but is '{path}'")
    try:
        module = importlib.import_module(module_name)
    except SyntaxError as error:
        where = f"{Path(error.filename or module_name).name}:{error.lineno}"
        raise UserError(
            f"{what}: {where}: {type(error).__name__}: {one_line(error.msg)}"
        ) from error
    except ModuleNotFoundError as error:
        raise UserError(
            f"{what}: no module named '{error.name}' (class {path})",
            "is it installed, and on PYTHONPATH?",
        ) from error
    except (MemevalError, KeyboardInterrupt):
        raise
    except (
        BaseException
    ) as error:  # whatever a module of the user's own does when it is imported, `sys.exit` included
        raise UserError(f"{what}: {_told(error)}") from error
    found = getattr(module, class_name, None)
    if found is None:
        near = unknown(
            "class",
            class_name,
            [name for name, one in vars(module).items() if isinstance(one, type)],
        )
        raise UserError(f"{what}: module '{module_name}' has no class '{class_name}'", near.message)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UserError(
            f"{what}: {path} is not a subclass of {base.__module__}.{base.__qualname__}"
        )
    if left := sorted(getattr(found, "__abstractmethods__", ())):
        raise UserError(f"{what}: {path} does not define {', '.join(left)} of {base.__qualname__}")
    return found


def _told(error: BaseException) -> str:
    """An error of a module's own code with the innermost place outside of Python's import
    machinery.
    """
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    own = [
        frame
        for frame in frames
        if not frame[0].startswith("<") and "importlib" not in frame[0] and frame[0] != __file__
    ]
    where = f"{Path(own[-1][0]).name}:{own[-1][1]}: " if own else ""
    return f"{where}{type(error).__name__}: {one_line(error)}"
