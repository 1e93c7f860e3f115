"""A folder of images as items: each one a square of grey or coloured pixels from 0 to 1."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..exceptions import InvalidDataError
from ..extras import need
from .folders import IMAGES, find_files, folder_labels, relative
from .parts import Array, Count, Options, Part, State, spans

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP")  # whatever a file calls itself, no other decoder touches it
SIZE = 32
MOST_PIXELS = 50_000_000  # a small file can unfold to far more and fill the memory


@dataclass(frozen=True)
class ImageMaker:
    """Images of a folder as items."""

    size: int
    colour: bool
    truth: str | None
    kind = "image"

    @classmethod
    def learn(cls, path: Path, options: Options) -> tuple[ImageMaker, Part]:
        """Nothing is learned from the images: the size and the colour are settings."""
        maker = cls(options.get("size") or SIZE, bool(options.get("colour")), options.get("truth"))
        part = next(maker.parts(path, None))
        shade = "coloured" if maker.colour else "grey"
        about = f"images stretched to {maker.size} × {maker.size} {shade} pixels from 0 to 1."
        return maker, part._replace(notes=[about, *part.notes])

    def parts(self, path: Path, rows: int | None) -> Iterator[Part]:
        if not path.is_dir():
            raise InvalidDataError(f"{path.name} is a file; images are read from the folder they are in")
        paths, notes = find_files(path, IMAGES)
        if not paths:
            raise InvalidDataError(f"the folder {path.name} has no images; they should end in {', '.join(IMAGES)}")
        held: Part | None = None  # back by one, to take the notes of a piece without a single image
        for span in spans(len(paths), rows):
            part, why = self._part(path, paths[span])
            if held is None or not part.ids:
                notes += part.notes
            if part.ids:
                if held is not None:
                    yield held._replace(notes=notes)
                    notes = part.notes
                held = part
        if held is None:
            raise InvalidDataError(f"no image of the folder {path.name} can be read; for one, {why}")
        yield held._replace(notes=notes)

    def _part(self, folder: Path, paths: list[Path]) -> tuple[Part, str]:
        """The images that can be read, and one that cannot."""
        features = np.empty((len(paths), self.size**2 * (3 if self.colour else 1)), dtype=np.float32)
        read, refused = list[Path](), dict[str, str]()
        for path in paths:
            try:
                features[len(read)] = pixels(path, self.size, self.colour).ravel()
                read.append(path)
            except _UnreadableError as error:
                refused[relative(path, folder)] = str(error)
        ids = [relative(path, folder) for path in read]
        told = [f"{name} ({why})" for name, why in refused.items()]
        notes: list[str] = [Count.of("", len(told), "image", " skipped: ", told)] if told else []
        part = Part(ids, features[: len(read)], list(map(str, read)), folder_labels(read, self.truth), notes)
        return part, next(iter(told), "")

    def state(self) -> State:
        return {"size": self.size, "colour": self.colour, "truth": self.truth}, {}

    @classmethod
    def from_state(cls, facts: dict[str, Any], arrays: dict[str, Array]) -> ImageMaker:
        return cls(facts["size"], facts["colour"], facts["truth"])


class _UnreadableError(Exception):
    """An image that is skipped, and why."""


def pixels(path: Path, size: int, colour: bool) -> Array:
    """An image as (size, size) or (size, size, 3) means of its pixels, upright, on white where it is transparent."""
    library = need("PIL.Image", "reading images")
    flat = _opened(library, path, "RGB" if colour else "L", size)
    return np.asarray(flat.resize((size, size), library.Resampling.BOX), dtype=np.float32) / np.float32(255)


def thumbnail(path: Path, size: int) -> Any | None:
    """An image of Pillow's of at most ``size`` pixels a side, as wide and high as it is; None if it cannot be read."""
    try:
        return _shrunk(path, size)
    except _UnreadableError:
        return None


def picture(path: Path, size: int) -> tuple[bytes, str]:
    """An image for the eye, of at most ``size`` pixels a side, as a file of its own and its type.

    It is drawn anew, so nothing else that the file may hold goes along: no place where it was taken, no script.
    """
    try:
        image = _shrunk(path, size)
    except _UnreadableError as error:
        raise InvalidDataError(f"{path.name} cannot be shown: {error}") from error
    file, is_small = io.BytesIO(), max(image.size) < size
    image.save(file, "PNG") if is_small else image.save(file, "JPEG", quality=88)
    return file.getvalue(), "image/png" if is_small else "image/jpeg"


def _shrunk(path: Path, size: int) -> Any:
    library = need("PIL.Image", "reading images")
    image = _opened(library, path, "RGB", size)
    image.thumbnail((size, size), library.Resampling.LANCZOS)
    return image


def _opened(library: Any, path: Path, mode: str, size: int) -> Any:
    """An image upright, grey or RGB, on white where it is transparent; of at least ``size`` pixels if it has them."""
    turned = need("PIL.ImageOps", "reading images").exif_transpose
    try:
        with warnings.catch_warnings():  # Pillow's about odd metadata and large images
            warnings.simplefilter("ignore")
            with library.open(path, formats=FORMATS) as image:
                _check_size(image)
                image.draft(mode, (2 * size, 2 * size))  # lets JPEG skip what is not needed
                return _flat(library, turned(image), mode)
    except library.UnidentifiedImageError as error:
        raise _UnreadableError("not an image") from error
    except library.DecompressionBombError as error:
        raise _UnreadableError("too many pixels") from error
    except _UnreadableError:
        raise
    except Exception as error:  # a damaged image can trip Pillow anywhere
        raise _UnreadableError("damaged or cut short") from error


def _check_size(image: Any) -> None:
    if image.width * image.height > MOST_PIXELS:
        raise _UnreadableError(f"{image.width} × {image.height} pixels, more than {MOST_PIXELS:,}")


def _flat(library: Any, image: Any, mode: str) -> Any:
    """Grey or RGB with 8 bits, whatever it was."""
    if image.mode == "F":
        raise _UnreadableError("pixels without a known range")
    if image.mode.startswith("I"):  # 16 bits of grey, which Pillow would cut off at 255
        grey = np.clip(np.asarray(image, dtype=np.float64) / 257, 0, 255)
        image = library.fromarray(grey.round().astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = library.alpha_composite(library.new("RGBA", image.size, "white"), image)
    return image.convert(mode)
