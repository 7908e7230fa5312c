"""A memory behind HTTP. It finds the chunks that share the most words with the question."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

memories = {}  # chunks by their ids, by namespace: one for each case of a run


def words(text):
    return set("".join(c if c.isalnum() else " " for c in text.lower()).split())


def operate(operation, body):
    if operation == "reset":
        memories[body["namespace"]] = {}
        return {}

    chunks = memories[body["namespace"]]
    if operation == "ingest":
        # By id: after a broken connection, a request is repeated.
        chunks.update({chunk["id"]: chunk for chunk in body["chunks"]})
        return {"usage": []}  # no model was called; without it, the tokens are unknown
    if operation == "ready":
        return {"ready": True}
    if operation == "forget":
        meant = [id for id, chunk in chunks.items() if words(body["about"]) <= words(chunk["text"])]
        for id in meant:
            del chunks[id]
        return {"items": len(meant), "usage": []}

    asked = words(body["query"])
    best = sorted(chunks.values(), key=lambda chunk: -len(asked & words(chunk["content"])))
    return {"results": list(map(result, best[: body["top_k"]])), "usage": []}


def result(chunk):
    return {name: chunk[name] for name in ("text", "turn_ids", "time")}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open
    wbufsize = -1  # sends a reply in one piece

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        try:
            status, reply = 200, operate(self.path.strip("/"), body)
        except KeyError as error:
            status, reply = 404, {"error": f"unknown: {error}"}

        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
