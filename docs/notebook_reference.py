"""Writes docs/python_api.md from the notebook docs/python_api.ipynb:
`python docs/notebook_reference.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

NOTEBOOK = Path(__file__).with_name("python_api.ipynb")
PAGE = NOTEBOOK.with_suffix(".md")


def reference() -> str:
    """The whole page: the notebook's text, and its code in blocks."""
    parts = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            source = f"```python\n{source}\n```"

        parts.append(source)

    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
