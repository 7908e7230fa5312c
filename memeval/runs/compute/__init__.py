"""Processes that compute runs, on this machine or on a Ray cluster."""
