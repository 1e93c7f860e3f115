"""What the page is told of an item: plain values, never HTML; and its picture, made anew from the file."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from ..exceptions import SessionError
from ..readers import Items
from ..readers.images import picture

SIDES = {"small": 160, "large": 1024}  # pixels of the longer side
LONGEST_TEXT = 5000  # characters
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

    def face(self, row: int) -> dict[str, Any]:
        """What there is to show of an item."""
        told: dict[str, Any] = {"row": row, "id": self.items.ids[row]}
        if self.items.kind == "image":
            return told | {"kind": "image"}
        text = self.items.faces[row]
        if self.items.kind == "table":
            lines = (line.partition(": ") for line in text.split("\n"))
            return told | {"kind": "table", "cells": [[name, value] for name, _, value in lines]}
        return told | {"kind": self.items.kind, "text": text[:LONGEST_TEXT]}

    def _picture(self, row: int, size: str) -> tuple[bytes, str]:
        """A picture and its type. What is no file inside the folder any more, by whatever link, is not shown."""
        path = Path(self.items.faces[row])
        if not path.resolve().is_relative_to(self.home) or not path.is_file():
            raise SessionError(f"{self.items.ids[row]} is no file of the data any more")
        return picture(path, SIDES[size])
