"""LIGHT: three memories, of what was said, of what was said last, and of notes."""
