"""The conversation as text files, which a model reads by tools."""
