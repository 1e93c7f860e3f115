"""What a person is shown of an item: a picture, a text, some cells of a row, the first numbers of a vector."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..readers import Items
from ..readers.images import thumbnail
from ..readers.tables import RowFaces
from .findings import Array

SIDE = 96  # most pixels of a picture
FEW_PIXELS = 48  # up to here, pixels are shown as squares and kept to the last bit
EXCERPT = 280  # letters of a text
NAME = 80  # letters of an id
TILE = 32  # pixels of a picture on the sheet for the map; JPEG works in blocks of 8


@dataclass(frozen=True)
class Face:
    """An item as it stands on the page."""

    name: str
    kind: str  # "image", "table", "text" or "vector"
    text: str = ""
    cells: Sequence[tuple[str, str]] = ()
    uri: str = ""  # of the picture
    few_pixels: bool = False


def face(items: Items, row: int, columns: Iterable[str] = (), letters: int = EXCERPT) -> Face:
    """An item by its row; of a table, the cells of these columns, if they can be shown."""
    name = shortened(items.ids[row], NAME)
    if items.kind == "image":
        return _picture(items, row, name)
    if items.kind == "table" and isinstance(items.faces, RowFaces):
        cells = items.faces.cells(row, columns)
        return Face(name, "table", cells=[(column, shortened(value, NAME)) for column, value in cells.items()])
    return Face(name, items.kind, shortened(items.faces[row], letters))


def shortened(text: str, letters: int) -> str:
    """A text on one line, cut at a word if it is too long."""
    line = " ".join(text[: 4 * letters].split())
    if len(line) <= letters and len(text) <= 4 * letters:
        return line
    cut = line[: letters - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > letters / 2 else cut) + "…"


def _picture(items: Items, row: int, name: str) -> Face:
    """The picture in its file, or what was read of it if the file has gone."""
    image = thumbnail(Path(items.faces[row]), SIDE)
    if image is None:
        image = _image(items.features[row])
    few = max(image.size) <= FEW_PIXELS
    return Face(name, "image", uri=_uri(image, "PNG" if few else "JPEG"), few_pixels=few)


def picture_sheet(items: Items, rows: Array) -> tuple[str, int]:
    """Small pictures of many rows as one image, and how many stand side by side."""
    from PIL import Image

    across = max(int(np.ceil(np.sqrt(len(rows)))), 1)
    first = _image(items.features[rows[0]])
    sheet = Image.new(first.mode, (across * TILE, -(-len(rows) // across) * TILE))
    for place, row in enumerate(rows.tolist()):
        down, right = divmod(place, across)
        sheet.paste(_image(items.features[row]).resize((TILE, TILE)), (right * TILE, down * TILE))
    return _uri(sheet, "JPEG", quality=60), across


def _image(features: Array) -> Any:
    """An image of what was learned from."""
    from PIL import Image

    n_values = len(features)
    grey = int(np.sqrt(n_values)) ** 2 == n_values
    side = int(np.sqrt(n_values if grey else n_values // 3))
    shape = (side, side) if grey else (side, side, 3)
    return Image.fromarray(np.rint(np.clip(features, 0, 1) * 255).astype(np.uint8).reshape(shape))


def _uri(image: Any, form: str, **settings: Any) -> str:
    """An image as a data URI."""
    file = BytesIO()
    if image.mode == "RGB" and not np.ptp(np.asarray(image), axis=2).any():
        image = image.convert("L")
    image.save(file, form, **({"quality": 80, "optimize": True} | settings if form == "JPEG" else {"optimize": True}))
    return f"data:image/{form.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"
