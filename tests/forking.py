"""Runs the real command line in a separate process.

The process is forked from one that has already imported memeval, because the imports take longer
than most runs of the tests. It has its own home, environment, working folder and outputs. At its
end it waits for its threads and runs the exit handlers, but skips the teardown of modules. Tests
that send signals or inspect a process start it with `subprocess` instead.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PRELOADED = """
memeval.cli.main memeval.cli.run memeval.runs.cell memeval.cli.evaluate memeval.cli.prepare
memeval.runs.compose.config memeval.runs.compose.sweep memeval.cli.data
memeval.runs.compose.errors memeval.runs.launch.launcher memeval.runs.batch
memeval.runs.publish.publishing memeval.cli.comparison memeval.runs.display.sweep
memeval.config.checks memeval.config.validation memeval.config.resolve
memeval.pipeline.execute.prepare
memeval.pipeline.execute.imported memeval.runs.compute.workers memeval.runs.schedule
memeval.report.comparison memeval.report.confusion memeval.report.stamp memeval.comparison
memeval.comparison.files memeval.comparison.tables memeval.report.page memeval.llm.extractive
memeval.llm.openai memeval.retrieval.embedding.openai memeval.retrieval.embedding.tfidf
memeval.retrieval.bm25 memeval.retrieval.dense memeval.retrieval.rechunking
memeval.systems.retrieval.bm25 memeval.systems.retrieval.rag memeval.judges.lexical
memeval.datasets.locomo.adapter memeval.tracking.payload memeval.tracking.known hydra hydra.main
hydra._internal.core_plugins hydra._internal.hydra hydra._internal.config_loader_impl
hydra.grammar.gen.OverrideLexer hydra.core.override_parser.overrides_parser numpy openai
rich.table rich.progress rich.live jinja2 memeval.pipeline.measure.objective memeval.metrics.refusal
memeval.comparison.page memeval.report.plots.run memeval.report.plots.differences
memeval.cli.plan memeval.cli.plan_text memeval.runs.forecast.estimate memeval.judges.model
memeval.systems.retrieval.dense memeval.systems.chat.native memeval.systems.cogcanvas.system
memeval.retrieval.rerank_lexical antlr4.LL1Analyzer encodings.utf_8_sig encodings.idna
multiprocessing.context multiprocessing.reduction networkx numpy.ma omegaconf._impl pygments
rank_bm25 _strptime genai_prices memeval.runs.launch.application memeval.report.disclosure
memeval.report.plots.sweep memeval.report.plots.depth
memeval.report.markdown
""".split()


NO_PLOTS = {"MEMEVAL_PLOTS": "false"}
"""Plots and the process that draws them take longer than most runs of the tests."""


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def run_command_line(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    timeout: float = 1200.0,
    constants: Mapping[str, float] | None = None,
) -> Done:
    """Runs `python -W error -m memeval ARGUMENTS`. Raises `subprocess.TimeoutExpired`.

    A test that looks at plots sets `MEMEVAL_PLOTS` or `plots=true`. `constants` sets constants of
    modules in that process, by dotted name.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        request = {
            "arguments": list(arguments),
            "env": {**NO_PLOTS, **env},
            "cwd": str(cwd or Path.cwd()),
            "out": str(out),
            "err": str(err),
            "timeout": timeout,
            "constants": dict(constants or {}),
        }
        status = _parent().ask(request)
        if status is None:
            raise subprocess.TimeoutExpired(
                list(arguments), timeout, out.read_bytes(), err.read_bytes()
            )
        return Done(status, *(path.read_text(encoding="utf-8") for path in (out, err)))


class _Parent:
    """The process that all others are forked from, as seen by a test."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._end)

    def ask(self, request: Mapping[str, Any]) -> int | None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that commands are forked from is gone"
        status: int | None = json.loads(answer)
        return status

    def _end(self) -> None:
        self._process.terminate()
        # Waits for the process and closes the pipes.
        self._process.communicate()


_parents: dict[int, _Parent] = {}


def _parent() -> _Parent:
    if os.getpid() not in _parents:
        _parents[os.getpid()] = _Parent()
    return _parents[os.getpid()]


def serve() -> None:
    """Forks a process per request. Returns in the forked process, which then runs the command."""
    import importlib

    from memeval.process.environment import set_environment

    set_environment()
    # Objects created here are kept: a collection would find no garbage.
    gc.disable()
    for name in PRELOADED:
        importlib.import_module(name)

    fill_caches()

    # Without this, the garbage collector of each process would copy the pages of all these modules.
    gc.collect()
    gc.freeze()
    gc.enable()

    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return become(request)
        sys.stdout.write(json.dumps(wait(pid, request["timeout"])) + "\n")
        sys.stdout.flush()
    sys.exit()


def fill_caches() -> None:
    """Reads what depends only on the code and what every command would read again: options and
    their classes, Hydra's plug-ins and grammar, the schema, digests of code, templates, the price
    table.
    """
    from genai_prices import Usage, calc_price
    from hydra.core.plugins import Plugins

    from memeval.config.names import known_names
    from memeval.config.options import built_in_classes
    from memeval.pipeline.open.opening import open_cell
    from memeval.pipeline.open.versions import git_state, versions
    from memeval.report.page.write import FILES, load_template
    from memeval.report.stamp import report_code
    from memeval.runs.compose.config import compose_config

    Plugins.instance()
    known_names()
    for group in ("system", "dataset", "judge", "llm", "embedder"):
        built_in_classes(group)

    for words in (["system=bm25"], ["system=rag", "top_k=3", "dataset.limit_questions=3"]):
        open_cell(compose_config([*words, "dataset=demo", "tracking=none"]), "")

    # With a model behind an endpoint, more options are composed and calls have a price.
    at_endpoint = ("llm=openai", "llm.model=gpt-4o-mini", "llm.base_url=http://127.0.0.1:1/v1")
    compose_config([*at_endpoint, "judge=llm", "dataset=demo", "tracking=none"])
    calc_price(Usage(input_tokens=1, output_tokens=1), model_ref="gpt-4o-mini")

    for template in FILES.glob("*.j2"):
        load_template().environment.get_template(template.name)
    report_code()
    git_state()
    versions()


def wait(pid: int, timeout: float) -> int | None:
    """The exit status of a process, negative for a signal; None if it timed out and was killed."""
    until = time.monotonic() + timeout
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def become(request: Mapping[str, Any]) -> None:
    """Turns this process into the requested one: its environment, folder, path and outputs."""
    for number, name in ((0, os.devnull), (1, request["out"]), (2, request["err"])):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115

    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    added = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = [request["cwd"], *added, *sys.path[1:]]
    sys.argv = ["memeval", *request["arguments"]]

    for name, value in request["constants"].items():
        module, _, constant = name.rpartition(".")
        assert hasattr(sys.modules[module], constant), name
        setattr(sys.modules[module], constant, value)


def leave(status: int) -> None:
    """Ends this process as the interpreter would, except for the teardown of modules, which copies
    their pages and takes longer than some commands.
    """
    threading._shutdown()
    atexit._run_exitfuncs()

    # Unclosed files and sockets still cause warnings.
    gc.collect()

    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
    from memeval.__main__ import main

    try:
        ended = main()
    except SystemExit as error:
        if not isinstance(error.code, int):
            raise
        ended = error.code
    leave(ended)
