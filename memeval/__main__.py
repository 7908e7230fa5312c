"""Thin entry: the first word chooses a command, no word means run."""
