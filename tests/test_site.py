"""The documentation site: every page is in its navigation, every link works on GitHub and on the
site, and nothing is loaded from other hosts.

`make docs` builds the site itself, and fails on the same mistakes.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import FENCED, anchors

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
HOOKS = runpy.run_path(str(DOCS / "mkdocs_hooks.py"))
PAGES = sorted(
    [*DOCS.rglob("*.md"), *(ROOT / path for path in HOOKS["OUTSIDE"] if path.endswith(".md"))]
)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)")


class Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose only Python tag names a function in MkDocs' own environment."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def nav() -> list[Any]:
    """The navigation with its patterns replaced."""
    # The loader is a safe one and creates no Python objects.
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    expanded: list[Any] = HOOKS["expand"](config["nav"], pages)
    return expanded


def test_every_page_is_in_the_navigation_once() -> None:
    named = list(HOOKS["entries_of"](nav()))
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    outside = {address for address in HOOKS["OUTSIDE"].values() if address.endswith(".md")}
    assert sorted(named) == sorted(pages | outside)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_work(path: Path) -> None:
    text = CODE.sub("", FENCED.sub("", path.read_text(encoding="utf-8")))
    broken = []
    for target, anchor in LINK.findall(text):
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(f"{target}#{anchor}")

    assert broken == []


def test_links_between_docs_and_the_checkout_are_rewritten() -> None:
    rewrite = HOOKS["rewrite_links"]
    assert rewrite("[a](docs/gate.md#files)", "SECURITY.md") == "[a](gate.md#files)"
    assert rewrite("[a](../SECURITY.md#x)", "docs/trust.md") == "[a](security.md#x)"
    assert rewrite("[a](../../sweeps/README.md)", "docs/howto/ci.md") == "[a](../shipped_sweeps.md)"
    assert rewrite("[a](https://x.org/a.md)", "SECURITY.md") == "[a](https://x.org/a.md)"
    assert rewrite("```\n[a](docs/gate.md)\n```", "SECURITY.md") == "```\n[a](docs/gate.md)\n```"
    # A link to a page that is not on the site is unchanged, and fails the strict build.
    assert rewrite("[a](memeval/api)", "SECURITY.md") == "[a](memeval/api)"


def test_pattern_in_the_navigation_expands_to_remaining_pages() -> None:
    pages = ["a.md", "data/one.md", "data/two.md"]
    expanded = HOOKS["expand"]([{"A": "a.md"}, {"D": ["data/two.md", "data/*.md"]}], pages)
    assert expanded == [{"A": "a.md"}, {"D": ["data/two.md", "data/one.md"]}]


@pytest.mark.parametrize(
    ("text", "kind", "loaded"),
    [
        ('<script src="https://cdn.org/a.js">', ".html", ["https://cdn.org/a.js"]),
        ('<link rel="stylesheet" href="//cdn.org/a.css">', ".html", ["//cdn.org/a.css"]),
        ("<style>@import '//cdn.org/b.css'</style>", ".html", ["//cdn.org/b.css"]),
        ("a { background: url(https://cdn.org/a.png) }", ".css", ["https://cdn.org/a.png"]),
        ('<a href="https://x.org">x</a><img src="a.png">', ".html", []),
        ("a { background: url(data:image/png;base64,AAAA) }", ".css", []),
    ],
)
def test_resources_from_other_hosts_are_found(text: str, kind: str, loaded: list[str]) -> None:
    assert HOOKS["external_urls"](text, kind) == loaded


@pytest.mark.parametrize(
    "html", ["<p>A table:\n| a | b |\n|---|---|</p>", "<p>A list:\n- one\n- two</p>"]
)
def test_unrendered_markdown_is_found(html: str) -> None:
    assert HOOKS["UNRENDERED"].search(html)
    assert not HOOKS["UNRENDERED"].search("<p>Either - or, a | b.</p>\n<ul>\n<li>- one</li>\n</ul>")
