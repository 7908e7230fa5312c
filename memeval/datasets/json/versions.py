"""Compares two versions of a data set, and merges several frozen sets."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from memeval.datasets.io.fields import quoted
from memeval.datasets.json.frozen import FrozenManifest, case_id_of, read_checked, read_manifest
from memeval.datasets.json.reader import META
from memeval.errors import UserError
from memeval.text.shown import counted

SPLIT_ANEW = "split the merged set:  --split 0.5"


class Changes(Struct, frozen=True, kw_only=True):
    lists: Mapping[str, Sequence[str]]
    """Names by kind of change, which includes their number. A name is `case_id`, or
    `case_id/question` with the fields that changed.
    """
    questions_same: int

    @property
    def is_empty(self) -> bool:
        return not any(self.lists.values())


def changes_between(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Changes:
    """Changes between two versions; status, reviews and fields `meta` are not compared."""
    before = {case_id_of(case): case for case in old}
    after = {case_id_of(case): case for case in new}
    # Cases in both versions whose sessions, turns or operations differ.
    talked = []
    for name, case in before.items():
        if name in after and _conversation(case) != _conversation(after[name]):
            talked.append(name)

    asked_before, asked_after = named_questions(old), named_questions(new)
    changed, same = [], 0
    for name, question in asked_before.items():
        if name in asked_after:
            other = asked_after[name]
            fields = sorted({*question, *other} - {META, "status", "reviews"})
            fields = [field for field in fields if question.get(field) != other.get(field)]
            same += not fields
            if fields:
                changed.append(f"{name} ({', '.join(fields)})")

    kinds = (
        ("case", "added", _new_names(before, after)),
        ("case", "removed", _new_names(after, before)),
        ("case", "with another conversation", talked),
        ("question", "added", _new_names(asked_before, asked_after)),
        ("question", "removed", _new_names(asked_after, asked_before)),
        ("question", "changed", changed),
    )
    return Changes(
        lists={f"{counted(len(names), noun)} {change}": names for noun, change, names in kinds},
        questions_same=same,
    )


def _new_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    return [name for name in after if name not in before]


def merge(
    paths: Sequence[Path], *, keeps_split: bool
) -> tuple[list[dict[str, Any]], dict[str, str], list[FrozenManifest]]:
    """The cases of several frozen sets, their sides of the split, and the sets' manifests.

    A case that is in two sets with equal content is kept once. With `keeps_split`, each case stays
    on its side. Raises `UserError` for a set that is named twice, if only some sets have a split to
    keep, and for a case with different contents or sides.
    """
    cases: dict[str, dict[str, Any]] = {}
    sides: dict[str, str] = {}
    manifests = list(map(read_manifest, paths))
    for number, manifest in enumerate(manifests):
        if manifest in manifests[:number]:
            raise UserError(f"{paths[number]} repeats an earlier set.", "name each set once")
    if keeps_split and len({bool(manifest.sides) for manifest in manifests}) > 1:
        raise UserError("some of the sets have a split, but others don't.", SPLIT_ANEW)

    for path, manifest in zip(paths, manifests, strict=True):
        for case in read_checked(path)[1]:
            name = case_id_of(case)
            side = manifest.sides.get(name, "") if keeps_split else ""
            if cases.setdefault(name, case) != case:
                raise UserError(
                    f"{path}: case {quoted(name)} has different content in an earlier set."
                )
            if sides.setdefault(name, side) != side:
                problem = "is on the other side of the split in an earlier set"
                raise UserError(f"{path}: case {quoted(name)} {problem}.", SPLIT_ANEW)

    return list(cases.values()), {case: side for case, side in sides.items() if side}, manifests


def named_questions(cases: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Questions as they are written, by the name that results give them."""
    named = {}
    for case in cases:
        for number, question in enumerate(case["questions"]):
            name = question.get("id")
            if name is None:
                name = f"q{number}"

            named[f"{case_id_of(case)}/{name}"] = question

    return named


def _conversation(case: Mapping[str, Any]) -> list[Any]:
    """The content of a case that a memory gets: its sessions, and the operations between them."""
    return [_without_meta(case["sessions"]), _without_meta(case.get("operations") or [])]


def _without_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_meta(item) for name, item in value.items() if name != META}
    if isinstance(value, list):
        return list(map(_without_meta, value))

    return value
