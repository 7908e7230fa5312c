"""Works on a cell: memories, answers and verdicts, as rows on disk."""
