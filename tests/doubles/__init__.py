"""Doubles of foreign services, on loopback: what memeval calls in the tests."""
