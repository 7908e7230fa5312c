"""Shared parts of the data sets of network operations."""
