"""Doubles of external services that memeval calls in the tests, on loopback."""
