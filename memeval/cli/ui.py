"""`python -m memeval ui`: MLflow's page on the project's own store."""

import errno
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import requests

from memeval.cli.parser import Parser
from memeval.config.checks import check_tracking
from memeval.errors import UserError, WorldError, check_number
from memeval.process import started
from memeval.process.root import project_root
from memeval.results.private import make_folder, open_private
from memeval.text.redaction import redacted
from memeval.text.shown import one_line
from memeval.tracking.store import WORKFLOW, TrackingStore, locate, prepare_store
from memeval.tracking.view import VIEW

CHARTS = "compareRunsMode=CHART"
"""Part of a URL: the experiment's charts instead of its table."""

STARTING_S = 120.0
"""Time limit for the server to answer; it takes about ten seconds on two cores."""

USAGE = """
opens MLflow's page of the runs

--host HOST      address to listen on (default: only this machine)
--port PORT:int  port to listen on (default: 5000)
--no-open        print the URL, but don't open a browser
--uri URI        another store, as in tracking.uri (default: MLFLOW_TRACKING_URI, else
    mlruns/mlflow.db)
"""
PARSER = Parser.of("ui", USAGE, host="127.0.0.1", port=5000)


def ui(arguments: Sequence[str]) -> int:
    """Serves MLflow's page until Ctrl-C.

    Raises UserError for a port that is taken, WorldError if the server does not start.
    """
    options = PARSER.parse_args(arguments)

    if options.uri and not options.uri.startswith(("http://", "https://")):
        check_tracking("--uri", options.uri)

    root = project_root()
    store = locate(root, options.uri)
    if store.remote:
        print(f"The runs are on a tracking server: {store.page}")
        return 0

    # Before the store is prepared: that takes seconds, which are wasted if the port is taken.
    check_free(options.host, options.port)
    if not is_loopback(options.host):
        print(
            f"warning: other machines can reach {one_line(options.host, 80)}, and the page has "
            "no login: anyone there can read and delete every run and its conversations",
            file=sys.stderr,
        )

    print("MLflow's page is starting …", flush=True)
    prepare_store(store)
    # After SIGTERM, memeval stops the server as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return serve(options.host, options.port, store, root, opens=not options.no_open)


def serve(host: str, port: int, store: TrackingStore, root: Path, *, opens: bool) -> int:
    """Runs MLflow's server until Ctrl-C; its output goes to `mlruns/server.log`.

    `opens` says whether the latest experiment is opened in the user's browser.
    """
    log = root / "mlruns" / "server.log"
    make_folder(log.parent)

    with open(log, "w", encoding="utf-8", opener=open_private) as output:
        command = server_command(host, port)
        variables = server_environment(store.uri, store.artifacts or "")
        pipes: Any = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        }
        # In a separate process group: Ctrl-C reaches only memeval, which then stops the server.
        process = subprocess.Popen(command, **pipes, process_group=0, env=variables)
        started.adopt(process.pid)
        writer = threading.Thread(
            target=write_log, args=(process.stdout, output), name="memeval-ui-log", daemon=True
        )
        writer.start()

        try:
            shown = f"[{host}]" if ":" in host else host
            page = f"http://{shown}:{port}"
            wait_for(page, process, log)
            show_page(page, opens=opens)
            code = process.wait()
            raise WorldError(f"MLflow's server stopped with status {code}; see its log: {log}")
        except KeyboardInterrupt:
            print("\nMLflow's page is closed.")
            return 0
        except requests.RequestException as error:
            raise WorldError(f"MLflow's server does not answer; see its log: {log}") from error
        finally:
            end(process)
            writer.join(5)


def show_page(page: str, *, opens: bool) -> None:
    """Prints the URLs of the page and its tables, and opens the latest one in the browser."""
    print(f"MLflow's page:  {page}   (Ctrl-C to stop)")
    tables = experiments(page)
    for name, url in tables:
        print(f"  {name:14}  {url}")

    print(
        "To compare runs: tick them in the table and press Compare. Charts of all runs: "
        f"the URL of a table, followed by &{CHARTS}.",
        flush=True,
    )
    graphical = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    if opens and sys.stdout.isatty() and graphical:
        webbrowser.open(tables[0][1] if tables else page)


def check_free(host: str, port: int) -> None:
    """Raises `UserError` if a port is taken, before the server would fail with a traceback."""
    check_number("--port", port, {"least": 1, "most": 65_535})
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.create_server((host, port), family=family):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        hint = f"use a free port of this machine:  python -m memeval ui --port {port + 1}"
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            hint = "leave --host out, or name an address of this machine"

        raise UserError(f"can't listen on {host}:{port}: {reason}", hint) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to listen on.

    All addresses that a host name resolves to must be loopback.
    """
    try:
        known = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False

    addresses = [str(entry[4][0]).partition("%")[0] for entry in known]
    return bool(host) and all(ipaddress.ip_address(address).is_loopback for address in addresses)


def server_command(host: str, port: int) -> list[str]:
    """MLflow's server as a command line; one worker suffices, in a third of the memory of four."""
    listening = ["--host", host, "--port", str(port)]
    return [sys.executable, "-m", "mlflow", "server", *listening, "--workers", "1"]


def server_environment(uri: str, artifacts: str) -> dict[str, str]:
    """The server's environment.

    The store's URI may contain a password, which every user of the machine could read on a command
    line.
    """
    return {
        **os.environ,
        "MLFLOW_BACKEND_STORE_URI": uri,
        "MLFLOW_DEFAULT_ARTIFACT_ROOT": artifacts,
    }


def write_log(output: IO[bytes], log: IO[str]) -> None:
    """Copies the server's output to the log, by line and without secrets, until either ends."""
    with output, suppress(ValueError, OSError):
        for line in output:
            log.write(redacted(line.decode("utf-8", "replace")))
            log.flush()


def wait_for(page: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until the server answers. Raises WorldError if it ends, or takes too long."""
    deadline = time.monotonic() + STARTING_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise WorldError(
                f"MLflow's server did not start (status {process.returncode}); see its log: {log}"
            )

        with suppress(requests.RequestException), local_session() as session:
            if session.get(f"{page}/health", timeout=2).ok:
                return

        time.sleep(0.2)

    raise WorldError(
        f"MLflow's server did not answer within {STARTING_S:.0f} s; see its log: {log}"
    )


def local_session() -> requests.Session:
    """A session that uses no proxy of the environment: the server is on this machine."""
    session = requests.Session()
    session.trust_env = False
    return session


def ask(url: str, content: dict[str, Any]) -> Any:
    """The reply of MLflow's server, from JSON. Raises `requests.RequestException`."""
    with local_session() as session:
        return session.post(url, json=content, timeout=30).json()


def experiments(page: str) -> list[tuple[str, str]]:
    """The name of each experiment, first that of the latest run, and the URL of its table with
    columns that fit.
    """
    api = f"{page}/api/2.0/mlflow"
    reply = ask(f"{api}/experiments/search", {"max_results": 100})
    rows = [row for row in reply.get("experiments", []) if row["name"] != "Default"]
    newest: Any = {
        "experiment_ids": [row["experiment_id"] for row in rows],
        "order_by": ["attributes.start_time DESC"],
        "max_results": 1,
    }
    runs = ask(f"{api}/runs/search", newest).get("runs", [])
    latest = runs[0]["info"]["experiment_id"] if runs else None
    # MLflow sorts experiments by their creation.
    rows.sort(key=lambda row: row["experiment_id"] != latest)
    table = f"runs?{WORKFLOW}&viewStateShareKey={VIEW}"

    return [
        (one_line(row["name"], 60), f"{page}/#/experiments/{row['experiment_id']}/{table}")
        for row in rows
    ]


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the server and the workers it started: they are one process group."""
    with suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(10)

    started.end(process.pid)
    process.wait(10)
