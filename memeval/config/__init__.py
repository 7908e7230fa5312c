"""Configuration: the typed tree, its validation, integer options, where things lie, identity.

Hydra is imported here and in `cli` alone.
"""
