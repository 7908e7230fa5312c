"""Looks through a finished run for what would make its figures look better than they are."""
