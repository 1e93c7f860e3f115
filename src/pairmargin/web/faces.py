"""What the page is told of an item: plain values, never HTML; and its picture, made anew from the file."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..exceptions import SessionError
from ..readers import Items
from ..readers.images import picture

SIDES = {"small": 160, "large": 1024}  # pixels of the longer side
LONGEST_TEXT, SHORT_TEXT = 5000, 160  # characters, large and on a tile
SHORT_ROW = 8  # columns on a tile
LOOKED_AT = 500  # texts that tell which words are common
CACHED = 4000  # pictures


class Faces:
    """The faces of a session's items.

    Parameters
    ----------
    items : Items
    folder : Path
        What they were read from; no picture from anywhere else is ever shown.
    """

    def __init__(self, items: Items, folder: Path) -> None:
        self.items, self.home = items, folder.resolve()
        self.picture = lru_cache(CACHED)(self._picture)

    def face(self, row: int, short: bool = False) -> dict[str, Any]:
        """What there is to show of an item; short for a tile."""
        told: dict[str, Any] = {"row": row, "id": self.items.ids[row]}
        if self.items.kind == "image":
            return told | {"kind": "image"}
        text = self.items.faces[row]
        if self.items.kind == "table":
            lines = [line.partition(": ") for line in text.split("\n")[: SHORT_ROW if short else None]]
            return told | {"kind": "table", "cells": [[name, value] for name, _, value in lines]}
        return told | {"kind": self.items.kind, "text": text[: SHORT_TEXT if short else LONGEST_TEXT]}

    @cached_property
    def common_words(self) -> list[str]:
        """The words of more than half of the texts: that two texts share them tells nothing."""
        if self.items.kind != "text":
            return []
        texts = self.items.faces[:: max(len(self.items.faces) // LOOKED_AT, 1)]
        words = Counter(word for text in texts for word in set(re.findall(r"[^\W_]+", text[:LONGEST_TEXT].lower())))
        return sorted(word for word, n in words.items() if n > len(texts) / 2)

    def _picture(self, row: int, size: str) -> tuple[bytes, str]:
        """A picture and its type. What is no file inside the folder any more, by whatever link, is not shown."""
        path = Path(self.items.faces[row])
        if not path.resolve().is_relative_to(self.home) or not path.is_file():
            raise SessionError(f"{self.items.ids[row]} is no file of the data any more")
        return picture(path, SIDES[size])
