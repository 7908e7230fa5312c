"""A second, small implementation of the decisive figures: rows in, figures out.

It shares no code with the implementation that it checks, and imports nothing from memeval. Its only
specification is docs/statistics.md.
"""
