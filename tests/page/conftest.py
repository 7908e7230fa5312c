"""Empty: its presence makes pytest put this folder on the path, so that `sample_pages` is found."""
