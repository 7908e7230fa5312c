"""Processes and their remains: children that end with memeval, private files, leftovers."""
