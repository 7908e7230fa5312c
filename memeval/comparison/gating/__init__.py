"""Compares a run with a baseline committed with the code: does this change make it worse?"""
