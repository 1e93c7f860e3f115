"""k-means, also from several seeds at once.

scikit-learn chooses the first centres of one run after the other, and looks at all points for every centre. For several
seeds it is done here for all of them together, in one matrix product a centre: with 7200 points and 100 clusters that
takes a fifth of the time. What follows, Lloyd's iteration, is scikit-learn's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

Array = NDArray[Any]

SAMPLE = 10_000  # k-means looks at no more points than this, or than ten for each cluster


class Clustering(NamedTuple):
    """One k-means result."""

    labels: Array  # (n,)
    inertia: float


def kmeans(points: Array, n_clusters: int, rng: RandomState, n_init: int) -> Clustering:
    """The best of some runs, on a sample where there are very many points; all points go to their nearest centres."""
    return _lloyd(KMeans(n_clusters, n_init=n_init, random_state=rng), points, _sample(points, n_clusters, rng))


def kmeans_runs(points: Array, n_clusters: int, seeds: Array) -> list[Clustering]:
    """One run for each seed, all on the same sample."""
    sample = _sample(points, n_clusters, RandomState(seeds[0]))
    starts = first_centres(sample, n_clusters, [RandomState(seed) for seed in seeds])  # (runs, K)
    return [_lloyd(KMeans(n_clusters, init=sample[rows], n_init=1), points, sample) for rows in starts]


def most_compact(runs: Sequence[Clustering]) -> Array:
    """The labels of the run whose points are closest to their centres."""
    return min(runs, key=lambda run: run.inertia).labels


def two_parts(points: Array, seeds: Array) -> Array:
    """0 or 1 for every point, (n,)."""
    return most_compact(kmeans_runs(points, 2, seeds))


def first_centres(points: Array, n_centres: int, rngs: list[RandomState]) -> Array:
    """Rows of points that lie apart, (runs, n_centres), by k-means++ (Arthur, Vassilvitskii 2007).

    For the next centre a few points are drawn by their squared distance from the centres so far; the one that brings
    all the others the closest stays. Drawn as by scikit-learn, so that the same state chooses the same rows.
    """
    points = points - points.mean(0)  # small numbers are not lost in single precision
    n, runs, n_trials = len(points), np.arange(len(rngs)), 2 + int(np.log(n_centres))
    length = (points**2).sum(1)

    def squared_distances(rows: Array) -> Array:  # (runs, r) → (runs, r, n)
        products = (points[rows.ravel()] @ points.T).reshape(*rows.shape, n)
        return np.asarray(np.maximum(length[rows][:, :, None] - 2 * products + length, 0))

    chosen = np.empty((len(rngs), n_centres), dtype=np.intp)
    chosen[:, 0] = [rng.choice(n, p=np.full(n, 1 / n)) for rng in rngs]
    gap = squared_distances(chosen[:, :1])[:, 0]  # (runs, n)
    for k in range(1, n_centres):
        edges = gap.cumsum(1, dtype=np.float64)
        drawn = [np.searchsorted(e, rng.uniform(size=n_trials) * e[-1]) for e, rng in zip(edges, rngs, strict=True)]
        rows = np.minimum(drawn, n - 1)  # (runs, trials)
        gaps = np.minimum(gap[:, None], squared_distances(rows))
        best = gaps.sum(2).argmin(1)
        gap, chosen[:, k] = gaps[runs, best], rows[runs, best]
    return chosen


def _sample(points: Array, n_clusters: int, rng: RandomState) -> Array:
    size = max(SAMPLE, 10 * n_clusters)
    return points if len(points) <= size else points[rng.choice(len(points), size, replace=False)]


def _lloyd(kmeans: KMeans, points: Array, sample: Array) -> Clustering:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters: `fit` says so
        kmeans.fit(sample)
    return Clustering(kmeans.labels_ if sample is points else kmeans.predict(points), kmeans.inertia_)
