"""LIGHT: three memories, of all that was said, of the latest turns, and of notes."""
