"""Systems that index what was said and rank it for a query."""
