"""A second, small implementation of the figures that decide: rows in, figures out.

It shares no code with the one whose figures it checks, and imports nothing of memeval. It is
specified in docs/statistics.md, and nowhere else.
"""
