"""Embedders: the contract, the offline default, the OpenAI-compatible client, the embedding cache."""
