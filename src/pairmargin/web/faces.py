"""What the page is told of an item: plain values, never HTML; and its picture, made anew from the file."""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from functools import cached_property
from pathlib import Path
from typing import Any

from ..exceptions import SessionError
from ..readers import Items
from ..readers.images import picture
from ..readers.tables import RowFaces

SIDES = {"small": 160, "large": 1024}  # pixels of the longer side
LONGEST_TEXT, SHORT_TEXT = 5000, 160  # characters, large and on a tile
SHORT_ROW = 8  # columns on a tile
LOOKED_AT = 500  # texts that tell which words are common
CACHED = 200_000_000  # bytes of pictures that are kept ready


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
        self._ready: OrderedDict[tuple[int, str], tuple[bytes, str]] = OrderedDict()  # the last looked at at the end
        self._size, self._lock = 0, threading.Lock()

    def face(self, row: int, short: bool = False) -> dict[str, Any]:
        """What there is to show of an item; short for a tile."""
        told: dict[str, Any] = {"row": row, "id": self.items.ids[row]}
        if self.items.kind == "image":
            return told | {"kind": "image"}
        longest, faces = SHORT_TEXT if short else LONGEST_TEXT, self.items.faces
        if isinstance(faces, RowFaces):
            cells = [[name, value[:longest]] for name, value in faces.cells(row).items()]
            more = [[f"… and {faces.more} more", ""]] if faces.more else []
            return told | {"kind": "table", "cells": cells[:SHORT_ROW] if short else cells + more}
        return told | {"kind": self.items.kind, "text": faces[row][:longest]}

    @cached_property
    def common_words(self) -> list[str]:
        """The words of more than half of the texts: that two texts share them tells nothing."""
        if self.items.kind != "text":
            return []
        n = len(self.items.faces)
        texts = [self.items.faces[row] for row in range(0, n, max(n // LOOKED_AT, 1))]
        words = Counter(word for text in texts for word in set(re.findall(r"[^\W_]+", text[:LONGEST_TEXT].lower())))
        return sorted(word for word, n in words.items() if n > len(texts) / 2)

    def picture(self, row: int, size: str) -> tuple[bytes, str]:
        """A picture and its type, kept ready for the next who looks at it."""
        with self._lock:
            if (row, size) in self._ready:
                self._ready.move_to_end((row, size))
                return self._ready[row, size]
        made = self._drawn(row, size)
        with self._lock:
            if (row, size) not in self._ready:
                self._ready[row, size] = made
                self._size += len(made[0])
            while self._size > CACHED:
                self._size -= len(self._ready.popitem(last=False)[1][0])
        return made

    def _drawn(self, row: int, size: str) -> tuple[bytes, str]:
        """A picture and its type. What is no file inside the folder any more, by whatever link, is not shown."""
        path = Path(self.items.faces[row])
        if not path.resolve().is_relative_to(self.home) or not path.is_file():
            raise SessionError(f"{self.items.ids[row]} is no file of the data any more")
        return picture(path, SIDES[size])
