"""How certain a figure is, and whether two figures differ. Pure functions on plain numbers.

Each function names its formula and its source. docs/statistics.md explains them to a reader who is
not a statistician.
"""
