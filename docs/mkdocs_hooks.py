"""MkDocs hooks of the site: MkDocs calls the functions named `on_…`.

- Files such as the changelog are pages too, under other paths (`OUTSIDE`); links are rewritten.
- A pattern in the navigation is replaced by the pages that it matches.
- A page that would load a font, script, style or picture from another host fails the build, and so
  does a table or a list that is not rendered as one.
"""

from __future__ import annotations

import fnmatch
import logging
import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import chain
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
"""Path on the site of each file that is outside of docs/."""
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
"""Weight of a page in the search. The Python API names everything, and would come first."""

LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
ABSOLUTE_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
STYLE_URL = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")
UNRENDERED = re.compile(r"<p>(?:(?!</p>)[\s\S])*?(?:^|\n|<p>)(\|[^\n]*\||[-*] [^\n<]+)")
LOG = logging.getLogger("mkdocs.hooks.memeval")


def site_path(path: str) -> str | None:
    """Path on the site of a file of the checkout; None if the site does not have it."""
    path = FOLDERS.get(path, path)
    return path.removeprefix("docs/") if path.startswith("docs/") else OUTSIDE.get(path)


def rewrite_links(text: str, source: str) -> str:
    """A page's Markdown with links that work on the site; `source` is its path in the checkout.

    Code blocks stay as they are. A link to a file that the site does not have stays, so that the
    strict build reports it.
    """
    folder = posixpath.dirname(site_path(source) or source)

    def rewrite_link(link: re.Match[str]) -> str:
        if ABSOLUTE_URL.match(link[2]):
            return link[0]

        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        path = site_path(target)
        if path is None:
            return link[0]

        return f"{link[1]}{posixpath.relpath(path, folder or '.')}{link[3] or ''}{link[4]}"

    def rewrite(part: str) -> str:
        return part if part.startswith("```") else LINK.sub(rewrite_link, part)

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(map(rewrite, parts))


def expand(nav: list[Any], pages: list[str]) -> Any:
    """The navigation with each pattern replaced by the other pages that it matches, sorted."""
    return _expand(nav, sorted(set(pages).difference(entries_of(nav))))


def entries_of(nav: Any) -> Iterator[str]:
    """The pages and patterns in a navigation."""
    if isinstance(nav, dict):
        yield from entries_of(list(nav.values()))
    elif isinstance(nav, list):
        for entry in nav:
            yield from entries_of(entry)
    else:
        yield nav


def _expand(nav: Any, pages: list[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _expand(value, pages) for title, value in nav.items()}

    if not isinstance(nav, list):
        return nav

    entries = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            entries += fnmatch.filter(pages, entry)
        else:
            entries.append(_expand(entry, pages))

    return entries


class _Loads(HTMLParser):
    """Collects URLs of other hosts from which a page loads something; links don't count."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            loads = name in ("src", "srcset", "poster", "data") or (name == "href" and tag != "a")
            if loads and value and re.match(r"(?:https?:)?//", value):
                self.urls.append(value)


def external_urls(text: str, suffix: str) -> list[str]:
    """URLs of other hosts from which a file (`.html` or `.css`) loads something."""
    if suffix == ".css":
        return STYLE_URL.findall(text)

    parser = _Loads()
    parser.feed(text)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
    return [*parser.urls, *chain.from_iterable(map(STYLE_URL.findall, styles))]


def on_config(config: Any) -> Any:
    """Adds the pages of each pattern to the navigation."""
    docs = Path(config.docs_dir)
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    config.nav = expand(config.nav, pages)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are outside of docs/."""
    from mkdocs.structure.files import File

    for source, path in OUTSIDE.items():
        files.append(File.generated(config, path, abs_src_path=str(ROOT / source)))

    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrites a page's links, and sets its navigation and its weight in the search."""
    path = page.file.src_uri
    # The section has no other page, and the tables are wide.
    if path in ALONE:
        page.meta["hide"] = ["navigation"]

    # It contains every word, and would come first.
    if path == OUTSIDE["CHANGELOG.md"]:
        page.meta["search"] = {"exclude": True}

    if path in BOOSTS:
        page.meta["search"] = {"boost": BOOSTS[path]}

    sources = {site: source for source, site in OUTSIDE.items()}
    return rewrite_links(markdown, sources.get(path, f"docs/{path}"))


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Reports Markdown of a table or list that is shown as text.

    A wide table scrolls by itself; `tabindex` lets the keyboard scroll it.
    """
    for text in UNRENDERED.findall(html):
        LOG.warning("%s: not rendered: %s", page.file.src_uri, text[:80])

    return html.replace("<table>", '<table tabindex="0">')


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Gives the theme's search dialog a name for screen readers."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def on_post_build(config: Any) -> None:
    """Reports what the built site would load from other hosts."""
    site = Path(config.site_dir)
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".css"):
            text = path.read_text(encoding="utf-8")
            for url in external_urls(text, path.suffix):
                LOG.warning("%s loads %s", path.relative_to(site), url)
