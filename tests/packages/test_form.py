"""What no package may contain: bytes that its figures do not show, and content that harms its
reader.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memeval.packages.levels import verify_package
from memeval.packages.write import Packed
from memeval.packages.write import _write as write_entries
from memeval.results import as_json

Entries = dict[str, bytes]


def problem_of(path: Path) -> str:
    """The first problem of level 1; empty if none."""
    level = next(iter(verify_package(path)))
    return level.problems[0] if level.problems else ""


def entries_of(path: Path) -> Entries:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_again(entries: Entries, path: Path) -> Path:
    """Writes the entries with a manifest that matches them."""
    manifest = json.loads(entries["manifest.json"])
    for name in manifest["entries"]:
        digest = hashlib.sha256(entries[name]).hexdigest()
        manifest["entries"][name] = {"sha256": digest, "size": len(entries[name])}

    content = (as_json(manifest, indent=1) + "\n").encode()
    write_entries(path, {**entries, "manifest.json": content})
    return path


def one_of(entries: Entries, ending: str) -> str:
    return next(name for name in entries if name.endswith(ending))


def test_a_named_pipe_is_refused_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.memeval")
    assert problem_of(tmp_path / "pipe.memeval").endswith("pipe.memeval is not a file")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("date_time", (2026, 1, 1, 0, 0, 0)),
        ("external_attr", 0o755 << 16),
        ("internal_attr", 1),
        ("create_system", 0),
        ("create_version", 63),
        ("extract_version", 63),
    ],
)
def test_edited_zip_metadata_of_an_entry_is_found(
    packed: Packed, tmp_path: Path, name: str, value: object
) -> None:
    path = tmp_path / "edited.memeval"
    with zipfile.ZipFile(path, "w") as archive:
        for number, (entry, content) in enumerate(entries_of(packed.path).items()):
            info = zipfile.ZipInfo(entry)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            if number == 3:
                setattr(info, name, value)

            archive.writestr(info, content)

    assert "has a kind, a time or permissions that pack does not write" in problem_of(path)


@pytest.mark.parametrize("offset", [4, 10, 12])
def test_edited_local_header_of_an_entry_is_found(
    packed: Packed, tmp_path: Path, offset: int
) -> None:
    content = bytearray(packed.path.read_bytes())
    content[offset] ^= 1
    path = tmp_path / "edited.memeval"
    path.write_bytes(content)
    assert "describes them inconsistently" in problem_of(path)


def test_manifest_with_an_additional_byte_is_found(packed: Packed, tmp_path: Path) -> None:
    entries, path = entries_of(packed.path), tmp_path / "edited.memeval"
    write_entries(path, {**entries, "manifest.json": entries["manifest.json"] + b"\n"})
    assert "manifest.json is not in the form that pack writes" in problem_of(path)


def test_a_key_that_leads_to_another_folder_is_refused(packed: Packed, tmp_path: Path) -> None:
    entries, path = entries_of(packed.path), tmp_path / "edited.memeval"
    key = json.loads(entries["manifest.json"])["runs"][0]
    moved = {name.replace(f"runs/{key}/", "runs/../"): own for name, own in entries.items()}
    moved["manifest.json"] = entries["manifest.json"].replace(key.encode(), b"..")
    write_entries(path, moved)
    assert "manifest.json" in problem_of(path) and "runs" in problem_of(path)


def test_entries_in_another_order_are_refused(packed: Packed, tmp_path: Path) -> None:
    path = tmp_path / "edited.memeval"
    manifest, environment, *others = entries_of(packed.path).items()
    write_entries(path, dict([manifest, *others, environment]))
    assert "is not where manifest.json lists it" in problem_of(path)


@pytest.mark.parametrize("name", ["", "../x", "/etc/x", "evil.py", "runs/../../x"])
def test_an_entry_that_the_manifest_does_not_list_is_refused(
    packed: Packed, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "edited.memeval"
    write_entries(path, {**entries_of(packed.path), name: b"x"})
    assert f"'{name}' is not where manifest.json lists it" in problem_of(path)


@pytest.mark.parametrize("name", ["answers.jsonl", "verdicts.jsonl", "ingest.jsonl"])
def test_a_header_that_is_repeated_is_found(packed: Packed, tmp_path: Path, name: str) -> None:
    entries = entries_of(packed.path)
    rows = one_of(entries, name)
    entries[rows] += entries[rows].splitlines(keepends=True)[0]
    assert "a header occurs twice" in problem_of(write_again(entries, tmp_path / "edited.memeval"))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        # PyYAML 6.0.4 refuses it by itself: "exceeded maximum nesting depth".
        (lambda: b"a: " + b"[" * 200_000, "nest"),
        (lambda: b"- " * 200_000 + b"1", "nested too deeply"),
        (lambda: b"a: &a [1, 1]\nb: &b [*a, *a]\nc: [*b, *b]\n", "refers to itself"),
        (lambda: b"".join(b"k%d: 1\n" % number for number in range(200_000)), "too large"),
        (lambda: b"a: [1\nb: }", "is not YAML"),
    ],
)
def test_a_config_that_would_crash_or_hang_its_reader_is_refused(
    packed: Packed, tmp_path: Path, made: Callable[[], bytes], message: str
) -> None:
    entries = entries_of(packed.path)
    entries[one_of(entries, "config.yaml")] = made()
    assert message in problem_of(write_again(entries, tmp_path / "edited.memeval"))
