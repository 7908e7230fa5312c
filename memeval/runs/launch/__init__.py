"""Computes runs: in this process, in others beside it, or on a Ray cluster."""
