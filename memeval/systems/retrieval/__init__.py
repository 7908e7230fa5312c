"""Systems that index the conversation and rank it for a query."""
