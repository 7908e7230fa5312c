"""memeval measures the memory of language-model agents."""

__version__ = "0.1.0"
