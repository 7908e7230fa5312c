"""A memory program whose first argument selects how it handles a search."""
# ruff: noqa: T201

import json
import os
import subprocess
import sys
import time
from pathlib import Path

fault, mark = sys.argv[1], Path(sys.argv[2])
chunks = []

for line in sys.stdin:
    request = json.loads(line)
    operation = request["op"]
    # A program whose replies are of one type writes its members even if they are empty.
    reply = {"id": request["id"], "usage": [], "error": ""}
    if operation == "ingest":
        chunks += request["chunks"]
        if fault == "dies once":
            reply["usage"] = {"prompt_tokens": 7, "completion_tokens": 0}

    if operation == "search":
        first = not mark.exists()
        mark.touch()
        if fault == "dies" or (fault == "dies once" and first):
            print("Traceback: out of memory", file=sys.stderr, flush=True)
            os._exit(3)
        if fault == "hangs":
            time.sleep(600)
        if fault == "noise":
            print("loading the model ...", flush=True)
            print(json.dumps({"id": -1}), flush=True)
        if fault == "refuses":
            reply["error"] = "no such namespace"
        if fault in ("refuses", "malformed"):
            print("disk \x1b[31mfull", file=sys.stderr, flush=True)
        if fault == "malformed":
            print(json.dumps({**reply, "results": 5}), flush=True)
            continue
        if fault == "forgets the id":
            print(json.dumps({"id": None, "usage": [], "results": []}), flush=True)
            continue
        if fault == "leaves-a-child":
            # The child keeps the pipes of this program open.
            subprocess.Popen(["sleep", "612"])
            os._exit(3)
        if fault == "hangs-with-a-child":
            subprocess.Popen(["sleep", "611"])
            time.sleep(600)
        if fault == "environment":
            reply["results"] = [{"text": json.dumps(dict(os.environ)), "turn_ids": []}]
            print(json.dumps(reply), flush=True)
            continue
        if fault == "closes":
            sys.stdout.close()
            os.close(1)
            time.sleep(600)

        keep = ("text", "turn_ids", "time")
        reply["results"] = [
            {name: one[name] for name in keep} for one in chunks[: request["top_k"]]
        ]

    if operation == "ready":
        reply["ready"] = True

    print(json.dumps(reply), flush=True)
