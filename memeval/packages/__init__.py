"""Packages: finished runs as one file that can be handed over, checked by anyone, and compared with
others.
"""

from memeval.packages.form import PackageManifest, is_withheld, withheld
from memeval.packages.read import Package, open_package, read_manifest
from memeval.packages.write import Packed, pack

__all__ = [
    "Package",
    "PackageManifest",
    "Packed",
    "is_withheld",
    "open_package",
    "pack",
    "read_manifest",
    "withheld",
]
