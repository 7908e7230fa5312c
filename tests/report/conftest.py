"""Nothing to share but the folder: pytest puts it on the path, and `sample_runs` is found."""
