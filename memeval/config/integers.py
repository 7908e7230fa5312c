"""Groups that take any positive integer: `top_k=7`, `-m top_k=3,wide,12`, `compression_turn=40`.

Hydra 1.3 refuses an integer as a group choice before it queries any config source. So integers of
these groups are quoted on entry (the command line, a sweep's parameters), and memeval's own config
source (`served.py`) serves `<group>/<integer>`. Hydra is not patched.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf, open_dict, read_write

from memeval.config.overrides import (
    INTEGER_GROUPS,
    check_one_reranker,
    choose_classes,
    full_override,
)
from memeval.config.plugins import own_file, read_yaml

INTEGER = re.compile(rf"({'|'.join(INTEGER_GROUPS)})/0*([1-9][0-9]*)")


class QuoteIntegers(Callback):
    """Prepares a sweep's own parameters for the sweeper. Hydra would swallow errors raised here."""

    def on_multirun_start(self, config: DictConfig, **kwargs: Any) -> None:
        params = OmegaConf.select(config, "hydra.sweeper.params")
        if not params:
            return

        with read_write(config), open_dict(config):
            words = choose_classes([f"{key}={value}" for key, value in params.items()])
            params.clear()
            for word in quote_integers(map(full_override, words)):
                current, _, choices = word.partition("=")
                params[current] = choices


def as_hydra_words(words: Sequence[str]) -> list[str]:
    """A user's overrides in Hydra's form. Raises `UserError` for two rerankers."""
    check_one_reranker(words)
    return quote_integers(map(full_override, choose_classes(words)))


def quote_integers(overrides: Iterable[str]) -> list[str]:
    """Quotes the numbers of `INTEGER_GROUPS`, so that Hydra takes them as options."""
    return list(map(_quote, overrides))


def _quote(text: str) -> str:
    if text.lstrip("+").split("=", 1)[0] not in INTEGER_GROUPS:
        return text

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
        return list(override.sweep_iterator(lambda value: getattr(value, "text", value)))

    if override.is_delete() or override.is_sweep_override():
        return []

    return [override.value()]


def _as_option(value: Any) -> str:
    if isinstance(value, list):
        return f"[{','.join(map(_as_option, value))}]"

    # A number that was already quoted is text here.
    return value if isinstance(value, str) and not value.isdigit() else f"'{value}'"


def unquote_integer(override: str) -> str:
    """An override of `INTEGER_GROUPS` as a user types it: `top_k='7'` is `top_k=7`."""
    return re.sub(rf"^(\+?(?:{'|'.join(INTEGER_GROUPS)})=)'([0-9]+)'$", r"\1\2", override)


def option_value(group: str, option: str) -> Any:
    """The integer, or the value in the option's file; None for an option of a package."""
    if option.isdigit():
        return int(option)

    path = own_file(group, option)
    return read_yaml(path).get(group) if path else None
