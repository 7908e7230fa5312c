"""Configuration: the typed tree, its validation, integer options, where things lie, identity.

Hydra is imported only here and in `cli`.
"""
