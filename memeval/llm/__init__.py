"""Language models: the contract, the offline reader, the OpenAI-compatible client, the response
cache and prices.
"""
