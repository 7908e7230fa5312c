"""Identity of a run's judge, as one object: `judge` in run.json.

It is created once, when the run is summarised. Comparisons, gates, reports, tracking and
calibrations read it, because accuracies of two judges differ by more than those of two systems.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Self

from msgspec import Struct, field
from msgspec.structs import replace

from memeval.records import Count, Finite
from memeval.results.fields import as_plain
from memeval.results.hosts import URL, replace_host
from memeval.text.names import text_digest

RECORDED = "recorded"
"""Name of the judge whose verdicts another program recorded with its answers."""

_DIGEST = re.compile("[0-9a-f]{64}")
_USUAL_REQUEST = {"temperature": 0.0, "max_tokens": 256, "seed": True}
"""Request parameters that `shown` omits, because most runs use these values."""
_USUAL_ADDRESS = "https://api.openai.com/v1"
_USUAL = {"repeats": 1, "reading": "first_word", "scoring": "v2", "fence": True}


class JudgeIdentity(Struct, frozen=True, repr_omit_defaults=True, forbid_unknown_fields=True):
    """A judge with everything that affects its verdicts; None for settings that it lacks."""

    name: str
    own_class: str | None = None
    """`package.module:Class@sha256` of a custom judge, with the digest of its file."""
    prompt_sha256: str | None = None
    """sha256 of the prompt text of a model judge."""
    model: str | None = None
    """The model that judges; for recorded verdicts, the judge in the file. Empty if unknown."""
    address: str | None = None
    """URL of the endpoint."""
    request: Mapping[str, Any] = field(default_factory=dict)
    """Every parameter of its requests as sent, except the model and the messages; `seed` says
    whether the repeat's seed is sent.
    """
    reading: str | None = None
    repeats: Count | None = None
    threshold: Finite | None = None
    fence: bool | None = None
    """Whether the answer is sent between marks."""
    scoring: str | None = None

    @property
    def is_named(self) -> bool:
        """Whether the judge is known."""
        return bool(self.name) and self.model != ""

    @property
    def grades(self) -> bool:
        """Whether its verdicts are grades, and an accuracy their mean."""
        return self.scoring is not None and self.own_class is None

    @property
    def digest(self) -> str:
        """Sixteen hex digits that identify a judge."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return text_digest(text)[:16]

    @property
    def shown(self) -> str:
        """The judge in tables, with every unusual setting: `llm (gpt-4o-mini, prompt 1f2e3d4c)`."""
        parts = ", ".join(self._parts())
        return f"{self.name} ({parts})" if parts else self.name

    def _parts(self) -> Iterator[str]:
        if self.model is not None:
            yield self.model or "unnamed"
        if self.address and self.address != _USUAL_ADDRESS:
            yield f"at {self.address.partition('://')[2] or self.address}"
        if self.prompt_sha256:
            yield f"prompt {self.prompt_sha256[:8]}"
        if self.own_class:
            yield f"class={self.own_class[: self.own_class.find('@') + 9]}"

        for name in ("threshold", *_USUAL):
            value = getattr(self, name)
            if value is not None and value != _USUAL.get(name):
                yield f"{name}={_word(value)}"

        for name, value in self.request.items():
            if value != _USUAL_REQUEST.get(name):
                yield f"{name}={_word(value)}"
        if self.request and "temperature" not in self.request:
            yield "no temperature"

    def differences(self, other: Self) -> list[str]:
        """The settings in which two judges differ, with both values: `temperature 0.0, 0.7`."""
        leaves, other_leaves = self._leaves(), other._leaves()
        differences = []
        for name in dict.fromkeys((*leaves, *other_leaves)):
            value, other_value = leaves.get(name), other_leaves.get(name)
            if value != other_value:
                differences.append(f"{name} {_word(value)}, {_word(other_value)}")

        return differences

    def _leaves(self) -> dict[str, Any]:
        leaves = self.to_json()
        return {**leaves, **leaves.pop("request")}

    def to_json(self) -> dict[str, Any]:
        """The object as it is stored in `run.json` and baselines."""
        return as_plain(self)


def is_same_judge(first: JudgeIdentity | None, second: JudgeIdentity | None) -> bool:
    """Whether the same judge gave both verdicts. An unnamed judge equals no other."""
    if first is None or second is None or not first.is_named:
        return False

    # A package has the digest of a private host.
    addresses = {URL.sub(replace_host, judge.address or "") for judge in (first, second)}
    return len(addresses) == 1 and first == replace(second, address=first.address)


def judge_shown(judge: JudgeIdentity | None) -> str:
    """A judge in a table; empty if nothing was judged, or if the run does not name the judge."""
    return "" if judge is None else judge.shown


def _word(value: Any) -> str:
    """A value as YAML writes it; a digest is cut to its first eight digits."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)

    return value[:8] if _DIGEST.fullmatch(value) else value
