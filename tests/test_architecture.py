"""Functions named in docs/architecture.md exist, and a class name means one class."""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from functools import reduce
from itertools import chain
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
HOPS = sorted(set(re.findall(r"`(memeval[\w.]*:[\w.]+)`", PAGE.read_text(encoding="utf-8"))))


def test_walkthroughs_are_found() -> None:
    assert len(HOPS) > 40


@pytest.mark.parametrize("hop", HOPS)
def test_named_function_exists(hop: str) -> None:
    module, _, path = hop.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    fields = getattr(owner, "__dataclass_fields__", {})

    assert hasattr(owner, name) or name in fields


def test_no_two_modules_have_a_public_class_of_one_name() -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in (PAGE.parents[1] / "memeval").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.stem)

    assert len(modules) > 500
    assert {name: own for name, own in modules.items() if len(own) > 1} == {}


def test_no_comprehension_and_no_conditional_expression_is_inside_another_one() -> None:
    comprehensions = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    root = PAGE.parents[1]
    nested = []
    for path in chain.from_iterable(
        (root / name).rglob("*.py") for name in ("memeval", "perf", "docs")
    ):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for kind in (comprehensions, ast.IfExp):
                if isinstance(node, kind):
                    inner = [part for part in ast.walk(node) if isinstance(part, kind)]
                    # The first one is the expression itself.
                    nested += [f"{path.name}:{part.lineno}" for part in inner[1:]]

    assert nested == []
