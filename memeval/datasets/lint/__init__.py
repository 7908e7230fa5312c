"""Checks a finished run for problems that make its figures look better than they are."""
