"""A finished run in the files of other tools."""
