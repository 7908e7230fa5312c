"""Published figures as data, each with the protocol behind it, and whether a run may be compared
with them.
"""

from memeval.comparison.claims.matching import Aspect, Match, Sameness, match_claim
from memeval.comparison.claims.reading import load_claims
from memeval.comparison.claims.records import Claim, Dispute, Figure, Protocol

__all__ = [
    "Aspect",
    "Claim",
    "Dispute",
    "Figure",
    "Match",
    "Protocol",
    "Sameness",
    "load_claims",
    "match_claim",
]
