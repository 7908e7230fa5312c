"""Turns Hydra's and OmegaConf's errors into one line with the command to type instead."""

import errno
import re
import shlex
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hydra.core.override_parser.types import Override
from hydra.errors import OverrideParseException
from hydra.plugins.config_source import ConfigSource

from memeval.config.grids import count_cells
from memeval.config.names import BY_SLASH, HELP, unknown_name
from memeval.config.options import options
from memeval.config.overrides import INTEGER_GROUPS
from memeval.errors import DISK_ERRORS, FEW, MemevalError, UserError, WorldError, unknown
from memeval.text.shown import one_line

# A model's name, typed in place of an option, may contain slashes.
_NO_OPTION = re.compile(r"Could not find '(?P<group>(?:hydra/)?\w+)/(?P<option>[^']*)'")
_OPTION = re.compile(r"^\t([^\s=]+)$", re.MULTILINE)
_NO_GROUP = re.compile(r"Could not (?:override|append to config)[^']*'(?P<key>[^']+)'")
_PLUS = re.compile(
    r"(?:An item is already at|force-add of config groups is not supported:) '\+*(?P<key>[^'=]+)"
)
_TWO_OPTIONS = re.compile(r"(?P<group>[\w/]+)(?:\. To override a value| appears more than once)")
_NO_KEY = re.compile(
    r"Key '(?P<key>[^']+)' is not in struct\s+full_key: (?P<full>\S+)", re.MULTILINE
)
_SEVERAL = re.compile(
    r"(?:Ambiguous value for argument|Sweep parameters) '(?P<text>.*)'(?: requires --multirun|$)",
    re.MULTILINE,
)
_HEADER = re.compile(
    r"(?:Too many components in|Expected header format: KEY VALUE, got) '(?P<comment>@.*)'"
)
_OWN_FOLDER = re.compile(r"provider=.*command-line, path=file://(?P<folder>.*)")
"""Found in the search path that Hydra prints, if `--config-dir` was given."""
_COMPOSING = ("hydra.", "omegaconf.", "yaml.", "hydra_plugins.hydra_optuna", "optuna.", "submitit.")
_LAUNCHING = ("TerminatedWorkerError", "UncompletedJobError", "FailedJobError")
"""Errors of joblib and submitit for a process that was killed or a job that was not accepted."""
_EXTRAS = ("joblib", "submitit", "optuna")
"""memeval's extras with launchers and sweepers, whose names begin with the extra's."""
_PROVIDERS = {
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4"),
    "anthropic": ("claude",),
    "gemini": ("gemini",),
    "mistral": ("mistral", "ministral", "magistral"),
    "ollama": ("llama", "qwen", "gemma", "phi"),
    "openrouter": ("deepseek",),
}
"""Beginnings of the names of models that an option of the group `llm` usually serves."""


@contextmanager
def explaining_config_errors() -> Iterator[None]:
    """Raises `UserError` for an error that comes from reading or composing configs, `WorldError`
    for a launcher that lost a process.
    """
    try:
        yield
    except MemevalError:
        raise
    except Exception as error:
        # Recognised by the module that raised it: Hydra and its libraries raise many types.
        raiser = ""
        for frame, _ in traceback.walk_tb(error.__traceback__):
            module = str(frame.f_globals.get("__name__"))
            # Hydra's errors may come from Python's own library.
            if not module.startswith(("enum", "pathlib", "codecs")):
                raiser = module

        if type(error).__name__ in _LAUNCHING:
            raise WorldError(f"the launcher failed: {one_line(error, 400)}") from error
        # A folder that can't be made is not a mistake in a config.
        is_of_disk = isinstance(error, OSError) and error.errno in (*DISK_ERRORS, errno.EACCES)
        if raiser.startswith(_COMPOSING) and not is_of_disk:
            raise explain(error) from error

        raise


def explain(error: Exception) -> UserError:
    """The `UserError` that explains an error of Hydra or OmegaConf."""
    # With its causes: the mistake may be in the innermost, and the outermost says "in 'config'".
    causes = _chain(error)
    for cause in reversed(causes):
        if isinstance(cause, OverrideParseException):
            return _unparsed_error(cause.override)

    text = "\n".join(map(str, causes))
    return (
        _plus_error(text)
        or _unknown_error(text)
        or _ambiguity_error(text)
        or _option_type_error(error, text)
        or _header_error(error, text)
        or _plain_error(error)
    )


def _unparsed_error(word: str) -> UserError:
    key, equals, value = word.partition("=")
    hints = [
        "put double quotes around a value that contains , = { [ ( or a quote:  "
        "\"prompt.file='a=b.txt'\""
    ]
    if not equals:
        hints = ["leave out spaces around = and after commas:  top_k=5,10", HELP]
        if word.isidentifier():
            hints.insert(0, f"if it is a command, put it first:  python -m memeval {word} ...")
    elif value.startswith("~/"):
        hints = [f"the shell does not replace ~ there:  {key}=$HOME{value[1:]}"]
    elif "'" not in value:
        hints = [f"quote the value twice:  \"{key}='{value}'\""]
        if value.endswith(","):
            listed = value.rstrip(",")
            hints.insert(0, f"leave out spaces and the last comma:  {key}={listed}")

    return UserError(f"'{word}' can't be read as group=option or field=value", *hints)


def _plus_error(text: str) -> UserError | None:
    """The error for a superfluous or a missing plus."""
    if match := _PLUS.search(text):
        return UserError(
            f"'{match['key']}' is already set",
            f"set it once; if it has a default, without a plus:  {match['key']}=...",
        )
    if match := _TWO_OPTIONS.search(text):
        group = match["group"]
        return UserError(
            f"{group} has two options",
            f"choose it once, and without a plus if it has a default:  {group}=...",
            f"in a file's defaults list:  override /{group}: ...",
        )
    if (match := _NO_GROUP.search(text)) and match["key"] in ("sweep", "cell"):
        return UserError(f"{match['key']} needs a plus", f"use:  +{match['key']}=...")

    return None


def _unknown_error(text: str) -> UserError | None:
    if match := _NO_OPTION.search(text):
        return _no_option_error(match["group"], match["option"], text)
    if match := _NO_KEY.search(text):
        return unknown_name(match["full"])
    if match := _NO_GROUP.search(text):
        return unknown_name(match["key"])

    return None


def several_values_error(override: str) -> UserError:
    """The error for an override with several values in a single run."""
    several = re.sub(r"'([\w.:]+)'", r"\1", override)
    hints = [f"to compare them, add -m:  python -m memeval ... -m {shlex.quote(several)}"]
    key, _, value = several.partition("=")
    if ", " in value and "'" not in value:
        hints.append(f"or as one value:  \"{key}='{value}'\"")

    message = f"'{several}' has several values, but a single run takes only one"
    return UserError(message, *hints)


def _ambiguity_error(text: str) -> UserError | None:
    if match := _SEVERAL.search(text):
        return several_values_error(match["text"])

    if "does not support sweep type : INTERVAL" in text:
        return UserError(
            "interval() needs a sweeper that chooses values", "use:  hydra/sweeper=optuna"
        )
    if "No trials are completed yet" in text:
        return UserError(
            "no run of the search has a value of its objective",
            "choose a metric that each run has:  objective=recall_shown",
        )
    if "does not have a `_target_` field" in text:
        return UserError("hydra.launcher and hydra.sweeper take one option", BY_SLASH)
    if "Unsupported item value in defaults" in text:
        return UserError(
            "an option in a config file's defaults list is a number",
            'quote it:  override /top_k: "7"',
        )

    return None


def _option_type_error(error: Exception, text: str) -> UserError | None:
    """The error for a group set to null, a boolean or a number: in Python, `tracking=None`."""
    if "Config group override must be a string" not in text:
        return None

    for cause in _chain(error):
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            override = frame.f_locals.get("override")
            if isinstance(override, Override):
                group, value = override.key_or_group, override.get_value_element_as_str()
                return UserError(
                    f"{group} must be the name of an option, not {value}",
                    f"all:  python -m memeval --help {group}",
                )

    return None


def _header_error(error: Exception, text: str) -> UserError | None:
    """The error for a comment at the beginning of a file that Hydra reads as an instruction."""
    match = _HEADER.search(text)
    if match is None:
        return None

    comment = match["comment"]
    return UserError(
        f"{_config_file(error) or 'a config file'}: the comment '# {comment}' begins with @, "
        "so Hydra reads it as an instruction",
        "use a different first character; the only known instruction is '# @package NAME'",
    )


def _config_file(error: Exception) -> str | None:
    """The file that was being read, from the arguments of the reader's call."""
    for cause in _chain(error):
        for frame, _ in traceback.walk_tb(cause.__traceback__):
            source = frame.f_locals.get("self")
            if frame.f_code.co_name == "load_config" and isinstance(source, ConfigSource):
                name = str(frame.f_locals.get("config_path", ""))
                folder = source.path.removeprefix("file://")
                return f"{folder}/{name.removesuffix('.yaml')}.yaml"

    return None


def _plain_error(error: Exception) -> UserError:
    """The original message on one line, with line and column in the file if they are known."""
    mark: Any = getattr(error, "problem_mark", None)
    if mark is not None:
        problem = getattr(error, "problem", None) or "it can't be read"
        return UserError(
            f"{mark.name}, line {mark.line + 1}, column {mark.column + 1}: not YAML: {problem}"
        )

    if isinstance(error, UnicodeDecodeError):
        return UserError(f"{_config_file(error) or 'a config file'} is not UTF-8: {error.reason}")

    lines = list(filter(None, map(str.strip, str(error).splitlines())))
    return UserError("; ".join(lines[:3]) or type(error).__name__, HELP)


def _chain(error: BaseException | None) -> list[BaseException]:
    if error is None:
        return []

    return [error, *_chain(error.__cause__ or error.__context__)]


def _no_option_error(group: str, option: str, text: str) -> UserError:
    known = _OPTION.findall(text)
    if group in INTEGER_GROUPS:
        return UserError(
            f"{group} must be one of {', '.join(known or options(group))} or a positive integer, "
            f"not '{option}'"
        )

    if group == "cell":
        ranges = [f"+cell={sweep}-1 to {sweep}-{count}" for sweep, count in count_cells().items()]
        return UserError(
            f"unknown cell '{option}'", f"cells of the sweeps with grids:  {'; '.join(ranges)}"
        )

    extra = option.partition("_")[0]
    # An installed extra has options: the name is then a misspelt one of them.
    if group.startswith("hydra/") and extra in _EXTRAS and extra not in " ".join(known):
        return UserError(
            f"{group}={option} needs a package that is not installed",
            f"install it:  pip install 'memeval-bench[{extra}]'",
        )

    if not known:
        return UserError(f"unknown group '{group}'", HELP)

    hints = _model_hints(group, option)
    if group == "dataset" and option.endswith((".json", ".jsonl")):
        hints.append(f"for a file:  dataset=json dataset.path={option}")
    if own := _OWN_FOLDER.search(text):
        folder = own["folder"]
        hints.append(f"there is no file {one_line(f'{folder}/{group}/{option}.yaml')}")
    elif not hints:
        hints.append("for an option of your own:  --config-dir FOLDER")

    if len(known) > FEW:
        hints.append(f"all {len(known)}:  python -m memeval --help {group}")

    return unknown(group, option, known, *hints)


def _model_hints(group: str, name: str) -> list[str]:
    """Hints that show how to choose the model `name` in a group, if it may be a model's name."""
    if group == "embedder":
        return [f"a model at an endpoint:  embedder=openai embedder.model={name}"]

    option = _provider_of(name)
    if option is None:
        return []
    if group == "llm":
        return [f"for that model:  llm={option} llm.model={name}"]
    if group == "judge":
        endpoint = "" if option == "openai" else f"llm={option} "
        return [f"for that model:  judge=llm {endpoint}llm.judge.model={name}"]

    return []


def _provider_of(name: str) -> str | None:
    lowered = name.lower()
    if "/" in lowered:
        return "openrouter"

    for option, beginnings in _PROVIDERS.items():
        if lowered.startswith(beginnings):
            return option

    return None
