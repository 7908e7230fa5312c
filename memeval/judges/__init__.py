"""Judges decide whether an answer is right."""
