"""What the answers so far settle, and which questions are still open."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from ..graph import trusted_components
from ..pairs import Pairs

Array = NDArray[Any]

TRIES = 20  # pairs drawn for each that is wanted, before all that are left are written out


class Known:
    """The groups that "same" answers make, and the pairs of groups about which nothing is left to ask.

    A question is open if its answer does not follow from the others and nobody was asked it before. A group with a
    contradiction inside proves nothing, so its points stand alone, but what was asked about them is not asked again.

    Parameters
    ----------
    pairs : Pairs
        The answers.
    n : int
        The number of points.
    exclude : array-like of shape (m, 2), default=()
        Pairs of points to leave alone, such as those about which a person was unsure; their groups are left alone too.

    Attributes
    ----------
    group : ndarray of shape (n,)
        The group of every point; one that no "same" answer is about is a group of its own.
    size : ndarray of shape (n_groups,)
    """

    def __init__(self, pairs: Pairs, n: int, exclude: ArrayLike = ()) -> None:
        self.group: Array = trusted_components(pairs, n)[0]
        self.size: Array = np.bincount(self.group, minlength=1 if n else 0)
        left_alone = Pairs.check_rows(exclude, n)
        self.different: Array = self._ordered(pairs.cannot_link)  # (·, 2) groups
        self.closed: Array = self._keys(np.concatenate([pairs.index, left_alone]))

    def close(self, index: Array) -> None:
        """Ask no more about the groups of these pairs (m, 2)."""
        self.closed = np.union1d(self.closed, self._keys(index))

    def is_open(self, index: Array) -> Array:
        """Which of these pairs (m, 2) are worth a question, (m,)."""
        one, other = self.group[index].T
        return np.asarray((one != other) & ~np.isin(self._codes(self._ordered(index)), self.closed))

    def is_open_to(self, groups: Array) -> Array:
        """Which points are worth a question beside which of these groups, (n, len(groups))."""
        is_closed = self._table(np.column_stack(np.divmod(self.closed, len(self.size))), groups)
        return np.asarray(~is_closed[self.group] & (self.group[:, None] != groups))

    def is_different_from(self, groups: Array) -> Array:
        """Which points are known to be different from which of these groups, (n, len(groups))."""
        return np.asarray(self._table(self.different, groups)[self.group])

    def all_different(self) -> Array:
        """Groups about which there are answers, each known to be different from all the others; large ones first."""
        rivals: dict[int, set[int]] = {int(group): set() for group in np.flatnonzero(self.size > 1)}
        for one, other in self.different.tolist():
            rivals.setdefault(one, set()).add(other)
            rivals.setdefault(other, set()).add(one)
        chosen: list[int] = []
        for group in sorted(rivals, key=lambda g: (-self.size[g], -len(rivals[g]), g)):
            if rivals[group].issuperset(chosen):
                chosen.append(group)
        return np.array(chosen, dtype=np.int64)

    def _table(self, ties: Array, groups: Array) -> Array:
        """Which groups are tied to which of some, (n_groups, len(groups))."""
        place = places_among(groups, len(self.size))
        table = np.zeros((len(self.size), len(groups)), dtype=bool)
        for one, other in (ties.T, ties[:, ::-1].T):
            is_one = place[other] >= 0
            table[one[is_one], place[other[is_one]]] = True
        return table

    def open_pairs(self) -> Array:
        """Every open question once: two groups, each with its first point, (·, 2)."""
        first = np.unique(self.group, return_index=True)[1]
        index = np.column_stack([first[place] for place in np.triu_indices(len(first), 1)])
        return index[self.is_open(index)]

    def draw(self, n: int, rng: RandomState) -> Array:
        """Open questions (≤ n, 2), each pair of points as likely as any other, and none that repeats another."""
        found = np.empty((0, 2), dtype=np.int64)
        n_points = len(self.group)
        if n_points > 1:
            drawn = rng.randint(n_points, size=(TRIES * n, 2))
            found = self._once(drawn[self.is_open(drawn)])[:n]
        if len(found) < n:
            left = self.open_pairs()
            chance = self.size[self.group[left]].prod(1).astype(float)
            keys = rng.exponential(size=len(left)) / chance  # the smallest is each one's with its chance, and so on
            found = self._once(np.concatenate([found, left[np.argsort(keys)]]))[:n]
        return found

    def _once(self, index: Array) -> Array:
        """The first pair of every two groups."""
        places = np.unique(self._codes(self._ordered(index)), return_index=True)[1]
        return index[np.sort(places)]

    def _ordered(self, index: Array) -> Array:
        return np.sort(self.group[index], axis=1)

    def _codes(self, groups: Array) -> Array:
        return np.asarray(groups @ (len(self.size), 1))

    def _keys(self, index: Array) -> Array:
        return np.unique(self._codes(self._ordered(index)))


def places_among(items: Array, n: int) -> Array:
    """The place of each of n things among some items, or −1, (n,)."""
    place = np.full(n, -1)
    place[items] = np.arange(len(items))
    return place
