"""The rows that are looked at as a whole, where all of them are too many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from torch import Tensor

from .inputs import Input, Rows
from .pairs import Pairs

Array = NDArray[Any]

LOOKED_AT = 20_000  # rows to draw, beside those in answers


@dataclass(frozen=True)
class Sample:
    """Some rows in memory, and the answers about them."""

    x: Input
    pairs: Pairs
    rows: Tensor | None  # which they are, rising; None if they are all

    @classmethod
    def whole(cls, x: Input, pairs: Pairs) -> Sample:
        """All rows."""
        return cls(x, pairs, None)

    @classmethod
    def draw(cls, x: Rows, pairs: Pairs, rng: RandomState) -> Sample:
        """All rows in answers, and some others."""
        n = x.shape[0]
        others = np.arange(n) if n <= LOOKED_AT else rng.choice(n, LOOKED_AT, replace=False)
        rows = np.union1d(pairs.points, others)
        return cls(x.subset(torch.from_numpy(rows)), among(pairs, rows, n), torch.from_numpy(rows))

    def only(self, kept: Array) -> Sample:
        """The same rows with some of the answers."""
        return replace(self, pairs=self.pairs[kept])

    def weighed(self, weight: Array) -> Sample:
        """The same with answers that count so many times."""
        return replace(self, pairs=Pairs(self.pairs.index, self.pairs.same, self.pairs.weight * weight))

    def in_all(self, places: Tensor | None) -> Tensor | None:
        """Places in the sample as row numbers."""
        return places if self.rows is None or places is None else self.rows[places]


def among(pairs: Pairs, rows: Array, n: int) -> Pairs:
    """The pairs of which both points are among some rising rows, by their places there and in the same order."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    index = place[pairs.index]
    kept = (index >= 0).all(1)
    return Pairs(index[kept], pairs.same[kept], pairs.weight[kept])
