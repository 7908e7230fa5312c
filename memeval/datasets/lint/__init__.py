"""Checks a finished run for anything that makes its figures look better than they are."""
