"""Published figures as data, each with the protocol behind it, and whether a run may be compared
with them.
"""

from memeval.claims.matching import Aspect, Match, Sameness, match_claim
from memeval.claims.reading import load_claims
from memeval.claims.records import Claim, Figure, Protocol

__all__ = [
    "Aspect",
    "Claim",
    "Figure",
    "Match",
    "Protocol",
    "Sameness",
    "load_claims",
    "match_claim",
]
