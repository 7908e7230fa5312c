"""`python -m memeval ui`: MLflow's own server on our store, with its pages in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from doubles.loopback import Request, ServiceDouble
from ports import free_port

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))

from sample_runs import summary, write_folder

from memeval.cli.ui import check_free, experiments, serve, ui, wait_for
from memeval.config.filing import Filing
from memeval.errors import UserError, WorldError
from memeval.results import RunSummary, read_tracked
from memeval.runs.publish.publisher import Publisher
from memeval.tracking.payload import rounded_figures
from memeval.tracking.store import TrackingStore, locate

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
browser = [
    pytest.mark.browser,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason=f"no Chromium at {CHROMIUM}"),
]


@dataclass
class Served:
    process: subprocess.Popen[str]
    said: str
    address: str
    runs: list[str]


CALLS = "http://callout.test"
HOSTILE = (
    f"![p]({CALLS}/1.png) <img src={CALLS}/2.png> <script src='{CALLS}/3.js'></script> "
    "[x](javascript:alert(1)) | a | ![p][r] "
    f"<iframe src={CALLS}/4></iframe> `c` <style>@import '{CALLS}/5.css'</style> "
    f"&#33;[p]({CALLS}/6.png) \\![p]({CALLS}/7.png)\n\n"
    f"![p]({CALLS}/8.png)\n\n[r]: {CALLS}/9.png"
)


def hostile() -> RunSummary:
    """A run whose names, notes, settings and errors try to make the page send requests."""
    cell = summary("bm25")
    rows = tuple(replace(row, name=HOSTILE, category=HOSTILE) for row in cell.categories)
    shown: Any = {
        "name": f"evil {HOSTILE}",
        "notes": (HOSTILE,),
        "categories": rows,
        "facets": {HOSTILE: rows},
    }
    settings: Any = {
        "params": {**cell.params, "llm.model": HOSTILE},
        "tags": {**cell.tags, "protocol": HOSTILE},
    }
    return replace(
        cell,
        dataset="hostile",
        run_key="0123456789abcdef",
        command=f"python '{HOSTILE}'",
        **shown,
        **settings,
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("served")
    (root / "mlruns").mkdir()
    shutil.copy(empty_database, root / "mlruns" / "mlflow.db")
    cells = [summary("bm25"), summary("rag", repeats=2), summary("mem0"), hostile()]
    without = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}
    without["MEMEVAL_HOME"] = str(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        with closing(Publisher(locate(root))) as publisher:
            folders = [write_folder(root / "outputs" / "runs", cell) for cell in cells]
            for folder in folders:
                publisher.publish(folder, Filing()).result()

    port = free_port()
    command = [sys.executable, "-m", "memeval", "ui", "--port", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=without
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        yield Served(
            process,
            "".join(lines),
            f"http://127.0.0.1:{port}",
            [next(iter(read_tracked(folder).values())) for folder in folders],
        )
        process.send_signal(signal.SIGINT)
        last, _ = process.communicate(timeout=60)
    assert (process.returncode, last) == (0, "\nMLflow's page is closed.\n")
    with socket.create_server(("127.0.0.1", port)):
        """The port is free: the server and its workers have ended."""


@pytest.fixture(scope="class")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield started
        started.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page with its own browser profile."""
    shown = chromium.new_page(viewport={"width": 1800, "height": 1000})
    shown.set_default_timeout(60_000)
    yield shown
    shown.close()


@pytest.mark.slow
def test_ui_prints_its_urls(served: Served) -> None:
    assert f"MLflow's page:  {served.address}   (Ctrl-C to stop)" in served.said
    assert re.search(rf"  locomo +{served.address}/#/experiments/1/runs\?", served.said), (
        served.said
    )
    assert "Compare" in served.said


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
class TestPages:
    pytestmark = browser

    @pytest.mark.slow
    def test_the_experiment_lists_the_runs_with_their_metrics(
        self, served: Served, page: Page
    ) -> None:
        (address,) = re.findall(r"locomo +(\S+)", served.said)
        page.goto(address)
        for system in ("bm25", "rag", "mem0"):
            page.get_by_text(re.compile(f"^{system} turn k=10")).first.wait_for()
        # Rounded and with its interval, not a column of ten digits.
        rounded = rounded_figures(summary("bm25"))["rounded.accuracy"]
        page.get_by_text(rounded, exact=True).first.wait_for()
        assert page.get_by_text(re.compile(r"^\d\.\d{6}")).count() == 0
        page.get_by_text("3 matching runs").or_(
            page.get_by_text(re.compile(r"^\s*3\s*$"))
        ).first.wait_for()

    @pytest.mark.slow
    def test_the_compare_page_shows_what_differs(self, served: Served, page: Page) -> None:
        page.goto(
            f'{served.address}/#/compare-runs?runs={json.dumps(served.runs[:2])}&experiments=["1"]'
        )
        page.get_by_text("Comparing 2 Runs from 1 Experiment").first.wait_for()
        for text in (
            "bm25 turn k=10 extractive keyword n=1540",
            "rag turn k=10 extractive keyword n=1540",
        ):
            page.get_by_text(text).first.wait_for()

        # The axes that MLflow chooses by default.
        page.locator(".axis-title").first.wait_for()
        axes = page.locator(".axis-title").all_text_contents()
        assert "system" in axes and axes[-1] == "accuracy"

    @pytest.mark.slow
    def test_the_records_open_as_a_table(self, served: Served, page: Page) -> None:
        page.goto(
            f"{served.address}/#/experiments/1/runs/{served.runs[0]}/artifacts/records_table.json"
        )
        for text in ("View as table", "hypothesis", "conv-26/q0"):
            page.get_by_text(text).first.wait_for()

    @pytest.mark.slow
    def test_run_page_opens_from_the_artifacts(self, served: Served, page: Page) -> None:
        page.goto(
            f"{served.address}/#/experiments/1/runs/{served.runs[0]}/artifacts/report.html"
            "?workflowType=machine_learning"
        )
        frame = page.frame_locator("iframe[sandbox]")
        frame.locator("[data-view=questions]").click()
        frame.locator("#list a").nth(2).click()
        frame.locator("#question .facts a").get_by_text("conv-26/q2", exact=True).wait_for()

    @pytest.mark.slow
    def test_report_is_the_description_of_the_run(self, served: Served, page: Page) -> None:
        page.goto(
            f"{served.address}/#/experiments/1/runs/{served.runs[0]}?workflowType=machine_learning"
        )
        page.get_by_text("95 % interval, clustered by case").first.wait_for()

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("place", "shown"),
        [
            ("", "95 % interval, clustered by case"),
            ("/artifacts/report.md", "95 % interval, clustered by case"),
            ("/artifacts/records_table.json", "View as table"),
        ],
    )
    def test_hostile_report_sends_no_request(
        self, served: Served, page: Page, place: str, shown: str
    ) -> None:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(
            f"{served.address}/#/experiments/2/runs/{served.runs[3]}{place}?workflowType=machine_learning"
        )
        page.get_by_text(shown).first.wait_for()
        assert asked and [address for address in asked if "callout.test" in address] == []
        assert (
            page.locator(
                "img[src*='callout'], script[src*='callout'], iframe[src*='callout'], "
                "a[href^='javascript']"
            ).count()
            == 0
        )
        links = page.locator("a[href*='callout']").all()
        assert all(
            (link.text_content() or "").startswith("http://callout.test") for link in links
        ), "a link hides where it leads"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMEVAL_HOME", str(tmp_path))
    return tmp_path


def test_port_in_use_is_refused(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UserError, match=f"can't listen on 127.0.0.1:{port}: .*in use"
        ) as caught:
            ui(["--port", str(port)])
    assert caught.value.hints == (
        f"use a free port of this machine:  python -m memeval ui --port {port + 1}",
    )
    assert list(home.iterdir()) == []


def test_address_of_another_machine_is_not_answered_with_another_port() -> None:
    with pytest.raises(UserError, match="can't listen on") as caught:
        check_free("192.0.2.1", free_port())
    assert caught.value.hints == ("leave --host out, or name an address of this machine",)


@pytest.mark.parametrize(
    ("port", "reason"),
    [
        ("70000", "at most 65,535, not 70,000"),
        ("0", "at least 1, not 0"),
        ("-1", "at least 1, not -1"),
    ],
)
def test_port_out_of_range_is_refused(port: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"--port must be {reason}"):
        ui([f"--port={port}"])


def test_port_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(UserError, match="ui: argument --port: invalid int value: 'many'"):
        ui(["--port", "many"])


def test_ui_names_a_tracking_server(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ui(["--uri", "https://me:secret@mlflow.example/team/"]) == 0
    assert (
        capsys.readouterr().out
        == "The runs are on a tracking server: https://mlflow.example/team\n"
    )
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.0.2.7", False),
        ("no such host", False),
    ],
)
def test_is_loopback_recognizes_only_loopback_hosts(host: str, alone: bool) -> None:
    from memeval.cli.ui import is_loopback

    assert is_loopback(host) is alone


def test_public_host_is_warned_about_before_the_server_starts(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (home / "mlruns").write_text("in the way")
    with pytest.raises(WorldError):
        ui(["--host", "0.0.0.0", "--port", str(free_port())])
    assert "no login" in capsys.readouterr().err


def test_the_experiment_of_the_latest_run_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    created = [{"experiment_id": number, "name": f"data {number}"} for number in ("3", "2", "1")]

    def post(_: Any, url: str, json: Any, timeout: float) -> SimpleNamespace:
        runs = {"runs": [{"info": {"experiment_id": "2"}}]}
        return SimpleNamespace(json=lambda: runs if "/runs/" in url else {"experiments": created})

    monkeypatch.setattr("requests.Session.post", post)
    assert [name for name, _ in experiments("page")] == ["data 2", "data 3", "data 1"]


class EmptyPage(ServiceDouble):
    def answer(self, request: Request) -> tuple[int, Any]:
        return 200, {}


def test_proxy_of_the_environment_is_not_asked_for_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setattr("memeval.cli.ui.STARTING_S", 1.0)
    starting: Any = SimpleNamespace(poll=lambda: None)
    with EmptyPage() as page:
        wait_for(page.address, starting, tmp_path / "log")
        assert experiments(page.address) == []


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="needs IPv6")
def test_page_is_served_at_an_ipv6_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    port = free_port()
    check_free("::1", port)
    monkeypatch.setattr("memeval.cli.ui.wait_for", lambda *_: None)
    monkeypatch.setattr("memeval.cli.ui.experiments", stop)
    monkeypatch.setattr("memeval.cli.ui.server_command", lambda *_: [sys.executable, "-c", ""])
    store = TrackingStore("sqlite://", None, is_default=True)
    assert serve("::1", port, store, tmp_path, opens=False) == 0
    assert f"http://[::1]:{port} " in capsys.readouterr().out


def test_server_that_ends_while_its_page_is_shown_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setattr("memeval.cli.ui.wait_for", lambda *_: None)
    monkeypatch.setattr("memeval.cli.ui.server_command", lambda *_: [sys.executable, "-c", ""])
    store = TrackingStore("sqlite://", None, is_default=True)
    with pytest.raises(WorldError, match="does not answer; see its log"):
        serve("127.0.0.1", port, store, tmp_path, opens=False)
