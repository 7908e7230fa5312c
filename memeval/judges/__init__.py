"""Judges: who says whether an answer is right. One judge a file."""
