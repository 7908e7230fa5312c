"""Finds the class behind a path `package.module:Class`, as systems and data sets of one's own are named."""

from __future__ import annotations

import importlib
from typing import TypeVar

from memeval.errors import UserError

T = TypeVar("T")


def class_at(path: str, base: type[T], group: str, what: str) -> type[T]:
    """The class, a subclass of `base`. `group` is the config group that names it, `what` the thing as an error calls it.

    Raises `UserError` for a path of another form, and for one that leads to no such class.
    """
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise UserError(f"{group}.class must read package.module:Class, but is '{path}'")
    try:
        found = getattr(importlib.import_module(module_name), class_name)
    except ModuleNotFoundError as error:
        raise UserError(f"{what}: no module named '{error.name}' (class {path})", "is it installed, and on PYTHONPATH?") from error
    except AttributeError as error:
        raise UserError(f"{what}: module '{module_name}' has no class '{class_name}'") from error
    if not (isinstance(found, type) and issubclass(found, base)):
        raise UserError(f"{what}: {path} is no subclass of {base.__module__}.{base.__qualname__}")
    return found
