"""Three published strategies that put one point at a time beside the neighbourhoods that are known so far.

A neighbourhood is a group that is known to be different from all the other neighbourhoods. A point is put beside one
after the other until one is the same; if none is, it founds a neighbourhood. The strategies differ in the point that
they take next and in the order of the neighbourhoods:

================================  =============================================  ===========================
strategy                          next point                                     nearest first, by
================================  =============================================  ===========================
explore and consolidate           the farthest from all known ones, until there  distance from the centroid
(Basu, Banerjee, Mooney 2004)     are K neighbourhoods; then any
min-max                           the farthest from all known ones, always       the most similar member
(Mallapragada, Jin, Jain 2008)
normalised point-based            the largest entropy for every question that    similarity in a random
uncertainty (Xiong, Azimi,        it is expected to take                         forest
Fern 2014)
================================  =============================================  ===========================

They were written as loops that ask and wait; here each step follows from the answers alone, so that questions may stop
and go on at any time. Distances are those between codes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import xlogy

from .known import Known, places_among
from .view import View

Array = NDArray[Any]


def explore_and_consolidate(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """Farthest first until there are K neighbourhoods, then points at random (Basu, Banerjee, Mooney 2004)."""

    def worth(hoods: Neighbourhoods) -> Array:
        if len(hoods.groups) < view.n_clusters:
            return hoods.farness
        return rng.uniform(size=len(view.codes))

    return _one_by_one(view, known, n, rng, worth, lambda hoods: -hoods.centroid_distance)


def min_max(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """Always the point that is least like all that is known (Mallapragada, Jin, Jain 2008).

    Their Gaussian similarity falls with the distance, so that the least similar point is the farthest.
    """
    return _one_by_one(view, known, n, rng, lambda hoods: hoods.farness, lambda hoods: -hoods.member_distance)


def normalised_point_uncertainty(view: View, known: Known, n: int, rng: RandomState) -> Array:
    """The most uncertain point for every question that it is expected to take (Xiong, Azimi, Fern 2014)."""

    def worth(hoods: Neighbourhoods) -> Array:
        chance = hoods.forest_chance
        return entropy(chance) / expected_questions(chance)

    return _one_by_one(view, known, n, rng, worth, lambda hoods: hoods.forest_chance)


def entropy(chance: Array) -> Array:
    """−Σ p log p of every row."""
    return np.asarray(-xlogy(chance, chance).sum(1))


def expected_questions(chance: Array) -> Array:
    """How many neighbourhoods a point is put beside until one is the same, the likeliest first, of every row."""
    likeliest_first = -np.sort(-chance, axis=1)
    return np.asarray(likeliest_first @ np.arange(1, chance.shape[1] + 1))


class Neighbourhoods:
    """The neighbourhoods and where the points stand to them; ``pending`` points (·,) are being asked about."""

    def __init__(self, view: View, known: Known, pending: Array, rng: RandomState) -> None:
        self._view, self._pending = view, pending
        self.groups = known.all_different()
        if not len(self.groups):  # the first point founds one, whichever it is
            self.groups = known.group[[rng.randint(len(known.group))]]
        self.member = places_among(self.groups, len(known.size))[known.group]  # (n,) a point's neighbourhood, or −1
        self.is_apart = known.is_different_from(self.groups)  # (n, hoods)
        self.is_open = known.is_open_to(self.groups)  # (n, hoods)

    @property
    def farness(self) -> Array:
        """Distance of every point from the nearest that is in a neighbourhood or being asked about, (n,)."""
        seen = np.concatenate([np.flatnonzero(self.member >= 0), self._pending])
        return np.asarray(cdist(self._view.codes, self._view.codes[seen]).min(1))

    @property
    def centroid_distance(self) -> Array:
        """(n, hoods)"""
        codes = self._view.codes
        return cdist(codes, np.array([codes[self.member == h].mean(0) for h in range(len(self.groups))]))

    @property
    def member_distance(self) -> Array:
        """Distance from the nearest member, (n, hoods)."""
        codes = self._view.codes
        return np.column_stack([cdist(codes, codes[self.member == h]).min(1) for h in range(len(self.groups))])

    @property
    def forest_chance(self) -> Array:
        """The chance of every neighbourhood by the mean similarity to its members in a random forest, (n, hoods)."""
        leaves = self._view.forest_leaves
        means = np.column_stack([leaves[self.member == h].mean(0) for h in range(len(self.groups))])  # (leaves, hoods)
        similarity = np.where(self.is_apart, 0, leaves @ means)
        total = similarity.sum(1, keepdims=True)
        return np.asarray(np.divide(similarity, total, out=np.full_like(similarity, 1 / len(means.T)), where=total > 0))


def _one_by_one(
    view: View,
    known: Known,
    n: int,
    rng: RandomState,
    worth: Callable[[Neighbourhoods], Array],
    nearness: Callable[[Neighbourhoods], Array],
) -> Array:
    """Put the point that is worth most beside the nearest neighbourhood that is still open; so n times."""
    found = np.empty((0, 2), dtype=np.int64)
    while len(found) < n:
        hoods = Neighbourhoods(view, known, found[:, 0], rng)
        is_candidate = (hoods.member < 0) & hoods.is_open.any(1)
        is_candidate[found[:, 0]] = False
        under_way = is_candidate & hoods.is_apart.any(1)  # beside some already, and the same as none of them
        candidates = rng.permutation(np.flatnonzero(under_way if under_way.any() else is_candidate))
        if not len(candidates):
            return np.concatenate([found, known.draw(n - len(found), rng)])
        i = candidates[worth(hoods)[candidates].argmax()]
        hood = np.where(hoods.is_open[i], nearness(hoods)[i], -np.inf).argmax()
        members = np.flatnonzero(hoods.member == hood)
        j = members[((view.codes[members] - view.codes[i]) ** 2).sum(1).argmin()]
        found = np.concatenate([found, [(i, j)]])
        known.close(found[-1:])
    return found
