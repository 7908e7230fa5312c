"""Compares a run's stored files with their digests, and computes its figures again."""
