"""Compares a run with a baseline that is committed with the code: does this change make it
worse?
"""
