"""Plots: each is described once, as a `Plot`, and drawn into files by `draw` or on the page."""
