"""Compares what is stored of a run with its digests, and computes its figures again."""
