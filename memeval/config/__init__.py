"""Configuration: the typed tree, validation, integer options, paths, identity."""
