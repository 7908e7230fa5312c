"""Every way a secret can get in, against every place where text can get out: no secret is found
outside the process.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from asyncio import StreamWriter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import pytest
from command_line import OF_THE_USER
from doubles.loopback import LoopbackServer, Request, send

from memeval.runs.forecast.made_up import made_up_vector

EXAMPLE = Path(__file__).parent / "secrets_example"
KEY = "sk-CANARY-7f3a9b2c4d5e6f70-Zx"
PLAIN = "correcthorsebatterystaple"
"""A password that looks like words."""
ODD = 'Qw"er/ty+CANARY%41\\ui=op'
"""A key with characters that JSON and URLs escape."""
SMALL = ("dataset.limit_cases=1", "dataset.limit_questions=2")
GATEWAY = ("llm=openai", "llm.base_url={gateway}/v1", "llm.patience_s=0")


class Gateway(LoopbackServer):
    """An endpoint that echoes the key it received."""

    def __init__(self) -> None:
        super().__init__()
        self.way = "sound"

    async def respond(self, request: Request, writer: StreamWriter) -> bool:
        key = (
            request.headers.get("api-key")
            or request.headers.get("authorization", "").partition(" ")[2]
        )
        errors = {
            "401": (401, f"Incorrect API key provided: {key}. Find yours at http://u:{key}@h"),
            "embed401": (401, f"Incorrect API key provided: {key}."),
            "500": (500, f"upstream said: Authorization: Bearer {key}"),
            "long": (400, "x" * 290 + key + "y" * 300),
        }
        if request.path.endswith("/embeddings") and not self.way.startswith("embed"):
            return await self._embeddings(request, writer)
        if self.way in errors:
            status, message = errors[self.way]
            return await send(writer, status, json.dumps({"error": {"message": message}}).encode())
        if self.way == "page":
            return await send(
                writer, 200, f"<html>{key}</html>".encode(), {"Content-Type": "text/html"}
            )
        if self.way == "redirect":
            return await send(
                writer, 307, b"{}", {"Location": f"http://u:{key}@127.0.0.1:9/v1?key={key}"}
            )
        return await self._reply(
            writer, key, finish=f"stop {key}" if self.way == "finish" else "stop"
        )

    async def _reply(self, writer: StreamWriter, key: str, finish: str) -> bool:
        ways: Mapping[str, Callable[[str], str]] = {
            "sound": lambda _: "a kayak",
            "finish": lambda _: "",
            "content": lambda key: f"yes {key}",
            "quoted": lambda key: f"yes {quote(key, safe='')}",
            "base64": lambda key: f"yes {base64.b64encode(b'user:' + key.encode()).decode()}",
            "hex": lambda key: f"yes {key.encode().hex()}",
            "json": lambda key: f"yes {json.dumps({'key': key})}",
            "cut": lambda key: f"yes {key[:-4]}",
        }
        message = {"role": "assistant", "content": ways.get(self.way, ways["content"])(key)}
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        reply = {
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": usage,
        }
        return await send(writer, 200, json.dumps(reply).encode())

    async def _embeddings(self, request: Request, writer: StreamWriter) -> bool:
        texts = request.json()["input"]
        rows = [
            {"index": index, "embedding": made_up_vector(text, 16)}
            for index, text in enumerate(texts)
        ]
        return await send(writer, 200, json.dumps({"data": rows}).encode())


@dataclass(frozen=True)
class Scenario:
    name: str
    words: tuple[str, ...]
    secret: str = KEY
    way: str = "sound"
    """Behaviour of the gateway."""
    environment: Mapping[str, str] = field(default_factory=dict)
    status: tuple[int, ...] = (2,)
    file: str = ""
    """Content of an `llm` option in the user's own config folder."""


def refused(
    name: str, *words: str, secret: str = KEY, file: str = "", **environment: str
) -> Scenario:
    return Scenario(name, words, secret, environment=environment, file=file)


def run(name: str, way: str, *words: str, secret: str = KEY, **environment: str) -> Scenario:
    chosen = words or GATEWAY
    given = environment or {"OPENAI_API_KEY": secret}
    # A permanent refusal of the first call ends the run, because the user has to fix it.
    is_refused = way in ("401", "embed401", "redirect")
    status = (2,) if is_refused else (0, 1)
    return Scenario(name, (*chosen, *SMALL), secret, way, given, status)


def leaky(name: str, way: str, *words: str) -> Scenario:
    chosen = (
        "--config-dir",
        str(EXAMPLE / "conf"),
        "system=leaky",
        f"system.way={way}",
        *words,
        *SMALL,
    )
    return Scenario(
        name,
        chosen,
        KEY,
        environment={"LEAKY_TOKEN": KEY, "PYTHONPATH": str(EXAMPLE)},
        status=(0, 1, 130),
    )


NONE = "tracking=none"
SCENARIOS = [
    # a secret in the place of its variable's name
    refused("llm.api_key_env", "llm=openai", f"llm.api_key_env={KEY}", *SMALL),
    refused("llm.api_key_env of words", "llm=openai", f"llm.api_key_env={PLAIN}", secret=PLAIN),
    refused(
        "llm.api_key_env in a sweep", "-m", "llm=openai", f"llm.api_key_env={KEY}", "top_k=1,2"
    ),
    refused(
        "llm.api_key_env of several", "-m", "llm=openai", f"llm.api_key_env=OPENAI_API_KEY,{KEY}"
    ),
    refused(
        "llm.api_key_env with .hydra",
        "llm=openai",
        f"llm.api_key_env={KEY}",
        "hydra.output_subdir=.hydra",
    ),
    refused(
        "llm.api_key_env, interpolated",
        "-m",
        "llm=openai",
        "llm.api_key_env=${oc.env:OPENAI_API_KEY}",
        OPENAI_API_KEY=PLAIN,
        secret=PLAIN,
    ),
    refused("llm.api_key_env in prepare", "prepare", "llm=openai", f"llm.api_key_env={KEY}"),
    refused("embedder.api_key_env", "embedder=openai", f"embedder.api_key_env={KEY}"),
    refused(
        "reranker.api_key_env", "reranker=endpoint", f"reranker.api_key_env={PLAIN}", secret=PLAIN
    ),
    refused("system.token_env", "system=letta", f"system.token_env={KEY}"),
    refused(
        "system.api_key_env",
        "system=mem0",
        "system.mode=cloud",
        f"system.api_key_env={PLAIN}",
        secret=PLAIN,
    ),
    refused("llm.headers", "llm=openai", f"llm.headers={{api-key: {PLAIN}}}", secret=PLAIN),
    refused("llm.headers, no mapping", "llm=openai", f"llm.headers={PLAIN}", secret=PLAIN),
    refused("embedder.headers", "-m", "embedder=openai", f"embedder.headers={{api-key: {KEY}}}"),
    refused("an unknown setting", "-m", "llm=openai", f"+llm.api_key={PLAIN}", secret=PLAIN),
    refused("llm.model", "-m", "llm=openai", f"llm.model={KEY}"),
    refused("a word alone", KEY),
    # URLs
    refused(
        "llm.base_url, user",
        "llm=openai",
        f"llm.base_url=http://u:{PLAIN}@127.0.0.1:9/v1",
        secret=PLAIN,
    ),
    refused(
        "llm.base_url, query",
        "-m",
        "llm=openai",
        f"llm.base_url=http://127.0.0.1:9/v1?api-key={PLAIN}",
        secret=PLAIN,
    ),
    refused(
        "llm.base_url, fragment",
        "llm=openai",
        f"llm.base_url=http://127.0.0.1:9/v1#{PLAIN}",
        secret=PLAIN,
    ),
    refused(
        "llm.base_url, a password with a slash",
        "llm=openai",
        f"llm.base_url=http://u:a/{PLAIN}@127.0.0.1:9/v1",
        secret=PLAIN,
    ),
    refused(
        "embedder.base_url",
        "-m",
        "embedder=openai",
        f"embedder.base_url=http://{PLAIN}@127.0.0.1:9/v1",
        secret=PLAIN,
    ),
    refused(
        "OPENAI_BASE_URL, user",
        "llm=openai",
        OPENAI_BASE_URL=f"http://u:{PLAIN}@127.0.0.1:9/v1",
        OPENAI_API_KEY=KEY,
        secret=PLAIN,
    ),
    refused(
        "OPENAI_BASE_URL, query",
        "-m",
        "llm=openai",
        OPENAI_BASE_URL=f"http://127.0.0.1:9/v1?key={PLAIN}",
        secret=PLAIN,
    ),
    refused(
        "reranker.base_url",
        "-m",
        "system=rag",
        "reranker=endpoint",
        f"reranker.base_url=http://127.0.0.1:9/v1?key={PLAIN}",
        secret=PLAIN,
    ),
    refused(
        "system.base_url",
        "system=letta",
        f"system.base_url=http://u:{PLAIN}@127.0.0.1:9",
        secret=PLAIN,
    ),
    refused(
        "LETTA_BASE_URL",
        "system=letta",
        *SMALL,
        NONE,
        LETTA_BASE_URL=f"http://u:{PLAIN}@127.0.0.1:9",
        secret=PLAIN,
    ),
    refused(
        "system.host",
        "system=mem0",
        "system.mode=cloud",
        f"system.host=http://u:{PLAIN}@127.0.0.1:9",
        secret=PLAIN,
    ),
    refused(
        "a file of one's own",
        "-m",
        "llm=mine",
        "top_k=1,2",
        file=f"name: openai\nmodel: m\nbase_url: http://u:{PLAIN}@h/v1\n",
        secret=PLAIN,
    ),
    refused(
        "a key in a file of one's own",
        "-m",
        "llm=mine",
        "top_k=1,2",
        file=f"name: openai\nmodel: m\napi_key_env: {KEY}\n",
    ),
    # tracking
    refused(
        "tracking.uri, database",
        f"tracking.uri=postgresql://u:{PLAIN}@127.0.0.1:1/db",
        *SMALL,
        secret=PLAIN,
    ),
    refused(
        "tracking.uri, in a sweep",
        "-m",
        f"tracking.uri=mysql+pymysql://u:{PLAIN}@127.0.0.1:1/db",
        "top_k=1,2",
        secret=PLAIN,
    ),
    refused(
        "tracking.uri, server", f"tracking.uri=http://u:{PLAIN}@127.0.0.1:1", *SMALL, secret=PLAIN
    ),
    refused(
        "tracking.uri, query",
        f"tracking.uri=postgresql://127.0.0.1:1/db?password={PLAIN}",
        *SMALL,
        secret=PLAIN,
    ),
    refused(
        "tracking.uri in evaluate",
        "evaluate",
        "{answers}",
        f"tracking.uri=postgresql://u:{PLAIN}@127.0.0.1:1/db",
        secret=PLAIN,
    ),
    refused("ui --uri", "ui", "--uri", f"postgresql://u:{PLAIN}@127.0.0.1:1/db", secret=PLAIN),
    Scenario(
        "MLFLOW_TRACKING_URI, database",
        SMALL,
        PLAIN,
        environment={"MLFLOW_TRACKING_URI": f"postgresql://u:{PLAIN}@127.0.0.1:1/db"},
        status=(0,),
    ),
    Scenario(
        "MLFLOW_TRACKING_URI, server",
        SMALL,
        PLAIN,
        environment={"MLFLOW_TRACKING_URI": f"http://u:{PLAIN}@127.0.0.1:9"},
        status=(0,),
    ),
    Scenario(
        "ui on a database",
        ("ui", "--port", "5987"),
        PLAIN,
        environment={"MLFLOW_TRACKING_URI": f"postgresql://u:{PLAIN}@127.0.0.1:1/db"},
        status=(1, 2),
    ),
    # gateways that echo the key
    run("401", "401"),
    run("401, logged", "401", *GATEWAY, "tracking=mlflow"),
    run("401 of the judge", "401", "judge=llm", *GATEWAY, NONE),
    run(
        "401 of the embedder",
        "embed401",
        "system=rag",
        "embedder=openai",
        "embedder.base_url={gateway}/v1",
        "embedder.max_retries=0",
        NONE,
    ),
    run(
        "401 of the reranker",
        "401",
        "system=rag",
        "reranker=endpoint",
        "reranker.base_url={gateway}/v1",
        "reranker.model=m",
        NONE,
        RERANK_API_KEY=KEY,
    ),
    run("500", "500", *GATEWAY, NONE),
    run("a page", "page", *GATEWAY, NONE),
    run("a redirect", "redirect", *GATEWAY, NONE),
    run("an error that is cut within the key", "long", *GATEWAY, NONE),
    run("finish_reason", "finish", *GATEWAY, NONE),
    run("a reply, logged", "content", *GATEWAY, "judge=llm"),
    run("a reply, in a sweep", "content", "-m", "top_k=1,2", *GATEWAY, NONE),
    run("a reply at ingest", "content", "system=summarization", *GATEWAY, NONE),
    run("a reply in percent signs", "quoted", *GATEWAY, NONE, secret=ODD),
    run("a reply in JSON", "json", *GATEWAY, NONE, secret=ODD),
    run("a reply in base64", "base64", *GATEWAY, NONE),
    run("a reply in hexadecimal", "hex", *GATEWAY, NONE),
    run("a reply with most of the key", "cut", *GATEWAY, NONE),
    run(
        "a header, 401",
        "401",
        *GATEWAY,
        "llm.headers={api-key: GATEWAY_WORD}",
        NONE,
        GATEWAY_WORD=PLAIN,
        secret=PLAIN,
    ),
    run(
        "a header, in a reply",
        "content",
        *GATEWAY,
        "llm.headers={api-key: GATEWAY_WORD}",
        GATEWAY_WORD=PLAIN,
        secret=PLAIN,
    ),
    # a custom system
    leaky("an error", "error"),
    leaky("an error at ingest", "ingest", NONE),
    leaky("an answer", "answer", NONE),
    leaky("notes", "notes"),
    leaky("what is printed", "print", NONE),
    leaky("a warning", "warning", NONE),
    leaky("a log", "log", NONE, "hydra/job_logging=default"),
    leaky("a log in a sweep", "log", NONE, "-m", "top_k=1,2", "hydra/job_logging=default"),
]


def forms(secret: str) -> set[bytes]:
    """What must not be found anywhere: the secret as it is, and in other encodings.

    The secret without its last four characters counts too.
    """
    raw = secret.encode()
    encoded = base64.b64encode(b"user:" + raw).decode()
    written = {
        secret,
        secret[:-4],
        quote(secret, safe=""),
        json.dumps(secret)[1:-1],
        raw.hex(),
        encoded[8:-4],
    }
    return {form.encode() for form in written}


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with Gateway() as served:
        yield served


@pytest.fixture(scope="module")
def tally() -> Iterator[list[bool]]:
    held: list[bool] = []
    yield held
    sys.__stdout__.write(f"\nsecrets: {sum(held)} of {len(held)} scenarios held\n")  # type: ignore[union-attr]


@dataclass
class Watched:
    """Result of a command: its status and output, and the command lines of the processes that it
    started.
    """

    status: int
    said: bytes
    processes: bytes


def watched(home: Path, words: list[str], environment: Mapping[str, str]) -> Watched:
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in (*OF_THE_USER, "LETTA_BASE_URL")
    }
    hasty = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1"}
    place = {**inherited, **hasty, "MEMEVAL_HOME": str(home), "COLUMNS": "60", **environment}
    command = [sys.executable, "-m", "memeval", *words]
    lines: set[bytes] = set()
    with subprocess.Popen(
        command, cwd=home, env=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(process.pid, bytes(home), over, lines))
        watcher.start()
        output, _ = process.communicate(timeout=120)
        over.set()
        watcher.join()
    return Watched(process.returncode, output, b"\n".join(lines))


def _watch(pid: int, home: bytes, over: threading.Event, lines: set[bytes]) -> None:
    """Collects the command lines of a home's processes, except the one that the test started."""
    while not over.wait(0.05):
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            if path.parent.name == str(pid):
                continue
            try:
                if home in (path.parent / "environ").read_bytes():
                    lines.add(path.read_bytes())
            except OSError:
                continue


@pytest.mark.sampled(kept=2)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_secret_leaves_the_process(
    scenario: Scenario,
    gateway: Gateway,
    tally: list[bool],
    tmp_path: Path,
    empty_database: Path,
) -> None:
    tally.append(False)
    gateway.way = scenario.way
    home = tmp_path / "home"
    (home / "mlruns").mkdir(parents=True)
    shutil.copy(empty_database, home / "mlruns" / "mlflow.db")
    answers = tmp_path / "answers.jsonl"
    answers.write_text('{"question_id": "demo-1/q0", "hypothesis": "a"}\n', encoding="utf-8")
    words = [
        word.replace("{gateway}", gateway.address).replace("{answers}", str(answers))
        for word in scenario.words
    ]
    if scenario.file:
        (tmp_path / "conf" / "llm").mkdir(parents=True)
        (tmp_path / "conf" / "llm" / "mine.yaml").write_text(scenario.file, encoding="utf-8")
        words += ["--config-dir", str(tmp_path / "conf")]

    done = watched(home, words, scenario.environment)

    assert done.status in scenario.status, done.said.decode()
    assert b"Traceback" not in done.said or "log" in scenario.name, done.said.decode()
    kept = {"the terminal": done.said, "ps": done.processes}
    kept |= {
        str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()
    }
    found = [
        place
        for place, content in kept.items()
        if any(form in content for form in forms(scenario.secret))
    ]
    assert not found, f"the secret is in {found}"
    tally[-1] = True
