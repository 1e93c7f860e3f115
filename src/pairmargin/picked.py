"""Answers to questions that somebody has picked.

A draw is about all points alike. Whoever picks questions asks about what is in doubt, again and again, and hardly about
what is easy. The objective is a mean over the answers, and then knows little of the points that nobody needed to ask
about. So half of the weight of these answers is shared out by the points that each stands for: those that lie nearer to
the points it is about than to any others that were asked about. The other half is the same for all, since what lies far
from all that was asked about is nobody's to stand for (docs/design/questions.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from .pairs import Pairs

Array = NDArray[Any]

PICKED = 0.75  # of the points that a draw would be about, and the questions were not drawn


def were_picked(pairs: Pairs, n_samples: int) -> bool:
    """Whether somebody has chosen what to ask: a draw rarely comes back to the same points."""
    expected = n_samples * (1 - (1 - 1 / n_samples) ** (2 * len(pairs)))
    return len(pairs.points) < PICKED * expected


def evened_out(points: Array, pairs: Pairs) -> Array:
    """What each answer weighs, half by how many of the points (n, ·) it stands for, (m,); 1 on average."""
    asked = pairs.points
    nearest = NearestNeighbors(n_neighbors=1).fit(points[asked]).kneighbors(points, return_distance=False)
    n_points = np.bincount(nearest.ravel(), minlength=len(asked)).clip(1)  # a copy of another may be nearest to none
    stood_for = n_points[np.searchsorted(asked, pairs.index)].mean(1)
    return np.asarray((1 + stood_for / stood_for.mean()) / 2)
