"""Nothing to share but the folder: pytest puts it on the path, and `sample_pages` is found."""
