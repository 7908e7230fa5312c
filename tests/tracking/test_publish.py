"""The publisher's worker and its client, as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from mlflow import MlflowClient
from sample_runs import summary, write_folder

from memeval.config.filing import Filing
from memeval.results import read_tracked
from memeval.runs.publish.publisher import Publisher, PublishError, attempt
from memeval.tracking.store import TrackingStore, locate


@pytest.mark.slow
def test_folders_are_reported_and_logged(store: TrackingStore, tmp_path: Path) -> None:
    folders = [write_folder(tmp_path / "runs", summary(system)) for system in ("bm25", "rag")]
    with closing(Publisher(store)) as publisher:
        urls = [publisher.publish(folder, Filing()).result() for folder in (*folders, folders[0])]
    first, second = (read_tracked(folder)[store.name] for folder in folders)
    assert urls[0] == urls[2] and f"/runs/{first}?" in (urls[0] or "")
    assert all(
        (folder / "report.md").exists() and (folder / "tracked.json").exists() for folder in folders
    )
    logged = MlflowClient(store.uri).list_artifacts(second)
    assert (folders[1] / "report.html").exists() and "report.html" in {file.path for file in logged}
    assert MlflowClient(store.uri).get_run(second).data.tags["mlflow.note.content"].startswith("**")


@pytest.mark.slow
def test_failure_is_reported_and_the_worker_continues(tmp_path: Path) -> None:
    good = write_folder(tmp_path / "runs", summary())
    damaged = write_folder(tmp_path / "runs", summary("rag"))
    (damaged / "run.json").write_text("{}")
    with closing(Publisher(None)) as publisher:
        with pytest.raises(PublishError, match="No such file"):
            publisher.publish(tmp_path / "nowhere", Filing()).result()
        with pytest.raises(PublishError, match=r"^rag-10-1 could not be published: ") as broken:
            publisher.publish(damaged, Filing()).result()
        assert publisher.publish(good, Filing()).result() is None
    assert "run.json is damaged: its digest is missing" in str(broken.value)
    assert not (good / "tracked.json").exists() and not (tmp_path / "mlruns").exists()


@pytest.mark.slow
def test_report_is_written_even_if_the_store_fails(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "runs", summary())
    (tmp_path / "mlruns").write_text("")
    with (
        closing(Publisher(locate(tmp_path))) as publisher,
        pytest.raises(PublishError, match="a file is where a folder should be") as failed,
    ):
        publisher.publish(folder, Filing()).result()
    assert "\n" not in str(failed.value)
    assert (folder / "report.md").exists()


@pytest.mark.slow
def test_killed_worker_is_restarted(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "runs", summary())
    with closing(Publisher(None)) as publisher:
        publisher.publish(folder, Filing()).result()
        assert publisher.process is not None
        os.kill(publisher.process.pid, signal.SIGKILL)
        publisher.process.wait()
        publisher.publish(folder, Filing()).result()


def test_worker_that_dies_twice_is_reported_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    folder = write_folder(tmp_path / "runs", summary())
    with (
        closing(Publisher(locate(tmp_path))) as publisher,
        pytest.raises(PublishError) as failed,
    ):
        publisher.publish(folder, Filing()).result()
    assert str(failed.value) == "the publisher crashed twice on bm25-10-1: exit status 1"


def test_worker_that_cannot_start_is_reported_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    folder = write_folder(tmp_path / "runs", summary())
    with pytest.raises(PublishError, match="No such file or directory: '/nowhere/python'"):
        Publisher(locate(tmp_path)).publish(folder, Filing()).result()


@pytest.mark.slow
def test_worker_ignores_ctrl_c_and_ends_with_its_connection(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "runs", summary())
    with closing(Publisher(None)) as publisher:
        publisher.publish(folder, Filing()).result()
        process = publisher.process
        assert process is not None
        process.send_signal(signal.SIGINT)
        publisher.publish(folder, Filing()).result()
        assert publisher.process is process
    assert process.wait(60) == 0


@pytest.mark.slow
def test_publisher_loads_no_heavy_package_in_the_parent(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from contextlib import closing\n"
        "from memeval.config.filing import Filing\n"
        "from memeval.runs.publish.publisher import Publisher\n"
        "with closing(Publisher(None)) as publisher: "
        "publisher.publish(Path(sys.argv[1]), Filing()).result()\n"
        "heavy = ('mlflow', 'matplotlib', 'numpy', 'rich')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    folder = write_folder(tmp_path / "runs", summary())
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_error_without_a_message_is_named() -> None:
    def lack(_: Path) -> None:
        raise MemoryError

    with pytest.raises(PublishError, match=r"one could not be published: MemoryError$"):
        attempt("", lack, Path("one"))
