"""Finished runs against each other: found, paired question by question, tested, put in words.

Nothing is compared in silence that differs in more than what is compared: see `protocol`.
"""
