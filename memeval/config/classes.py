"""Finds the class behind a path `package.module:Class`."""

import importlib
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from inspect import isabstract
from pathlib import Path
from typing import Any, TypeVar

from memeval.errors import MemevalError, UserError, unknown
from memeval.text.shown import one_line

T = TypeVar("T")
_PACKAGE = f"{Path(__file__).parents[1]}/"
_PYTHON = re.compile(re.escape(f"{Path(traceback.__file__).parent}/") + "(?!site-packages/)")


def class_at(path: str, base: type[T], group: str, label: str) -> type[T]:
    """The class at a path, a subclass of `base`. Raises `UserError`.

    `group` is its config group, `label` its description in errors.
    """
    named_class = import_named(path, group, label, base)
    if not (isinstance(named_class, type) and issubclass(named_class, base)):
        raise UserError(
            f"{label}: {path} is not a subclass of {base.__module__}.{base.__qualname__}"
        )

    if missing := sorted(getattr(named_class, "__abstractmethods__", ())):
        raise UserError(
            f"{label}: {path} does not define {', '.join(missing)} of {base.__qualname__}"
        )

    return named_class


def import_named(path: str, group: str, label: str, base: type[Any] = object) -> Any:
    """The object at the path, whether or not it is a class. Raises `UserError` as `class_at` does.

    If the object does not exist, the error names the classes derived from `base`.
    """
    # A user's file may have a number or a list there.
    module_name, _, class_name = str(path).partition(":")
    if not module_name or not class_name:
        raise UserError(f"{group}.class must be package.module:Class, but is '{path}'")

    try:
        module = importlib.import_module(module_name)
    except SyntaxError as error:
        where = f"{Path(error.filename or module_name).name}:{error.lineno}"
        raise UserError(
            f"{label}: {where}: {type(error).__name__}: {one_line(error.msg)}"
        ) from error
    except ModuleNotFoundError as error:
        hint = "is it installed, or on PYTHONPATH? only python -m memeval searches this folder"
        if module_name.endswith(".py"):
            hint = f"name the module, not its file:  {Path(module_name).stem}:{class_name}"

        message = f"{label}: no module named '{error.name}' (class {path})"
        raise UserError(message, hint) from error
    except (MemevalError, KeyboardInterrupt):
        raise
    except BaseException as error:
        # A user's module may do anything when it is imported, even call `sys.exit`.
        raise UserError(f"{label}: {located_error(error)}") from error

    named_class = getattr(module, class_name, None)
    if named_class is None:
        message = f"{label}: module '{module_name}' has no class '{class_name}'"
        names = [name for name, value in vars(module).items() if _is_usable(value, base)]
        if not names:
            raise UserError(message, f"it defines no subclass of {base.__qualname__}")

        raise UserError(message, unknown("class", class_name, names).message)

    return named_class


def _is_usable(value: object, base: type[Any]) -> bool:
    """Whether an object of a module is a candidate; an imported abstract base is not."""
    return isinstance(value, type) and issubclass(value, base) and not isabstract(value)


def path_of(part: Any) -> str:
    """The path of a class, `package.module:Class`."""
    return f"{part.__module__}:{part.__qualname__}"


def is_built_in(part: Any) -> bool:
    """Whether a class or a function is one of memeval's own."""
    return str(part.__module__).partition(".")[0] == "memeval"


def is_ours(file: str) -> bool:
    """Whether the file of some code is memeval's own, or not a file, such as `<string>`."""
    return file.startswith((_PACKAGE, "<"))


def located_error(error: BaseException, limit: int = 200) -> str:
    """An error, at most `limit` characters of it, with the innermost location in code that is
    neither memeval's own nor of Python's library.
    """
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        file = frame.filename
        if not is_ours(file) and not _PYTHON.match(file):
            where = f"{Path(file).name}:{frame.lineno}: "

    return f"{where}{type(error).__name__}: {one_line(error, limit)}"


@contextmanager
def explaining(problem: str, *hints: str) -> Iterator[None]:
    """Raises `UserError` with `problem` and the location for an error of a user's code."""
    try:
        yield
    except MemevalError:
        raise
    except Exception as error:
        raise UserError(f"{one_line(problem, 400)}: {located_error(error)}", *hints) from error
