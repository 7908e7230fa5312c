"""A second, small implementation of the figures that decide: rows in, figures out.

It shares no code with the implementation that it checks, and imports nothing from memeval. It is
specified in docs/statistics.md, and nowhere else.
"""
