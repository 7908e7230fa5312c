"""Compares finished runs: finds them, pairs their questions, tests and describes the differences.

Runs that differ in more than the compared setting are never compared silently: see `protocol`.
"""
