"""The few modules of NLTK that the metrics rest on, loaded without NLTK's package initialiser.

`import nltk.stem.porter` first runs `nltk/__init__.py`, which pulls in pandas, scikit-learn and scipy.stats: 4.6 s, against 0.1 s for the
modules below, which are plain Python and need none of that.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import ModuleType
from typing import Any

PACKAGES = ("nltk", "nltk.stem", "nltk.tokenize")
_loading = Lock()


@cache
def part(name: str) -> Any:
    """A module of NLTK by its full name, such as `nltk.stem.porter`.

    Its parent packages are empty stand-ins while it loads, and are gone afterwards: a later `import nltk` gets the whole package.
    Where the whole package is there already, it is used.
    """
    with _loading:
        if "nltk" in sys.modules:
            return importlib.import_module(name)
        for package in PACKAGES:
            sys.modules[package] = _stand_in(package)
        try:
            return importlib.import_module(name)
        finally:
            for loaded in [module for module in sys.modules if module.partition(".")[0] == "nltk"]:
                del sys.modules[loaded]


def _stand_in(package: str) -> ModuleType:
    spec = find_spec("nltk") if package == "nltk" else None
    root = Path(next(iter(spec.submodule_search_locations or ()))) if spec else Path(sys.modules["nltk"].__path__[0])
    module = ModuleType(package)
    module.__path__ = [str(root.joinpath(*package.split(".")[1:]))]
    return module
