"""Output about a run for people: `report.md`, plots, and tables that compare cells.

Nothing is measured here.
"""
