"""Incidents of AIOps systems."""
