"""Language models: contract, offline reader, OpenAI-compatible client, cache and prices."""
