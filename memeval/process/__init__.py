"""Processes and what they leave: children that end with memeval, private files, leftovers."""
