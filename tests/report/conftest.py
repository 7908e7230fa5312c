"""Exists only so that pytest adds this folder to `sys.path` and tests can import `sample_runs`."""
