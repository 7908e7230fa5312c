"""The tables of the store."""

from __future__ import annotations

VERSION = 1

TABLES = (
    "CREATE TABLE IF NOT EXISTS memeval_store (version integer PRIMARY KEY)",
    f"INSERT INTO memeval_store SELECT {VERSION} WHERE NOT EXISTS (SELECT 1 FROM memeval_store)",
    # `number` counts the lines of a file: a line that is sent twice is stored once.
    "CREATE TABLE IF NOT EXISTS memeval_rows (name text NOT NULL, number bigint NOT NULL,"
    " line bytea NOT NULL, PRIMARY KEY (name, number))",
    "CREATE TABLE IF NOT EXISTS memeval_texts (name text NOT NULL, reference text NOT NULL,"
    " line bytea NOT NULL, PRIMARY KEY (name, reference))",
    "CREATE TABLE IF NOT EXISTS memeval_entries (cache text NOT NULL, key text NOT NULL,"
    " value bytea NOT NULL, origin text NOT NULL, crc bigint NOT NULL, tokens bigint,"
    " PRIMARY KEY (cache, key))",
    # What a process holds ends with its lease.
    "CREATE TABLE IF NOT EXISTS memeval_holders (holder text PRIMARY KEY,"
    " expires timestamptz NOT NULL)",
    "CREATE TABLE IF NOT EXISTS memeval_locks (name text NOT NULL, number bigint NOT NULL,"
    " holder text NOT NULL, PRIMARY KEY (name, number))",
    # What was held by processes that died long ago. Younger ones may only have been stopped.
    "DELETE FROM memeval_holders WHERE expires < now() - interval '1 hour'",
    "DELETE FROM memeval_locks l WHERE NOT EXISTS"
    " (SELECT 1 FROM memeval_holders h WHERE h.holder = l.holder)",
)
