"""A report as one HTML file that needs nothing else: what it shows, as plain values, and how it is written.

A `Report` is a headline, a few numbers and sections; a section is text and blocks: `Table`, `Answers`, `Sheets`,
`Scatter`, `Chart`, `Pictures`, `Judgements`. Nothing here knows where the values come from. The looks are in
``templates/``.
"""

from __future__ import annotations

import base64
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .writing import new_file, refusals

if TYPE_CHECKING:
    from jinja2 import Environment

Floats = NDArray[np.floating[Any]]
FILE = "index.html"
N_COLOURS = 10  # of the style sheet; cluster k has colour k mod 10


@dataclass(frozen=True)
class Tile:
    """A small picture of one point."""

    ink: Floats  # (height, width), 0 is no ink and 1 is full ink
    caption: str
    wrong: bool = False

    @property
    def uri(self) -> str:
        """The picture as a data URI: black ink on transparent ground."""
        return "data:image/png;base64," + base64.b64encode(_png(self.ink)).decode()


class Block:
    """A part of a section: `kind` is the macro that draws it, `template` the file in ``templates/`` that has it."""

    kind: ClassVar[str]
    template: ClassVar[str] = "blocks.html"


@dataclass(frozen=True)
class Table(Block):
    """Rows of text under column names; `best` holds the (row, column) of cells to stand out."""

    kind: ClassVar[str] = "table"
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    title: str = ""
    caption: str = ""
    beneath: Mapping[tuple[int, int], str] = field(default_factory=dict)  # (row, column): a smaller second line
    notes: Sequence[str] = ()  # paragraphs under the table
    words: frozenset[int] = frozenset()  # columns that hold no figures


@dataclass(frozen=True)
class Answers(Block):
    """Pairs of tiles, each with its answer: True is "same"."""

    kind: ClassVar[str] = "answers"
    pairs: Sequence[tuple[Tile, Tile, bool]]


@dataclass(frozen=True)
class Sheet:
    """One cluster: what it is, its most typical points and those at its border."""

    name: str
    facts: str
    colour: int
    typical: Sequence[Tile]
    border: Sequence[Tile]


@dataclass(frozen=True)
class Sheets(Block):
    """The clusters side by side."""

    kind: ClassVar[str] = "sheets"
    sheets: Sequence[Sheet]


@dataclass(frozen=True)
class Scatter(Block):
    """A map of points; a point with a mark is ringed and tells its mark when pointed at."""

    kind: ClassVar[str] = "scatter"
    side: ClassVar[int] = 480
    title: str
    caption: str
    points: Floats  # (n, 2)
    colours: Sequence[int]  # (n,)
    marks: Mapping[int, str] = field(default_factory=dict)  # row: what is odd about it
    names: Mapping[int, str] = field(default_factory=dict)  # colour: what stands at its middle

    def placed(self) -> Floats:
        """The points inside the drawing, both axes on one scale, (n, 2)."""
        low, high = self.points.min(0), self.points.max(0)
        scale = (self.side - 24) / max(float((high - low).max()), 1e-12)
        placed: Floats = (self.points - (low + high) / 2) * (scale, -scale) + self.side / 2
        return placed

    def dots(self) -> Iterator[tuple[float, float, int, str]]:
        """x, y, colour and mark of every point, the marked ones last so that nothing covers them."""
        placed = self.placed()
        for row in sorted(range(len(placed)), key=lambda row: row in self.marks):
            yield *placed[row].tolist(), self.colours[row] % N_COLOURS, self.marks.get(row, "")

    def middles(self) -> Iterator[tuple[float, float, str]]:
        """x, y and name of every colour that has one, at the median of its points."""
        placed, colours = self.placed(), np.asarray(self.colours)
        for colour, name in self.names.items():
            if (colours == colour).any():
                yield *np.median(placed[colours == colour], axis=0).tolist(), name


@dataclass(frozen=True)
class Series:
    """A line, or a band that is stacked on the bands before it."""

    name: str
    x: Floats
    y: Floats
    colour: int | None = None  # None is the colour of text
    band: bool = False
    dashes: str = ""


@dataclass(frozen=True)
class Chart(Block):
    """Lines and bands over two axes that start at 0."""

    kind: ClassVar[str] = "chart"
    width: ClassVar[int] = 480
    height: ClassVar[int] = 360
    frame: ClassVar[tuple[int, int, int, int]] = (48, 36, 470, 306)  # left, top, right, bottom
    title: str
    caption: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_max: float
    y_max: float

    def x_ticks(self) -> list[tuple[float, str]]:
        """Where the horizontal axis has its numbers."""
        return [(float(self._across(value)), f"{value:g}") for value in _ticks(self.x_max)]

    def y_ticks(self) -> list[tuple[float, str]]:
        """Where the vertical axis has its numbers."""
        return [(float(self._up(value)), f"{value:g}") for value in _ticks(self.y_max)]

    def paths(self) -> Iterator[tuple[Series, str]]:
        """Every series with its SVG path; the bands first, each on top of the one before."""
        floor_line: Floats | float = 0.0
        for band in (series for series in self.series if series.band):
            top = floor_line + np.maximum(band.y, 0)
            bottom = np.broadcast_to(floor_line, top.shape)
            yield band, self._path(np.r_[band.x, band.x[::-1]], np.r_[top, bottom[::-1]]) + "Z"
            floor_line = top
        for line in (series for series in self.series if not series.band):
            yield line, self._path(line.x, line.y)

    def _across(self, x: Any) -> Any:
        left, _, right, _ = self.frame
        return left + (right - left) * x / self.x_max

    def _up(self, y: Any) -> Any:
        _, top, _, bottom = self.frame
        return bottom - (bottom - top) * y / self.y_max

    def _path(self, x: Floats, y: Floats) -> str:
        return "M" + " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(self._across(x), self._up(y), strict=True))


@dataclass(frozen=True)
class Pictures(Block):
    """Drawings that belong together, side by side where there is room, and one legend for all of them."""

    kind: ClassVar[str] = "pictures"
    title: str
    caption: str
    drawings: Sequence[tuple[str, str]]  # what it shows, for those who cannot see it; the drawing as trusted SVG
    legend: Sequence[tuple[str, str]] = ()  # a name; its sign as trusted SVG
    wide_drawings: bool = False  # each on a line of its own; where there is no room, it scrolls like a table


@dataclass(frozen=True)
class Judgement:
    """A statement, who made it where, and for every subject what the figures say: (subject, figures, verdict)."""

    statement: str
    place: str
    findings: Sequence[tuple[str, Sequence[str], str]]


@dataclass(frozen=True)
class Judgements(Block):
    """Statements and verdicts; `tones` says which verdicts stand out as "good" or "bad"."""

    kind: ClassVar[str] = "judgements"
    columns: tuple[str, str, str, str]  # the names of statement, subject, figures and verdict
    judgements: Sequence[Judgement]
    tones: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A part of the report; neighbouring charts and maps stand side by side where there is room."""

    title: str
    text: Sequence[str]  # paragraphs
    blocks: Sequence[Block]
    beside: bool = False  # the text stands beside the blocks instead of above them


@dataclass(frozen=True)
class Report:
    """All that a report shows."""

    title: str
    lead: str
    numbers: Sequence[tuple[str, str]]  # a number and what it is
    sections: Sequence[Section]
    facts: Mapping[str, str]  # the foot: settings, seeds, versions


def render(report: Report) -> str:
    """The report as one HTML page.

    Parameters
    ----------
    report : Report

    Returns
    -------
    html : str
    """
    return templates().get_template("report.html").render(report=report)


def templates() -> Environment:
    """The templates, in which everything is text unless it is said to be safe."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("pairmargin"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def draw(block: Block) -> Any:
        return getattr(environment.get_template(block.template).module, block.kind)(block)

    environment.filters["draw"] = draw
    return environment


def make_folder(folder: str | os.PathLike[str], file: str = FILE) -> Path:
    """Make sure that a report can be written to a folder.

    Parameters
    ----------
    folder : path-like
        Made if it is not there, parents too.
    file : str, default="index.html"
        The name of the page.

    Returns
    -------
    folder : Path
    """
    page = Path(folder) / file
    with refusals(page):
        page.parent.mkdir(parents=True, exist_ok=True)
        if page.is_dir():
            raise IsADirectoryError(0, "there is a folder of that name")
        if not os.access(page if page.exists() else page.parent, os.W_OK):
            raise PermissionError(0, "no permission to write there")
    return page.parent


def write(report: Report, folder: str | os.PathLike[str], file: str = FILE) -> Path:
    """Write a report as one page, all or nothing; other files in the folder are left alone.

    Parameters
    ----------
    report : Report
    folder : path-like
        Made if it is not there.
    file : str, default="index.html"
        The name of the page.

    Returns
    -------
    page : Path
        The file.
    """
    page = make_folder(folder, file) / file
    html = render(report)
    with new_file(page) as beside, refusals(page):
        beside.write_text(html, encoding="utf-8")
    return page


def _png(ink: Floats) -> bytes:
    """A PNG file with black ink of varying opacity."""
    alpha = np.rint(np.clip(ink, 0, 1) * 255).astype(np.uint8)
    height, width = alpha.shape
    pixels = np.stack([np.zeros_like(alpha), alpha], axis=2).reshape(height, 2 * width)  # grey, opacity
    rows = np.insert(pixels, 0, 0, axis=1)  # every row starts with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 4, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _ticks(top: float, about: int = 5) -> list[float]:
    """Round numbers from 0 up to `top`."""
    rough = top / about
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * (1 - 1e-9))
    return [step * k for k in range(floor(top / step + 1e-9) + 1)]
