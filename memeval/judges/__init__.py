"""Judges: who says whether an answer is right."""
