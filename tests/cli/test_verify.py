"""`verify` on the command line, and who can read the files of a run."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import SMALL, completed, memeval

from memeval.pipeline.verify.sound import verify_run
from memeval.results.files import as_json, file_digest, sealed

CELL = ("dataset=demo", "system=rag", "label=mine", *SMALL)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("verify") / "home"
    before = os.umask(0)
    try:
        completed(home, *CELL)
        completed(home, *[word for word in CELL if word != "tracking=none"], "top_k=3")
    finally:
        os.umask(before)
    return home


def folders(home: Path) -> list[Path]:
    return sorted((home / "outputs" / "runs").iterdir())


@pytest.mark.slow
def test_sound_runs_are_found_by_key_prefix_and_folder(finished: Path) -> None:
    first, second = folders(finished)
    assert completed(finished, "verify").out.count(": sound") == 2
    assert first.name in completed(finished, "verify", first.name).out
    assert second.name in completed(finished, "verify", second.name[:6]).out
    assert completed(finished, "verify", str(first), second.name).out.count(": sound") == 2


def test_a_run_is_named_as_list_prints_it(finished: Path) -> None:
    listed = memeval(finished, "list", "--json").out
    shown = json.loads(listed)[-1]["run"]
    assert memeval(finished, "verify", shown).out.count(": sound") == 1
    assert memeval(finished, "verify", "@last").out.count(": sound") == 1


@pytest.mark.parametrize("word", ["zz", "", "no/such/folder", "--nope", "\x1b[2J", "x" * 5000])
def test_unknown_run_is_reported_on_one_line(finished: Path, word: str) -> None:
    done = memeval(finished, "verify", word)
    assert done.status == 2 and "Traceback" not in done.err and "\x1b" not in done.err
    assert len(done.err.splitlines()) <= 2


def test_ambiguous_key_prefix_is_refused(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "home")
    for number, folder in enumerate(folders(tmp_path / "home")):
        folder.rename(folder.with_name(f"abc{number}"))
    done = memeval(tmp_path / "home", "verify", "abc")
    assert done.status == 2 and "2 run keys begin with 'abc'" in done.message


def test_verify_reports_a_home_without_runs(tmp_path: Path) -> None:
    assert "no finished run" in completed(tmp_path, "verify").out


def test_run_folder_outside_its_home_is_not_compared(finished: Path, tmp_path: Path) -> None:
    first, _ = folders(finished)
    shutil.copytree(first, tmp_path / "sent" / "by" / first.name)
    assert (
        "not compared: "
        in completed(finished, "verify", str(tmp_path / "sent" / "by" / first.name)).out
    )


def resealed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Edits `run.json` and updates its own digest."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(as_json(sealed(content)), encoding="utf-8")


@pytest.mark.parametrize("away", [False, True], ids=["in its home", "copied without rows"])
def test_figures_edited_with_a_valid_digest_are_found(
    finished: Path, tmp_path: Path, away: bool
) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    if away:
        first = Path(shutil.copytree(first, tmp_path / "sent" / "by" / first.name))

    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "accuracy 0.99, not": lambda run: run["metrics"].update(accuracy=0.99),
        "recall_at_5 1.5, not": lambda run: run["metrics"].update(recall_at_5=1.5),
        "coverage nothing, not": lambda run: run["metrics"].update(coverage=None),
        "accuracy_ci95_low 0.4, not": lambda run: run["metrics"].update(accuracy_ci95_low=0.4),
        "repeat 0: token_f1 0.7, not": lambda run: run["repeats"][0]["metrics"].update(
            token_f1=0.7
        ),
        "category ": lambda run: run["categories"][0].update(accuracy=0.9),
    }
    if not away:
        changes["tokens/total 1, not"] = lambda run: run["metrics"].update({"tokens/total": 1.0})

    sound = (first / "run.json").read_bytes()
    assert ": sound" in completed(home, "verify", str(first)).out
    # In the order of another version, which is valid.
    resealed(first / "run.json", lambda run: run["categories"].reverse())
    assert ": sound" in completed(home, "verify", str(first)).out
    # At most five figures are named.
    named = list(changes.items())
    for some in (named[:4], named[4:]):
        (first / "run.json").write_bytes(sound)
        check_all_named(home, first, dict(some))

    (first / "run.json").write_bytes(sound)
    resealed(first / "run.json", lambda run: run["categories"].pop())
    assert "rows of category, not " in " ".join(verify_run(first).problems)


def check_all_named(
    home: Path, run: Path, changes: Mapping[str, Callable[[dict[str, Any]], None]]
) -> None:
    """Makes all edits, and checks that `verify` names each; a key is in the line of its edit."""
    for change in changes.values():
        resealed(run / "run.json", change)

    done = memeval(home, "verify", str(run))
    assert done.status == 1
    assert [line for line in changes if line not in done.out] == [], done.out


def test_facts_that_contradict_others_are_named(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    changes: dict[str, Callable[[dict[str, Any]], None]] = {
        "it has unexpected or missing members": lambda run: run.pop("statuses"),
        "the setting top_k is 7, but ": lambda run: run["params"].update(top_k=7),
        "records are with a different seed or top_k": lambda run: None,
        "the setting seed is missing here or in config.yaml": lambda run: run["params"].pop("seed"),
        "the label is other, but different in config.yaml": lambda run: run["params"].update(
            label="other"
        ),
        "name different versions of memeval": lambda run: run["tags"].update(
            {"version.memeval": "0"}
        ),
        "the tag sample differs from config.yaml": lambda run: run["tags"].update(sample="3"),
        "the name differs from config.yaml": lambda run: run.update(name="another"),
        "don't match its reader": lambda run: run["tags"].update(own_prompt="maybe"),
        "the tag command does not match the run": lambda run: run.update(command="another"),
        "unknown status done": lambda run: run.update(status="done"),
        "its identity has unexpected or missing members": lambda run: run["identity"].update(a={}),
        "the keys of a repeat differ": lambda run: run["identity"]["keys"][0].update(a="b"),
        "the seeds of the repeats differ": lambda run: run["repeats"][0].update(seed=7),
        "it says invalid, but is not": lambda run: run.update(valid=False),
        "the stages of its settings don't match": lambda run: run["identity"]["inputs"][
            "stages"
        ].popitem(),
        "gives a different key than": lambda run: None,
        "but contains the run 00": lambda run: run.update(run_key="0" * 16),
    }
    check_all_named(home, first, changes)


def test_an_identity_of_another_shape_is_a_problem(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    sound = (first / "run.json").read_bytes()
    changes: tuple[Callable[[dict[str, Any]], object], ...] = (
        lambda identity: identity.pop("keys"),
        lambda identity: identity.update(keys=["a"]),
        lambda identity: identity["keys"][0].update(answer="../a"),
        lambda identity: identity.update(inputs=None),
        lambda identity: identity["inputs"]["digests"].update(answer=None),
    )
    for change in changes:
        (first / "run.json").write_bytes(sound)
        resealed(first / "run.json", lambda run, change=change: change(run["identity"]))
        found = [line for line in verify_run(first).problems if "identity is damaged" in line]
        assert len(found) == 1

    done = memeval(home, "verify", first.name)
    assert done.status == 1 and "Traceback" not in done.err and "identity is damaged" in done.out


def test_edited_records_are_found_though_their_digest_fits(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    records = first / "records.jsonl"
    rows = records.read_text(encoding="utf-8").splitlines()
    reordered = dict(reversed(json.loads(rows[1]).items()), more=1)
    lines = ["[]", json.dumps(reordered), *rows[2:]]
    records.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    resealed(
        first / "run.json", lambda run: run["files"].update({"records.jsonl": file_digest(records)})
    )
    count = len(rows)

    found = "\n".join(verify_run(first).problems)

    assert "records.jsonl, line 1: not a record" in found
    assert "records.jsonl: 1 record is not formatted as a run writes them: " in found
    assert f"records.jsonl has {count - 1} ok, but run.json says {count} ok" in found


def test_rows_that_are_missing_or_of_another_key_are_found(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    keys = json.loads((first / "run.json").read_bytes())["identity"]["keys"][0]
    answers, verdicts = f"answers/{keys['answer']}.jsonl", f"verdicts/{keys['judge']}.jsonl"
    (home / "outputs" / answers).unlink()
    path = home / "outputs" / verdicts
    path.write_bytes(path.read_bytes().partition(b"\n")[2])

    check = verify_run(first)

    assert check.problems[:1] == [f"{answers} is missing"]
    assert f"{verdicts}: the header of its key is missing" in check.problems
    assert check.unchecked == []


def test_a_run_of_another_version_is_compared_except_for_its_key(
    finished: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)

    def age(run: dict[str, Any]) -> None:
        run["identity"]["version"] = run["tags"]["version.memeval"] = "0.9"
        run["params"]["top_k"] = 7

    resealed(first / "run.json", age)
    check = verify_run(first)
    assert [line for line in check.unchecked if line.startswith("made by memeval 0.9: ")]
    assert not [line for line in check.problems if "config.yaml" in line]
    resealed(first / "run.json", lambda run: run["metrics"].update(accuracy=0.99))
    assert "accuracy 0.99, not" in " ".join(verify_run(first).problems)


def test_records_that_cannot_be_read_are_one_problem(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    records = folders(home)[0] / "records.jsonl"
    records.unlink()
    records.mkdir()

    lines = memeval(home, "verify", str(records.parent)).out.splitlines()

    assert lines[0].endswith(": 1 problem")
    assert lines[1].strip() == "records.jsonl can't be read: Is a directory"


def test_texts_that_cannot_be_read_do_not_stop_the_checks(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    texts = sorted(home.glob("outputs/answers/*.texts.jsonl"))[0]
    texts.unlink()
    # Not even root can read a folder as a file.
    texts.mkdir()

    reason = f"{texts} can't be read: Is a directory"
    done = memeval(home, "verify")
    assert done.status == 1 and reason in done.out and done.out.count(": sound") == 1
    done = memeval(home, "store", "verify")
    assert done.status == 1 and reason in done.out and "problems: 1" in done.out


def test_rows_without_seals_are_refused(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    for path in home.glob("outputs/*/*.jsonl"):
        if path.parent.name in ("answers", "verdicts"):
            path.write_text(re.sub(r',"seal":"[0-9a-f]{16}"\}', "}", path.read_text()))

    done = memeval(home, "verify", first.name)
    assert done.status == 1 and "torn, damaged, edited" in done.out

    # A repeated run, whose folder is gone, uses none of these rows.
    for folder in folders(home):
        shutil.rmtree(folder)

    again = completed(home, *CELL)
    assert "skipped and made again" in " ".join(again.out.split())


def test_damaged_calibration_is_reported(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "home")
    folder = folders(tmp_path / "home")[0]
    for content, message in (("{}", "its digest is missing"), ("{", "Expecting property name")):
        (folder / "calibration.json").write_text(content, encoding="utf-8")
        done = memeval(tmp_path / "home", "verify", folder.name)
        assert done.status == 1 and f"calibration.json can't be read ({message}" in done.out
        assert "): calibrate the run again" in done.out


def test_run_of_version_0_1_is_refused_with_a_way_out(finished: Path, tmp_path: Path) -> None:
    """`run.json` of that version has no digest."""
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    path = folders(home)[0] / "run.json"
    content = json.loads(path.read_bytes())
    del content["digest"]
    path.write_text(json.dumps(content), encoding="utf-8")
    done = memeval(home, "verify", str(path.parent))
    assert done.status == 1 and f"{path} is damaged: its digest is missing" in done.out
    assert "repeat its command, which rewrites its folder" in done.out

    done = memeval(home, "show", path.parent.name)
    assert done.status == 2 and "its digest is missing" in done.err and "Traceback" not in done.err


def test_edited_and_missing_files_are_named(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, second = folders(home)
    records = first / "records.jsonl"
    rows = [json.loads(line) for line in records.read_bytes().split(b"\n") if line]
    rows[0]["hypothesis"] = "edited"
    records.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (second / "hypotheses.jsonl").unlink()
    manifest = next(home.glob("data/prepared/*/*/*/memory.json"))
    manifest.write_text(manifest.read_text().replace('"chunks": ', '"chunks": 9'))

    done = memeval(home, "verify")

    assert done.status == 1 and "Traceback" not in done.err
    for message in (
        "records.jsonl is damaged or was edited",
        rows[0]["question_id"],
        "hypotheses.jsonl is missing",
        "memory.json is damaged",
    ):
        assert message in done.out

    manifest.unlink()
    assert "memory.json is missing" in memeval(home, "verify").out


def test_a_config_of_another_key_is_named_though_its_digest_fits(
    finished: Path, tmp_path: Path
) -> None:
    from memeval.results import file_digest, sealed

    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    config = first / "config.yaml"
    config.write_text(config.read_text().replace("retain_recent: 5", "retain_recent: 7"))
    summary = json.loads((first / "run.json").read_bytes())
    summary["files"]["config.yaml"] = file_digest(config)
    summary.pop("digest")
    (first / "run.json").write_text(json.dumps(sealed(summary)))
    assert "config.yaml gives a different key" in memeval(home, "verify", first.name).out


def test_unreadable_config_is_reported_once(finished: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(finished, home)
    first, _ = folders(home)
    (first / "config.yaml").write_text("a: [")
    done = memeval(home, "verify", first.name)
    assert "config.yaml is damaged or was edited" in done.out
    assert done.status == 1 and done.out.count("config.yaml") == 1


def test_files_are_private_to_their_owner_whatever_the_umask(finished: Path) -> None:
    open_ones = [
        str(path.relative_to(finished))
        for path in finished.rglob("*")
        if path.stat().st_mode & 0o077
    ]
    assert open_ones == []
    assert (
        list(finished.rglob("mlflow.db"))
        and list(finished.rglob("chunks.json"))
        and list(finished.rglob("records_table.json"))
    )
