"""Costs of a plan, before any of it is run."""
