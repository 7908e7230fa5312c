"""Dev and test: one side for tuning, the other for reporting.

Whole cases go to one side, because questions of one conversation share its words. The side depends
only on the case's id, so it is the same in every run, on every machine, and in every part of the
data.
"""

from __future__ import annotations

from hashlib import sha256

SIDES = ("dev", "test")
SPLIT_SEED = 5
"""Fixed: a seed that could be set could be set until the result is pleasant. 5 is the first that
gives three of LoCoMo's ten conversations, and three of the demonstration set's ten, to dev.
"""
DEV_SHARE = 0.3


def side_of(case_id: str) -> str:
    """`dev` for about three of ten cases, else `test`."""
    digest = sha256(f"memeval split {SPLIT_SEED} {case_id}".encode()).digest()
    return "dev" if int.from_bytes(digest[:8], "big") < DEV_SHARE * 2**64 else "test"
