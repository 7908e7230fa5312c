"""Makes a file of `dataset=json` from exports of chats, logs, tables and benchmarks."""
