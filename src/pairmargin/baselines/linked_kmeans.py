"""What the k-means of linked points have in common: distances, where to start, and how linked points choose.

The price of a clustering is written in three parts, so that one rule serves every method:

===============  ======  ============================================================================================
``cost``         (n, K)  what a point pays in a cluster, among it half the price of each of its "same" answers
``togetherness`` (m, K)  what a pair pays on top if both its points are in that cluster: for a "different" answer its
                         price, for a "same" answer its price taken back
``fixed``                what is paid whatever the points choose
===============  ======  ============================================================================================

A broken answer is then paid for in full and a kept one not at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray

from ..pairs import Pairs

Array = NDArray[Any]


# Distances and means


def squared_distances(points: Array, centres: Array) -> Array:
    """From every point to every centre, (n, K). Far from the origin digits are lost: shift both before."""
    lengths = np.einsum("nd,nd->n", points, points)[:, None] + np.einsum("kd,kd->k", centres, centres)
    return np.asarray(np.maximum(lengths - 2 * points @ centres.T, 0))


def nearest(points: Array, centres: Array) -> Array:
    """The nearest centre of every point, (n,)."""
    origin = centres.mean(axis=0)
    return np.asarray(squared_distances(points - origin, centres - origin).argmin(axis=1))


def membership(labels: Array, n_groups: int) -> sp.csr_array[Any]:
    """1 where a point is in a group, (n_groups, n)."""
    n = len(labels)
    return sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(n_groups, n))


def group_means(points: Array, labels: Array) -> tuple[Array, Array]:
    """Means (·, d) and sizes (·,) of groups, none of which is empty."""
    size = np.bincount(labels)
    return membership(labels, len(size)) @ points / size[:, None], size


def cluster_means(points: Array, weight: Array, labels: Array, cost: Array) -> Array:
    """Weighted means (K, d). An empty cluster goes to the point that pays the most where it is, which costs nothing."""
    members = membership(labels, cost.shape[1])
    size = members @ weight
    means: Array = members @ (points * weight[:, None]) / np.maximum(size, 1)[:, None]
    empty = np.flatnonzero(size == 0)
    dearest = np.argsort(-paid(cost, labels), kind="stable")
    means[empty] = points[np.resize(dearest, len(empty))]  # over again if there are fewer points than clusters
    return means


def paid(cost: Array, labels: Array) -> Array:
    """What each point pays where it is, (n,)."""
    return np.take_along_axis(cost, labels[:, None], axis=1)[:, 0]


# Where to start


def linked_start(points: Array, pairs: Pairs, n_clusters: int, rng: RandomState) -> Array:
    """Centres (K, d): means of neighbourhoods, which the "same" answers make, or single points if these are too few.

    Differs from the papers. Of more than K neighbourhoods some are drawn, not the farthest taken: the farthest are
    outliers (on Digits that costs 7 points of accuracy), and always the same. Fewer than K are not filled up with
    single points: a mean of several points is closer to all others than a single point is, and would draw them in.
    """
    means, size = group_means(points, pairs.components(len(points)))
    linked = size > 1
    if linked.sum() < n_clusters:
        return spread_out(points, np.ones(len(points)), n_clusters, rng)
    return spread_out(means[linked], size[linked], n_clusters, rng)


def spread_out(candidates: Array, weight: Array, n_centres: int, rng: RandomState) -> Array:
    """Centres (n_centres, d) among the candidates, by k-means++ with weights.

    A few are drawn by weight × squared distance from the centres so far; the one that brings all the closest stays.
    """
    n_trials = 2 + int(np.log(n_centres))
    centres = candidates[rng.choice(len(candidates), 1, p=weight / weight.sum())]
    gap = squared_distances(candidates, centres)[:, 0]
    while len(centres) < n_centres:
        chance = weight * gap if gap.any() else weight  # no gaps: fewer distinct points than centres
        drawn = candidates[rng.choice(len(candidates), n_trials, p=chance / chance.sum())]
        gaps = np.minimum(gap[:, None], squared_distances(candidates, drawn))  # (·, trials)
        best = int((weight @ gaps).argmin())
        gap = gaps[:, best]
        centres = np.vstack([centres, drawn[best]])
    return centres


# How linked points choose


class Prices(NamedTuple):
    """What a clustering costs; the table at the top of the file."""

    cost: Array  # (n, K)
    togetherness: Array  # (m, K)
    fixed: float = 0.0

    @classmethod
    def of_answers(cls, distance: Array, answer: Array, pairs: Pairs, fixed: float = 0.0) -> Prices:
        """From what a point pays for its distance (n, K) and a pair for a broken answer (m, K) in a cluster.

        A broken "same" answer is paid for by halves, each in the cluster of one of the two points.
        """
        same = pairs.same[:, None]
        ends, pair = pairs.index.ravel(), np.repeat(np.arange(len(pairs)), 2)
        halves = sp.csr_array((np.full(len(ends), 0.5), (ends, pair)), shape=(len(distance), len(pairs)))
        return cls(distance + halves @ np.where(same, answer, 0), np.where(same, -answer, answer), fixed)

    def total(self, pairs: Pairs, labels: Array) -> float:
        """The objective: what all points and pairs pay."""
        first, second = labels[pairs.index].T
        together = np.flatnonzero(first == second)
        extra = self.togetherness[together, first[together]].sum()
        return float(paid(self.cost, labels).sum() + extra + self.fixed)


def turns(index: Array, n: int, rng: RandomState) -> Array:
    """When each of n points may choose, (n,), if they choose in a random order but need not wait without reason.

    A point waits only for those it is linked with (``index``, (m, 2)) that come before it. The outcome is the same as
    one after another, in as few rounds as the longest chain of waiting has links.
    """
    place = rng.permutation(n)
    ordered = np.where((place[index[:, 0]] < place[index[:, 1]])[:, None], index, index[:, ::-1])
    first, second = ordered.T
    turn = np.zeros(n, dtype=np.intp)
    while True:
        later = np.zeros(n, dtype=np.intp)
        np.maximum.at(later, second, turn[first] + 1)
        if (later == turn).all():
            return turn
        turn = later


def choose(prices: Prices, index: Array, labels: Array, rng: RandomState) -> Array:
    """Each point takes its cheapest cluster, given those of the points it is linked with: one sweep of ICM."""
    chosen: Array = prices.cost.argmin(axis=1)  # for all points in no pair
    chosen[index] = labels[index]
    point, other = np.concatenate([index, index[:, ::-1]]).T  # every pair from both its ends
    pair = np.tile(np.arange(len(index)), 2)
    turn = turns(index, len(chosen), rng)[point]
    order = np.argsort(turn, kind="stable")
    for now in np.split(order, np.cumsum(np.bincount(turn))[:-1]):
        chooser, row = np.unique(point[now], return_inverse=True)
        taken = chosen[other[now]]
        price = prices.cost[chooser]
        np.add.at(price, (row, taken), prices.togetherness[pair[now], taken])
        chosen[chooser] = price.argmin(axis=1)
    return chosen


def choose_as_groups(prices: Prices, index: Array, labels: Array, group: Array, rng: RandomState) -> Array:
    """The same for groups whose points are all in one cluster and move as one; the points of others are on their own.

    Must-linked points could not leave a cluster one by one if each would have to break an answer first.
    """
    lowest, highest = np.full(group.max() + 1, labels.max()), np.zeros(group.max() + 1, dtype=labels.dtype)
    np.minimum.at(lowest, group, labels)
    np.maximum.at(highest, group, labels)
    alone = (lowest != highest)[group]
    unit = np.unique(np.where(alone, len(lowest) + np.arange(len(group)), group), return_inverse=True)[1]
    unit_labels = np.empty(unit.max() + 1, dtype=labels.dtype)
    unit_labels[unit] = labels
    return choose(*merged(prices, index, unit), unit_labels, rng)[unit]


def merged(prices: Prices, index: Array, unit: Array) -> tuple[Prices, Array]:
    """Prices for units of points that choose as one, and the pairs between units."""
    cost = membership(unit, unit.max() + 1) @ prices.cost
    index = unit[index]
    inside = index[:, 0] == index[:, 1]
    np.add.at(cost, index[inside, 0], prices.togetherness[inside])
    return Prices(cost, prices.togetherness[~inside], prices.fixed), index[~inside]


class Model(Protocol):
    """What a method knows of its clusters: prices for given clusters, and better clusters for given labels."""

    def prices(self) -> Prices: ...
    def update(self: M, labels: Array, prices: Prices) -> M: ...


M = TypeVar("M", bound=Model)


class Fit(NamedTuple):
    """Where a descent ended."""

    labels: Array  # (n,)
    objective: float
    n_iter: int
    model: Any


def descend(model: M, pairs: Pairs, *, max_iter: int, least_fall: float, rng: RandomState) -> Fit:
    """Points choose, then the model follows, in turn until the objective falls by less; the last that it fell to."""
    prices = model.prices()
    group = pairs.components(len(prices.cost))
    start = merged(prices, pairs.index, group)[0].cost.argmin(axis=1)[group]  # "same" answers are kept to begin with
    best = Fit(start, np.inf, 0, model)
    for n_iter in range(1, max_iter + 1):
        labels = choose_as_groups(prices, pairs.index, best.labels, group, rng)
        labels = choose(prices, pairs.index, labels, rng)
        objective = prices.total(pairs, labels)
        fall = best.objective - objective
        if fall > 0:
            best = Fit(labels, objective, n_iter, model)
        if fall <= least_fall:
            break
        model = model.update(labels, prices)
        prices = model.prices()
    return best
