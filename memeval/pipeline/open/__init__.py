"""Opens a cell: from a resolved configuration to its data set, templates, keys and models."""
