"""Plots: each is described once, as a `Plot`, and drawn into files (`draw`) or on the page."""
