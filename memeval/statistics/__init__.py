"""Uncertainty of figures and of their differences. Pure functions on plain numbers.

Each function names its formula and its source. docs/statistics.md explains them to a reader who is
not a statistician.
"""
