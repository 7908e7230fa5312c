"""Published figures as data, each with the protocol behind it, and whether a run is comparable with
them.
"""
