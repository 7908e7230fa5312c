"""What the site needs beside the pages of docs/; MkDocs calls the functions named `on_…`.

- The changelog and its like are pages too, under other addresses (`OUTSIDE`); links are rewritten.
- A pattern in the navigation stands for the pages that it matches.
- A page that would load a font, script, style or picture from elsewhere fails the build, and so
  does a table or a list that is not rendered as one.
"""

from __future__ import annotations

import fnmatch
import logging
import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "sweeps/README.md": "shipped_sweeps.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "data/demo/README.md": "demo_data.md",
    "LICENSE": "LICENSE.txt",
}
"""Address on the site of each file that is outside of docs/."""
FOLDERS = {
    "docs/datasets": "docs/datasets/README.md",
    "docs/howto": "docs/howto/choose_a_judge.md",
    "docs/any_memory": "docs/any_memory.md",
    "sweeps": "sweeps/README.md",
}
"""The page that a link to a folder leads to."""
ALONE = ("index.md", "tutorial.md")
"""Pages that are a section by themselves."""

BOOSTS = {"commands_reference.md": 4.0, "api_reference.md": 0.1, "settings_reference.md": 0.5}
"""How high the search ranks a page. Signatures of Python name everything, and would be first."""

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
STYLE_ADDRESS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")
UNRENDERED = re.compile(r"<p>(?:(?!</p>)[\s\S])*?(?:^|\n|<p>)(\|[^\n]*\||[-*] [^\n<]+)")
LOG = logging.getLogger("mkdocs.hooks.memeval")


def site_address(path: str) -> str | None:
    """Where a file of the checkout is on the site; None where it is not there."""
    path = FOLDERS.get(path, path)
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE.get(path)


def rewrite_links(text: str, source: str) -> str:
    """A page's Markdown with links that hold on the site; `source` is its path in the checkout.

    Code blocks stay as they are. A link to a file that the site does not have stays, so that the
    strict build reports it.
    """
    page = site_address(source) or source

    def rewritten(link: re.Match[str]) -> str:
        if ELSEWHERE.match(link[2]):
            return link[0]

        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        address = site_address(target)
        if address is None:
            return link[0]

        relative = posixpath.relpath(address, posixpath.dirname(page) or ".")
        return f"{link[1]}{relative}{link[3] or ''}{link[4]}"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def expand(nav: list[Any], pages: list[str]) -> list[Any]:
    """The navigation with each pattern replaced by the pages that it matches, sorted."""
    named = set(_named(nav))
    return list(_expanded(nav, [page for page in sorted(pages) if page not in named]))


def _named(nav: list[Any]) -> Iterator[str]:
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            if isinstance(value, list):
                yield from _named(value)
            else:
                yield value


def _expanded(nav: list[Any], rest: list[str]) -> Iterator[Any]:
    for entry in nav:
        if isinstance(entry, dict):
            yield {
                title: list(_expanded(value, rest)) if isinstance(value, list) else value
                for title, value in entry.items()
            }
        elif "*" in entry:
            yield from fnmatch.filter(rest, entry)
        else:
            yield entry


class _Loads(HTMLParser):
    """Collects what a page loads from elsewhere; a link that a reader follows is none of it."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            loads = name in ("src", "srcset", "poster", "data") or (name == "href" and tag != "a")
            if loads and value and re.match(r"(?:https?:)?//", value):
                self.addresses.append(value)


def loaded_from_elsewhere(text: str, kind: str) -> list[str]:
    """Addresses outside of the site from which a file (`.html` or `.css`) loads something."""
    if kind == ".css":
        return STYLE_ADDRESS.findall(text)

    parser = _Loads()
    parser.feed(text)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
    return parser.addresses + [found for style in styles for found in STYLE_ADDRESS.findall(style)]


def on_config(config: Any) -> Any:
    """Adds the pages of each pattern to the navigation."""
    docs = Path(config.docs_dir)
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    config.nav = expand(config.nav, pages)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are outside of docs/."""
    from mkdocs.structure.files import File

    for path, address in OUTSIDE.items():
        files.append(File.generated(config, address, abs_src_path=str(ROOT / path)))

    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites links between docs/ and what is outside of it, and says how a page is shown."""
    address = page.file.src_uri
    if address in ALONE:  # nothing is beside it, and its tables are wide
        page.meta["hide"] = ["navigation"]
    if address == OUTSIDE["CHANGELOG.md"]:  # it holds every word, and would be found first
        page.meta["search"] = {"exclude": True}

    if address in BOOSTS:
        page.meta["search"] = {"boost": BOOSTS[address]}

    sources = {site: path for path, site in OUTSIDE.items()}
    return rewrite_links(markdown, sources.get(address, f"docs/{address}"))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Reports what reads like a table or a list and is shown as text.

    A wide table scrolls by itself, which a keyboard can only do where it can go.
    """
    for found in UNRENDERED.findall(html):
        LOG.warning("%s: not rendered: %s", page.file.src_uri, found[:80])

    return html.replace("<table>", '<table tabindex="0">')


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Names the theme's dialog of the search for readers that hear the page."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def on_post_build(config: Any) -> None:
    """Reports what the built site would load from elsewhere."""
    site = Path(config.site_dir)
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css"):
            text = path.read_text(encoding="utf-8")
            for address in loaded_from_elsewhere(text, path.suffix):
                LOG.warning("%s loads %s", path.relative_to(site), address)
