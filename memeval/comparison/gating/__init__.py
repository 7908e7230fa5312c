"""A run against a baseline that is committed beside the code: does this change make it worse?"""
