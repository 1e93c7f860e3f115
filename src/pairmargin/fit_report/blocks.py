"""The blocks of the page that no other report has; ``templates/fit_blocks.html`` draws them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..report import Block
from .faces import Face
from .traits import Trait

Array = NDArray[Any]

MARGIN = 40  # of the map, on both sides together
SURE, DOUBTFUL = 0.9, 0.6  # confidence from which an item counts as sure, and below which as doubtful


class FitBlock(Block):
    """A block of this page."""

    template: ClassVar[str] = "fit_blocks.html"


@dataclass(frozen=True)
class Size:
    """A line of the chart of sizes."""

    cluster: int
    gist: str
    counts: tuple[int, int, int]  # sure, fairly sure, doubtful
    share: str  # of all items
    confidence: str  # the median
    label: tuple[str, str] = ("", "")  # the most frequent one, and its share

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass(frozen=True)
class Sizes(FitBlock):
    """How large the clusters are and how sure the model is of their members."""

    kind: ClassVar[str] = "sizes"
    sizes: Sequence[Size]
    noun: str
    with_labels: bool = False
    rest: str = ""  # what is said of those that are left out

    def bars(self, size: Size) -> Iterator[tuple[float, float, int]]:
        """Left end and width of each part of a bar, of 100, and how pale it is."""
        largest, left = max(each.count for each in self.sizes), 0.0
        for pale, count in enumerate(size.counts):
            width = 100 * count / largest
            if count:
                yield left, width, pale
            left += width


@dataclass(frozen=True)
class Profile:
    """A cluster: what sets it apart, its most typical members and those that the model is least sure of."""

    cluster: int
    facts: str
    traits: Sequence[Trait]
    columns: Sequence[str]  # of a table, for the cells of the members
    typical: Sequence[tuple[Face, str]]  # with how sure the model is
    doubtful: Sequence[tuple[Face, str]]


@dataclass(frozen=True)
class Profiles(FitBlock):
    """The clusters side by side."""

    kind: ClassVar[str] = "profiles"
    profiles: Sequence[Profile]
    items: str  # "image", "table", "text" or "vector"

    def bar(self, trait: Trait) -> tuple[float, float]:
        """Left end and width of the bar of a trait, of 100 with 0 in the middle; all clusters have one scale."""
        reach = max(abs(each.effect) for profile in self.profiles for each in profile.traits)
        width = 50 * abs(trait.effect) / reach
        return (50 - width if trait.effect < 0 else 50), width


@dataclass(frozen=True)
class PairCard:
    """Two items, what was answered about them if anything, and what there is to say."""

    left: Face
    right: Face
    same: bool | None
    notes: Sequence[str]
    broken: bool = False


@dataclass(frozen=True)
class PairCards(FitBlock):
    """Pairs, one after the other."""

    kind: ClassVar[str] = "pair_cards"
    cards: Sequence[PairCard]
    items: str


@dataclass(frozen=True)
class Crossing(FitBlock):
    """How many items of every label are in every cluster."""

    kind: ClassVar[str] = "crossing"
    labels: Sequence[str]
    clusters: Sequence[int]
    counts: Sequence[Sequence[int]]

    def shade(self, row: int, column: int) -> int:
        """How dark a cell is, 0 to 9: the share of its row."""
        return round(9 * self.counts[row][column] / max(sum(self.counts[row]), 1))


@dataclass(frozen=True)
class PointMap(FitBlock):
    """A map of items that tells about the one that is pointed at."""

    kind: ClassVar[str] = "point_map"
    side: ClassVar[int] = 600
    title: str
    caption: str
    points: Array  # (m, 2)
    cluster: Array  # (m,)
    confidence: Array  # (m,)
    legend: Sequence[tuple[int, str]]  # clusters and what sets them apart
    told: Mapping[str, Any]  # about every point, for the script: JSON
    broken: Sequence[tuple[int, int]] = ()  # places among the points of answers that are not kept

    @property
    def height(self) -> float:
        """The drawing is as high as it needs to be."""
        width, height = np.ptp(self.points, axis=0)
        return round(MARGIN + (self.side - MARGIN) * float(np.clip(height / max(width, height, 1e-12), 0.3, 1)), 1)

    def placed(self) -> Array:
        """The points inside the drawing, both axes on one scale, (m, 2)."""
        low, high = self.points.min(0), self.points.max(0)
        scale = (self.side - MARGIN) / max(float((high - low).max()), 1e-12)
        middle = self.side / 2, self.height / 2
        return np.asarray((self.points - (low + high) / 2) * (scale, -scale) + middle).round(1)

    def paths(self) -> Iterator[tuple[int, bool, str]]:
        """Cluster, whether it is of the doubtful ones, and a path that is a dot wherever it stops."""
        placed = self.placed()
        for cluster, _ in self.legend:
            for doubtful in (False, True):
                own = placed[(self.cluster == cluster) & ((self.confidence < DOUBTFUL) == doubtful)]
                if len(own):
                    yield cluster, doubtful, "".join(f"M{x:g} {y:g}h0" for x, y in own.tolist())

    def lines(self) -> str:
        """The answers that are not kept, as one path."""
        placed = self.placed()
        return "".join("M{:g} {:g}L{:g} {:g}".format(*placed[list(ends)].ravel()) for ends in self.broken)

    def middles(self) -> Iterator[tuple[float, float, int]]:
        """Where the number of each cluster stands: on the dot that is nearest to its middle."""
        placed = self.placed()
        for cluster, _ in self.legend:
            own = placed[self.cluster == cluster]
            if len(own):
                yield *own[np.square(own - np.median(own, axis=0)).sum(1).argmin()].tolist(), cluster

    @property
    def dot(self) -> float:
        """The width of a dot: smaller where there are many."""
        return float(np.clip(300 / np.sqrt(len(self.points)), 5, 9).round(1))

    def data(self) -> dict[str, Any]:
        """What the script is told."""
        x, y = self.placed().T
        confidence = np.floor(100 * self.confidence).astype(int)
        return {"x": x.tolist(), "y": y.tolist(), "cluster": self.cluster.tolist(), "sure": confidence.tolist()} | dict(
            self.told
        )
