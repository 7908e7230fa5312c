"""A memory's life: generated cases in which facts change, go and must stay apart."""
