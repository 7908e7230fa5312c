"""The offline reader: `memeval.llm.extractive.model.ExtractiveModel`, also importable from here."""

from memeval.llm.extractive.model import ExtractiveModel

__all__ = ["ExtractiveModel"]
