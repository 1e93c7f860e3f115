"""Two plain strategies: at random, and where the model is the least certain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .known import Known
from .view import View

Array = NDArray[Any]


def ask_at_random(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """Open questions, each pair of points as likely as any other."""
    return known.draw(n, rng)


def ask_the_uncertain(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """The pairs with the smallest |same − different| of eq. (8), no point standing for the uncertain side twice.

    That is never less than the smaller margin of both points, and it is just that between a point and any surer one
    of its best cluster or of its second best. So the points are taken by their margins, and each is put beside the
    surest points of these two clusters, until one of the questions is open.
    """
    if view.scores.shape[1] < 2:
        return known.draw(n, rng)  # with one cluster no pair is more uncertain than another
    order = np.argsort(-view.scores, axis=1, kind="stable")[:, :2]  # (n, 2) best and second best
    best_two = np.take_along_axis(view.scores, order, axis=1)
    margin = best_two[:, 0] - best_two[:, 1]
    surest_first = np.argsort(-margin, kind="stable")
    found: list[tuple[int, int]] = []
    for i in surest_first[::-1]:
        if len(found) == n:
            break
        surer = surest_first[margin[surest_first] >= margin[i]]
        partners = np.concatenate([surer[order[surer, 0] == cluster] for cluster in order[i]])
        asked = np.column_stack([np.full(len(partners), i), partners])
        open_ones = asked[known.is_open(asked)]
        if len(open_ones):
            found.append((int(open_ones[0, 0]), int(open_ones[0, 1])))
            known.close(open_ones[:1])
    index = np.array(found, dtype=np.int64).reshape(-1, 2)
    return index if len(index) == n else np.concatenate([index, known.draw(n - len(index), rng)])
