"""Compares finished runs: finds them, pairs their questions, tests the differences and describes
them.

Runs that differ in more than the compared setting are never compared silently: see `protocol`.
"""
