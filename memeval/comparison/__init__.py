"""Finished runs against each other: found, paired question by question, tested, put in words.

Runs that differ in more than the compared setting are never compared silently: see `protocol`.
"""
