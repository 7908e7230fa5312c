"""Every kind of file in a home, damaged in every way: the result is the same figures or one clear
error, never a traceback.

Runs are made once. For each damage the home is copied, one file is damaged, and the same command
runs again through the command line's entry point. Damage that can be reported must be reported, and
`verify` must find what it can find.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from memeval.__main__ import main

CELL = [
    "dataset=demo",
    "dataset.limit_cases=2",
    "dataset.limit_questions=3",
    "tracking=none",
    "system=rag",
]
OTHER = [*CELL, "system.chunk_size=300", "judge=exact_match"]

KINDS = {
    "answers": "outputs/answers/{answer}.jsonl",
    "verdicts": "outputs/verdicts/{judge}.jsonl",
    "run.json": "outputs/runs/{run}/run.json",
    "records": "outputs/runs/{run}/records.jsonl",
    "hypotheses": "outputs/runs/{run}/hypotheses.jsonl",
    "config": "outputs/runs/{run}/config.yaml",
    "report": "outputs/runs/{run}/report.md",
    "tracked": "outputs/runs/{run}/tracked.json",
    "manifest": "data/prepared/*/*-{prepare}/*/memory.json",
    "memory": "data/prepared/*/*-{prepare}/*/chunks.json",
    "memory folder": "data/prepared/*/*-{prepare}/*[0-9a-f]",
    "answers' lock": "outputs/answers/{answer}.jsonl.lock",
    "memory's lock": "data/prepared/*/*-{prepare}/*.lock",
}


@dataclass(frozen=True)
class Home:
    """A home with two finished runs."""

    path: Path
    keys: dict[str, str]
    others: dict[str, str]

    def file(self, kind: str, keys: dict[str, str] | None = None) -> Path:
        """The first file of this kind of the run."""
        return sorted(self.path.glob(KINDS[kind].format(**(keys or self.keys))))[0]


def truncate(file: Path, home: Home, kind: str) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flip_bits(file: Path, home: Home, kind: str) -> None:
    content = bytearray(file.read_bytes())
    place = random.Random(kind).randrange(len(content))
    content[place] ^= 1
    file.write_bytes(content)


def flip_figures(file: Path, home: Home, kind: str) -> None:
    """A file that reads as sound with other content: wrong for correct, 9 for 1."""
    text = file.read_text(encoding="utf-8")
    for old, new in (('"correct"', '"wrong"'), ('"accuracy": 0', '"accuracy": 1'), ("1", "9")):
        if old in text:
            file.write_text(text.replace(old, new), encoding="utf-8")
            return


def undecodable(file: Path, home: Home, kind: str) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff\xfe\x00" + content[len(content) // 2 :])


def delete(file: Path, home: Home, kind: str) -> None:
    file.unlink()


def double(file: Path, home: Home, kind: str) -> None:
    file.write_bytes(2 * file.read_bytes())


def empty(file: Path, home: Home, kind: str) -> None:
    file.write_bytes(b"")


def append_garbage(file: Path, home: Home, kind: str) -> None:
    file.write_bytes(file.read_bytes() + b"\x00\xff garbage {]\n\xe2\x80\xa8")


def append_odd_rows(file: Path, home: Home, kind: str) -> None:
    rows: list[Any] = [
        {"id": 7},
        {"id": "x", "status": "odd"},
        {"id": "x", "status": ["ok"], "metrics": float("nan")},
        [],
        None,
        3,
    ]
    file.write_bytes(
        file.read_bytes()
        + "".join(json.dumps(row) + "\n" for row in rows).encode()
        + b"[" * 5000
        + b"\n"
    )


def drop_first_line(file: Path, home: Home, kind: str) -> None:
    file.write_bytes(file.read_bytes().partition(b"\n")[2])


def another_value(file: Path, home: Home, kind: str) -> None:
    file.write_text("[[1, 2], null]\n")


def swap_keys(file: Path, home: Home, kind: str) -> None:
    shutil.copy(home.file(kind, home.others), file)


def make_folder(file: Path, home: Home, kind: str) -> None:
    file.unlink()
    file.mkdir()
    (file / "inside").write_text("x")


def make_dangling_link(file: Path, home: Home, kind: str) -> None:
    file.unlink()
    file.symlink_to(file.parent / "nowhere" / "at all")


Damage = Callable[[Path, Home, str], None]
DAMAGES: list[Damage] = [
    truncate,
    flip_bits,
    flip_figures,
    undecodable,
    delete,
    double,
    empty,
    append_garbage,
    append_odd_rows,
    drop_first_line,
    another_value,
    swap_keys,
    make_folder,
    make_dangling_link,
]


def without(folder: Path, home: Home) -> None:
    shutil.rmtree(folder)


def emptied(folder: Path, home: Home) -> None:
    for path in folder.iterdir():
        path.unlink()


def as_a_file(folder: Path, home: Home) -> None:
    shutil.rmtree(folder)
    folder.write_text("x")


def of_another_case(folder: Path, home: Home) -> None:
    *_, last = sorted(path for path in folder.parent.iterdir() if path.is_dir())
    replace_by(folder, last)


def of_another_key(folder: Path, home: Home) -> None:
    replace_by(folder, home.file("memory folder", home.others))


FOLDER_DAMAGES = [without, emptied, as_a_file, of_another_case, of_another_key]
RARELY_READ = ("report", "tracked", "answers' lock", "memory's lock")
COMBINATIONS = [
    (kind, damage)
    for kind in KINDS
    for damage in DAMAGES
    if kind != "memory folder"
    and (kind not in RARELY_READ or damage in (delete, undecodable, make_folder))
]
CONTINUED = [
    (kind, damage)
    for kind, damage in COMBINATIONS
    if kind in ("answers", "verdicts", "manifest", "memory", "answers' lock", "memory's lock")
]


def named(value: object) -> str:
    return getattr(value, "__name__", str(value))


def replace_by(folder: Path, other: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(other, folder)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    for name in ("MEMEVAL_DATA_DIR", "MLFLOW_TRACKING_URI", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    yield monkeypatch


def run(home: Path, environment: pytest.MonkeyPatch, arguments: list[str]) -> int:
    environment.setenv("MEMEVAL_HOME", str(home))
    environment.setenv("MEMEVAL_PLOTS", "false")
    environment.chdir(home)
    return main(arguments)


def keys_of(folder: Path) -> dict[str, str]:
    content = json.loads((folder / "run.json").read_bytes())
    (keys,) = content["identity"]["keys"]
    return {"run": folder.name, **{name: keys[name] for name in ("prepare", "answer", "judge")}}


def figures(folder: Path) -> Any:
    """The figures, records and settings of a run, without times."""
    content = json.loads((folder / "run.json").read_bytes())
    metrics = {
        name: value
        for name, value in content["metrics"].items()
        if not name.startswith(("latency", "duration", "retry"))
    }
    records = [
        json.loads(line) for line in (folder / "records.jsonl").read_bytes().split(b"\n") if line
    ]
    kept = [
        {name: value for name, value in record.items() if name != "times"} for record in records
    ]
    return (
        metrics,
        content["statuses"],
        kept,
        (folder / "config.yaml").read_bytes(),
        (folder / "hypotheses.jsonl").read_bytes(),
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    path = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as environment:
        for name in (
            "MEMEVAL_DATA_DIR",
            "MLFLOW_TRACKING_URI",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
        ):
            environment.delenv(name, raising=False)
        assert run(path, environment, CELL) == 0
        (first,) = (path / "outputs" / "runs").iterdir()
        assert run(path, environment, OTHER) == 0
        (second,) = set((path / "outputs" / "runs").iterdir()) - {first}
        for folder in (first, second):
            (folder / "tracked.json").write_text('{"sqlite:///x.db": "0123"}\n')
        yield Home(path, keys_of(first), keys_of(second))


@pytest.fixture
def home(sound: Home, tmp_path: Path) -> Home:
    shutil.copytree(sound.path, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home", sound.keys, sound.others)


def check(
    home: Home, sound: Home, environment: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> str:
    """Runs the same command again and returns its output; the figures must be as before, or the
    error clear.
    """
    capfd.readouterr()
    status = run(home.path, environment, CELL)
    output = "".join(capfd.readouterr())
    assert "Traceback" not in output
    assert status in (0, 1, 2)
    if status:
        assert "memeval: " in output
    else:
        assert figures(home.path / "outputs" / "runs" / home.keys["run"]) == figures(
            sound.path / "outputs" / "runs" / sound.keys["run"]
        )
    return output


def is_unseen(kind: str, damage: Damage, before: bytes, file: Path) -> bool:
    """Whether a damage changes nothing that a run uses."""
    if kind in ("report", "tracked", "answers' lock", "memory's lock"):
        return True
    if not file.is_file():
        return False
    return file.read_bytes() == before


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(("kind", "damage"), COMBINATIONS, ids=named)
def test_damaged_file_of_a_finished_run_is_found_or_made_again(
    home: Home,
    sound: Home,
    environment: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    damage: Damage,
) -> None:
    file = home.file(kind)
    before = file.read_bytes()
    damage(file, home, kind)
    unseen = is_unseen(kind, damage, before, file)

    capfd.readouterr()
    verified = run(home.path, environment, ["verify", home.keys["run"]])
    output = capfd.readouterr()
    assert "Traceback" not in output.out + output.err
    if not unseen:
        assert (
            verified == 1
            or (kind, damage) == ("answers", double)
            or (kind, damage) == ("verdicts", double)
        )

    said = check(home, sound, environment, capfd)
    if (
        not unseen
        and kind in ("run.json", "records", "hypotheses", "config")
        and damage not in (delete, make_dangling_link)
    ):
        assert "is damaged" in said or "memeval: " in said


@pytest.mark.sampled(kept=3)
@pytest.mark.parametrize(("kind", "damage"), CONTINUED, ids=named)
def test_run_with_damaged_rows_or_memory_is_continued(
    home: Home,
    sound: Home,
    environment: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    damage: Damage,
) -> None:
    file = home.file(kind)
    before = file.read_bytes()
    damage(file, home, kind)
    unseen = is_unseen(kind, damage, before, file)
    shutil.rmtree(home.path / "outputs" / "runs" / home.keys["run"])
    if kind in ("manifest", "memory", "memory's lock"):
        home.file("answers").unlink()

    said = check(home, sound, environment, capfd)

    # Rows that lost only their header are still sound: the seal of each row identifies its key.
    if (
        kind in ("answers", "verdicts")
        and not unseen
        and damage not in (delete, empty, double, drop_first_line)
    ):
        assert "left out" in said or "skipped" in said or "memeval: " in said


@pytest.mark.parametrize("kind", ["answers", "texts", "verdicts", "memory"])
def test_fresh_repairs_what_a_finished_run_does_not_read(
    home: Home, environment: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    """`verify` and `pack` name this way out: afterwards, nothing damaged is left in the file."""
    file = home.file("answers" if kind == "texts" else kind)
    if kind == "texts":
        file = file.with_suffix(".texts.jsonl")

    file.write_bytes(file.read_bytes().replace(b"o", b"0", 40))
    assert run(home.path, environment, ["verify", home.keys["run"]]) == 1
    assert "with --fresh" in capfd.readouterr().out

    assert run(home.path, environment, [*CELL, "--fresh"]) == 0
    assert run(home.path, environment, ["verify", home.keys["run"]]) == 0


@pytest.mark.sampled(kept=1)
@pytest.mark.parametrize("damage", FOLDER_DAMAGES, ids=named)
def test_damaged_memory_folder_is_made_again(
    home: Home,
    sound: Home,
    environment: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    damage: Callable[[Path, Home], None],
) -> None:
    damage(home.file("memory folder"), home)
    shutil.rmtree(home.path / "outputs" / "runs" / home.keys["run"])
    home.file("answers").unlink()
    check(home, sound, environment, capfd)
    assert run(home.path, environment, ["verify"]) == 0


def test_leftovers_of_killed_writers_are_ignored(
    home: Home, sound: Home, environment: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = home.path / "outputs" / "runs" / home.keys["run"]
    for name in (".run.json.1.tmp", ".records.jsonl.1.abc.tmp"):
        (folder / name).write_text("half")
    leftover = home.file("memory folder").with_name(".0123.1.2.tmp")
    leftover.mkdir()
    (leftover / "memory.json").write_text("half")
    (folder / "run.json").unlink()
    check(home, sound, environment, capfd)
    assert run(home.path, environment, ["verify"]) == 0


def test_replaced_answers_are_judged_again(
    home: Home, sound: Home, environment: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The answers are replaced by others: verdicts on the lost answers do not apply to them."""
    from memeval.results import AnswerRow
    from memeval.results.rows import answer_or_ingest
    from memeval.results.store import read_row_file, sealed_line

    file = home.file("answers")
    header = {"answer": home.keys["answer"], "seed": 0}
    rows = read_row_file(file, header, answer_or_ingest).rows
    for row in rows.values():
        if isinstance(row, AnswerRow):
            other = structs.replace(row, hypothesis="something else entirely")
            file.write_bytes(file.read_bytes() + sealed_line(header, other.to_json()))
    shutil.rmtree(home.path / "outputs" / "runs" / home.keys["run"])

    assert run(home.path, environment, CELL) == 0

    _, _, records, *_ = figures(home.path / "outputs" / "runs" / home.keys["run"])
    assert {record["verdict"]["label"] for record in records} == {"wrong"}
