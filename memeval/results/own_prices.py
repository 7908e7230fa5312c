"""The user's own prices, from a file: per million tokens, with the date of the prices."""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.errors import UserError
from memeval.process.root import project_root
from memeval.results.files import reading
from memeval.text.shown import one_line

VARIABLE = "MEMEVAL_PRICES"
"""Environment variable that names the file."""
PRICES_FILE = "prices.yaml"
"""In the project's root: prices of the user's own models."""
PER = 1_000_000
FIELDS = ("input", "output", "cached")
FIGURES_CODE = "figures_code"
"""Tag of a run: the identity of the code and of the prices that computed its figures."""
PACKAGE_PRICES = "package_prices"
"""Tag of a run that came in a package: the prices in the package as JSON, by provider and model."""
MARK = "-prices-"
_named: ContextVar[str | None] = ContextVar("prices", default=None)
"""The file of the run under way, as several may have their own; None: the default."""
EXAMPLE = (
    "for example:  {date: 2026-01-31, models: {my-model: {input: 0.4, output: 1.6}, my-local: 0}}"
)


class OwnPrices(Struct, frozen=True):
    """The content of a price file."""

    date: str
    digest: str
    models: Mapping[str, tuple[float, float, float]]
    """By model: US dollars per million tokens sent, received and read from the provider's cache."""

    def of_model(self, model: str, provider: str) -> tuple[float, float, float] | None:
        """The three prices of a model; None for a model that is not in the file."""
        return self.models.get(at_provider(model, provider), self.models.get(model))


def at_provider(model: str, provider: str) -> str:
    """Name of a model in the prices of a package, whose runs may use it at several providers."""
    return f"{provider} {model}"


def own_prices() -> OwnPrices | None:
    """The prices in force; None if there is no file. Raises `UserError` for an invalid one."""
    name = prices_file()
    if not name:
        return None

    with reading(f"prices: {name}"):
        stat = os.stat(name)  # noqa: PTH116 - called for each price, and twice as fast
        return _read(name, stat.st_mtime_ns, stat.st_size)


def prices_mark() -> str:
    """Suffix that the prices in force add to the figure code's identity; empty without prices."""
    price_file = own_prices()
    return f"{MARK}{price_file.digest}" if price_file else ""


def without_prices(figures_code: str) -> str:
    """The identity of the code alone: workers on other machines compute no costs."""
    return figures_code.partition(MARK)[0]


def prices_file() -> str:
    """The file of the prices in force: that of the run under way if it has its own, else the one
    that `VARIABLE` names, else that of the project's root; empty if there is none.
    """
    name = _named.get()
    if name is None:
        name = os.environ.get(VARIABLE)
    if name is not None:
        return name

    # Called for each price: paths as strings take a third of the time.
    home = os.path.expanduser(os.environ.get("MEMEVAL_HOME", "")) or project_root()  # noqa: PTH111
    default = os.path.join(home, PRICES_FILE)  # noqa: PTH118
    return default if os.path.isfile(default) else ""  # noqa: PTH113


def name_prices(path: str | None) -> None:
    """Uses `path`, or the default if None, from now on in this context, which is that of a run.

    Raises `UserError` for an invalid file.
    """
    _named.set(None if path is None else str(Path(path).absolute()))
    own_prices()


@contextmanager
def prices_from(file: str) -> Iterator[None]:
    """Uses the prices of a file in the block; none if the name is empty."""
    before = _named.set(file)
    try:
        yield
    finally:
        _named.reset(before)


@lru_cache(maxsize=8)
def _read(name: str, changed_ns: int, size: int) -> OwnPrices:  # noqa: ARG001 - keys of the cache
    """The prices of a file. Raises `OSError` and `UserError`."""
    path = Path(name)
    content = path.read_bytes()
    values = _load(content, path)
    if not isinstance(values, dict) or set(values) != {"date", "models"}:
        raise UserError(
            f"prices: {path} must contain `date` and `models`, and nothing else", EXAMPLE
        )

    day = values["date"]
    if not isinstance(day, date):
        raise UserError(f"prices: {path}: `date` must be a date such as 2026-01-31", EXAMPLE)

    if not isinstance(values["models"], dict) or not values["models"]:
        raise UserError(f"prices: {path}: `models` must name a model", EXAMPLE)

    models = {
        str(model): _price(path, str(model), price) for model, price in values["models"].items()
    }
    return OwnPrices(date=str(day), digest=hashlib.sha256(content).hexdigest()[:16], models=models)


def _load(content: bytes, path: Path) -> Any:
    """The content of a file.

    Raises `UserError` if it is not YAML, and for a duplicate key, of which PyYAML would silently
    keep the last.
    """
    import yaml  # type: ignore[import-untyped]

    class UniqueKeys(yaml.SafeLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            places: dict[str, str] = {}
            for key, _ in node.value:
                name = str(key.value)
                location = f"line {key.start_mark.line + 1}, column {key.start_mark.column + 1}"
                if name in places:
                    where = f"in {places[name]} and in {location}"
                    raise UserError(
                        f"prices: {path}: {one_line(name, 80)} occurs twice, {where}",
                        "keep one of them",
                    )

                places[name] = location

            return super().construct_mapping(node, deep)

    try:
        return yaml.load(content, Loader=UniqueKeys)
    # A tag such as `!!timestamp` may be at any value: PyYAML's constructors then fail in many ways.
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"prices: {path} is not YAML: {one_line(error)}", EXAMPLE) from error


def _price(path: Path, model: str, given: Any) -> tuple[float, float, float]:
    """A model's three prices. The number 0 instead of them means that the model costs nothing."""
    where = f"prices: {path}: {one_line(model, 80)}"
    # In Python, false equals 0.
    if given == 0 and not isinstance(given, bool):
        return 0.0, 0.0, 0.0

    if not isinstance(given, dict) or not {"input", "output"} <= set(given) <= set(FIELDS):
        raise UserError(f"{where} must be 0, or have input, output and optionally cached", EXAMPLE)

    for name, price in given.items():
        is_number = isinstance(price, int | float) and not isinstance(price, bool)
        # An integer may be too large for a float.
        if not is_number or not 0 <= price <= sys.float_info.max:
            raise UserError(f"{where}.{name} must be a number of US dollars per million tokens")

    # Without its own price, a cached prompt token costs the input price.
    sent = float(given["input"])
    return sent, float(given["output"]), float(given.get("cached", sent))
