"""Creates a file for `dataset=json` from exports of chats, logs, tables and benchmarks."""
