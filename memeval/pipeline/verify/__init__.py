"""Holds what is stored of a run against its digests, and makes its figures again."""
