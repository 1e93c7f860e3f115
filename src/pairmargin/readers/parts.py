"""What all readers share: the part of a file that they hand over, ids, labels, and words for messages."""

from __future__ import annotations

import codecs
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..enough_memory import check_memory
from ..exceptions import InvalidDataError, InvalidParameterError

UNPACKED = "look whether it is what it should be, or cut it into several"
NAMED = 20  # most names in a note
Array = NDArray[Any]
T = TypeVar("T")
Options = dict[str, Any]  # what `read_items` was asked for, by the names of its parameters
State = tuple[dict[str, Any], dict[str, Array]]  # what JSON can hold, and arrays


class Part(NamedTuple):
    """Some items of a file, in its order."""

    ids: list[str]
    features: Any  # (n, D), an array or a sparse CSR array
    faces: Sequence[str]
    truth: Array | None
    notes: list[str]


class Maker(Protocol):
    """How the files of one kind become items, as it was learned from the first of them."""

    @property
    def kind(self) -> str:
        """What its items are."""

    def parts(self, path: Path, rows: int | None) -> Iterator[Part]:
        """The items of a file, at most ``rows`` at a time, or all at once."""

    def state(self) -> State:
        """All that was learned and set."""


def listed(names: Sequence[object], most: int = 5) -> str:
    """Names in a row, the first few of them."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def counted(number: int, noun: str) -> str:
    """A number with its noun in singular or plural."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Count(str):
    """A note that counts something, to which those of later pieces can be added."""

    about: tuple[str, str, str]  # what stands before the number, its noun, and what stands after it
    number: int
    names: tuple[str, ...]  # of what was counted, the first few
    end: str

    @classmethod
    def of(cls, before: str, number: int, noun: str, after: str, names: Sequence[str] = (), end: str = ".") -> Count:
        """Its sentence: all of these in a row."""
        shown = tuple(names[:NAMED])
        more = f" and {number - len(shown)} more" if shown and number > len(shown) else ""
        note = cls(f"{before}{counted(number, noun)}{after}{', '.join(shown)}{more}{end}")
        note.about, note.number, note.names, note.end = (before, noun, after), number, shown, end
        return note

    def plus(self, other: Count) -> Count:
        """The note on both together."""
        before, noun, after = self.about
        return Count.of(before, self.number + other.number, noun, after, self.names + other.names, self.end)


def add_notes(total: dict[object, str], notes: Sequence[str]) -> None:
    """Add the notes of a piece to those of the pieces before: what is counted adds up, the rest is said once."""
    for note in notes:
        if isinstance(note, Count):
            known = total.get(note.about)
            total[note.about] = known.plus(note) if isinstance(known, Count) else note
        else:
            total[note] = note


def encoding_error(path: Path, encoding: str) -> InvalidDataError:
    """What to say of a text file that is not in the encoding: where it fails first, and what may help."""
    decoder = codecs.getincrementaldecoder(encoding)()
    position, line = 0, 1  # of the block
    with path.open("rb") as file:
        start = file.read(1024)
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in start:
            return InvalidDataError(f'{path.name} is not in {encoding} but perhaps in UTF-16; pass encoding="utf-16"')
        file.seek(0)
        while block := file.read(2**20):
            held = len(decoder.getstate()[0])  # bytes of a character that the last block cut in two
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                place = position - held + error.start
                line += block.count(b"\n", 0, max(error.start - held, 0))
                other = "utf-8" if encoding.lower() in ("latin-1", "cp1252", "ascii") else "cp1252"
                return InvalidDataError(
                    f"{path.name} is not in {encoding}: byte {place} (0x{error.object[error.start]:02x}), on line "
                    f'{line}, does not fit; pass its encoding, perhaps encoding="{other}"'
                )
            position, line = position + len(block), line + block.count(b"\n")
    return InvalidDataError(f"{path.name} holds bytes that are no text in {encoding}; pass its encoding=")


def check_encoding(encoding: str) -> None:
    """Refuse a name that Python knows no encoding by."""
    try:
        "".encode(encoding)
    except LookupError:
        raise InvalidParameterError(
            f'encoding={encoding!r} is not known; use "utf-8", "cp1252", "latin-1" or another of Python\'s'
        ) from None


def check_ids(ids: Sequence[str | None], place: Callable[[int], str]) -> list[str]:
    """Refuse ids that are missing or come twice; ``place`` says where a row is."""
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name:
            raise InvalidDataError(f"{place(row)} has no id; fill it in, or leave id= out to count the rows")
        if (first := seen.setdefault(name, row)) != row:
            raise InvalidDataError(f"the id {name!r} comes twice: {place(first)} and {place(row)}; make ids unique")
    return list(seen)


def check_distinct(names: Sequence[str], path: Path) -> None:
    """Refuse columns that share a name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidDataError(f"{path.name} has several columns called {twice!r}; give each its own name")


def check_unpacked(path: Path) -> None:
    """Refuse a small archive that unfolds to more than the memory holds; no more is unpacked than its list says."""
    with zipfile.ZipFile(path) as archive:
        check_memory(sum(each.file_size for each in archive.infolist()), f"{path.name}, unpacked,", UNPACKED)


def row_numbers(start: int, stop: int) -> list[str]:
    """Ids for items that have none: their numbers, from 0."""
    return list(map(str, range(start, stop)))


def spans(length: int, rows: int | None) -> Iterator[slice]:
    """Pieces of at most ``rows``, or one of all."""
    step = rows or max(length, 1)
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def labels_of(values: Sequence[str | None]) -> Array:
    """Labels as text, with None where there is none."""
    return np.array(values, dtype=object if None in values else str)


def ahead(pieces: Iterator[T]) -> Iterator[T]:
    """The same pieces, each made in a thread of its own while the one before is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, pieces, None)
        while (piece := coming.result()) is not None:
            coming = pool.submit(next, pieces, None)
            yield piece
