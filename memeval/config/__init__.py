"""Configuration: the typed tree, its validation, integer options, paths, identity.

Hydra is imported only here and in `cli`.
"""
