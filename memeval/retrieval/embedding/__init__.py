"""Embedders: the contract, the offline default and the OpenAI-compatible client."""
