"""Composes configs: of one run, and of all runs of a sweep together."""
