"""A memory as a program: one JSON object per line in, one out. Searches like memory_server.py."""

import json
import sys

from memory_server import operate

for line in sys.stdin:
    request = json.loads(line)
    try:
        reply = operate(request["op"], request)
    except KeyError as error:
        reply = {"error": f"unknown: {error}"}

    print(json.dumps({"id": request["id"], **reply}), flush=True)
