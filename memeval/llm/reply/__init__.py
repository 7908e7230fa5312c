"""Content of an endpoint's reply, validated on entry: pure functions from JSON to sound values.

A reply without the requested content raises `UnsoundReplyError`; it may be requested again. Other
oddities (a usage that is not a number, thinking, control characters) are repaired by a fixed rule,
and named in `notes`.
"""
