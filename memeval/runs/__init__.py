"""Runs and sweeps: composed, planned, scheduled, computed and published."""
