"""A memory's life: generated cases in which facts change, are deleted and must stay separate."""
