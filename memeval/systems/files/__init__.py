"""The conversation as text files, which a model reads with tools."""
