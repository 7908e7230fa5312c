"""Hydra's and OmegaConf's errors in one line that says what to type instead."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

from memeval.config.integers import INTEGER_GROUPS, options
from memeval.config.paths import conf_dir, sweeps_dir
from memeval.errors import UserError, unknown

_NO_OPTION = re.compile(r"Could not find '(?P<group>[\w/]+)/(?P<option>[^'/]+)'")
_NO_GROUP = re.compile(r"Could not (?:override|append to config)[^']*'(?P<key>[^']+)'")
_NO_KEY = re.compile(r"Key '(?P<key>[^']+)' is not in struct\s+full_key: (?P<full>\S+)", re.MULTILINE)


def explained(error: Exception) -> UserError:
    """The `UserError` that says what an error of theirs means."""
    text = "\n".join(str(part) for part in _chain(error))
    option = _NO_OPTION.search(text)
    if option:
        return _no_option(option["group"], option["option"])
    key = _NO_KEY.search(text)
    if key:
        return _no_key(key["full"])
    group = _NO_GROUP.search(text)
    if group:
        return _no_key(group["key"].split("@")[0])
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return UserError("; ".join(lines[:3]) or type(error).__name__, "python -m memeval --help lists groups, options and fields")


def _chain(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *_chain(error.__cause__ or error.__context__)]


def _no_option(group: str, option: str) -> UserError:
    if group in INTEGER_GROUPS:
        return UserError(f"{group} must be one of {', '.join(options(group))} or a positive integer, not '{option}'")
    known = [path.stem for path in sweeps_dir().glob("*.yaml")] if group == "sweep" else options(group)
    return unknown(group, option, known) if known else UserError(f"unknown group '{group}'")


def _no_key(key: str) -> UserError:
    known = known_keys()
    near = get_close_matches(key, known, n=3, cutoff=0.5)
    guess = f" Did you mean: {', '.join(near)}?" if near else ""
    return UserError(f"unknown field or group '{key}'.{guess}", "python -m memeval --help lists groups, options and fields")


def known_keys() -> list[str]:
    """Every group and field that conf/ knows."""
    from omegaconf import OmegaConf

    keys = {path.name for path in conf_dir().iterdir() if path.is_dir()}
    for path in conf_dir().rglob("*.yaml"):
        loaded: Any = OmegaConf.to_container(OmegaConf.load(path)) or {}
        prefix = "" if path.parent == conf_dir() or path.parent.name in INTEGER_GROUPS else f"{path.parent.name}."
        keys |= {f"{prefix}{name}" for name in loaded if name not in ("defaults", "hydra")}
    return sorted(keys)
