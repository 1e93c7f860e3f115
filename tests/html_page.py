"""A page taken apart."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise


class Page(HTMLParser):
    """Every tag with its attributes, and all the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def check_accessible(self) -> None:
        """Language, alternatives, headings in order, unique ids."""
        assert self.all("html") == [{"lang": "en"}]
        assert all("alt" in image for image in self.all("img"))
        assert all(drawing.get("aria-label") or drawing.get("aria-hidden") for drawing in self.all("svg"))
        levels = [int(tag[1]) for tag, _ in self.tags if re.fullmatch(r"h\d", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
        names = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        assert len(names) == len(set(names))
