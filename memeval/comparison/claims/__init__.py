"""Published figures as data, each with the protocol behind it, and whether a run may be compared
with them.
"""
