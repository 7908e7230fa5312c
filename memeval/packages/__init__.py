"""Packages: finished runs as one file that can be shared, checked by anyone, and compared with
others.
"""

from memeval.packages.form import is_withheld
from memeval.packages.read import open_package

__all__ = ["is_withheld", "open_package"]
