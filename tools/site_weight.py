"""What a page of the site consists of: its links, and the files that it can show."""

import json
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lxml import html


def local_links(path: Path, page: html.HtmlElement) -> dict[str, tuple[Path, str]]:
    """Return the files and fragments that a page points to on this disk, by link.

    Raises:
        ValueError: the page would fetch something from outside; a link to click is not a fetch.
    """
    links = {}
    for element, _, link, _ in page.iterlinks():
        parts = urlsplit(link)
        if parts.scheme == "data" or element.tag == "a" and parts.scheme:
            continue
        if parts.scheme or parts.netloc:
            raise ValueError(f"{path} fetches {link}: keep it with the site.")
        file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        links[link] = (file, unquote(parts.fragment))
    return links


def page_files(path: Path) -> set[Path]:
    """Return a page and every file that it can show, the states of its explorables included."""
    page = html.parse(path).getroot()
    files = {file for file, _ in local_links(path, page).values()}
    files = {file for file in files if file.suffix not in (".html", ".ipynb")} | {path}
    for states in page.xpath("//script[@type='application/json']"):
        pictures = json.loads(states.text).get("pictures", [])
        files |= {(path.parent / name).resolve() for name in pictures}
    return files
