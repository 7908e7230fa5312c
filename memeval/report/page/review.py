"""The page on which questions of one's own are reviewed. It loads and saves by the server."""

from __future__ import annotations

from pathlib import Path

from memeval.report.page.write import FILES, load_template, policy, raw

SCRIPTS = ("text", "review")
STYLES = ("style", "review")


def review_page(file: Path, reviewer: str) -> tuple[str, str]:
    """The page's HTML, and the content security policy to send with it."""
    style = "".join((FILES / f"{name}.css").read_text(encoding="utf-8") for name in STYLES)
    script = "\n".join((FILES / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    html = load_template("review.html.j2").render(
        file=file.name, reviewer=reviewer, style=raw(style), script=raw(script)
    )
    own = "connect-src 'self'; frame-ancestors 'none'"
    return html, f"{policy(style, script)}; {own}"
