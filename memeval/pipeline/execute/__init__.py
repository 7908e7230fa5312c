"""Executes a cell: builds memories, answers and judges questions, and stores rows on disk."""
