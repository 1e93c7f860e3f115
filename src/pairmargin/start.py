"""Where W starts. The paper says only "as in Zeng & Cheung 2012"; here the codes are clustered first, and the
head is the nearest-mean rule of that clustering.

Nothing in the objective keeps K clusters alive (a cannot-link needs only two), so a start without them is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from .cluster_count import clusters_to_use, joined
from .eigen import last_eigenvectors
from .kmeans import Clustering, kmeans, kmeans_runs, most_compact
from .pairs import Pairs

Array = NDArray[Any]

N_RUNS = 20  # k-means runs, of which the one that agrees best with the pairs is kept
N_TRIALS = 5  # of them, to see how many clusters the pairs call for
LENGTH = 2.0  # of the codes that the head sees; docs/design/start-and-scale.md
FEW = 10  # answers of a kind, up to which each has the say of one in ten; docs/design/consensus-start.md
ROUNDING = 1e-6  # share of the largest score, below which a margin is none
WIDEST = 1_000  # codes wider than this are first reduced to half as many principal components


def code_spread(codes: Array, rounding: float = 1e-8) -> float:
    """What to divide codes of mean 0 by, for a root mean square length of ``LENGTH``; shorter ones are all rounding."""
    length = float(np.sqrt((codes**2).sum(1).mean()))
    return length / LENGTH if length > rounding else 1.0


def start_head(codes: Array, n_clusters: int, pairs: Pairs, init: str, rng: RandomState) -> tuple[Array, Array]:
    """The head's weights (k, d) and biases (k,) for codes of mean 0, as ``init`` asks; k ≤ K clusters have points."""
    if init == "random":
        return _unit_margin(codes, rng.standard_normal((n_clusters, codes.shape[1])), np.zeros(n_clusters))
    with threadpool_limits(1):  # k-means on several threads adds up in an order that changes from run to run
        if init == "pairs" and pairs.same.any():
            return pair_shaped_head(codes, n_clusters, pairs, rng)
        return nearest_mean_head(codes, kmeans(codes, n_clusters, rng, n_init=10).labels)


def best_run(runs: Sequence[Clustering], pairs: Pairs) -> Array:
    """The labels of the run that agrees best with the pairs."""
    return max(runs, key=lambda run: (agreement(run.labels, pairs), -run.inertia)).labels


def pair_shaped_head(codes: Array, n_clusters: int, pairs: Pairs, rng: RandomState) -> tuple[Array, Array]:
    """Cluster where must-linked points are close and all others far; keep the run that the pairs like best.

    The nearest mean in that space is a linear rule in the codes too, so the head starts with the very same clusters.
    """
    directions = pair_shaped_directions(codes, pairs, n_directions(n_clusters))  # (d, ·)
    seeds = rng.randint(np.iinfo(np.int32).max, size=N_RUNS)

    def runs_for(k: int, seeds: Array) -> list[Clustering]:
        shaped = codes @ directions[:, -n_directions(k) :]  # the most telling directions come last
        return kmeans_runs(shaped, k, seeds)

    n_used = clusters_to_use(
        n_clusters, pairs, lambda k: [run.labels for run in runs_for(k, seeds[:N_TRIALS])], len(codes)
    )
    runs = runs_for(n_used, seeds)
    # Pairs that say what to join have no say in which run is best.
    labels = joined(most_compact(runs), pairs) if n_used < n_clusters else best_run(runs, pairs)
    directions = directions[:, -n_directions(n_used) :]
    head, bias = nearest_mean_head(codes @ directions, labels)
    return head @ directions.T, bias


def n_directions(n_clusters: int) -> int:
    """How many shaped directions to cluster in."""
    return max(2 * (n_clusters - 1), 1)


def pair_shaped_directions(codes: Array, pairs: Pairs, n_directions: int) -> Array:
    """Directions (d, ≤ n_directions) with the largest ratio of total scatter to scatter within must-links.

    The within scatter is shrunk towards a multiple of the identity, which counts for half as many answers as the codes
    have dimensions: few must-links say little about d(d + 1)/2 numbers.
    """
    if codes.shape[1] > WIDEST:
        main: Array = randomized_svd(codes, min(WIDEST // 2, len(codes)), random_state=0)[2].T  # codes have mean 0
        return main @ pair_shaped_directions(codes @ main, pairs, n_directions)
    n_dims = codes.shape[1]
    link, weight = pairs.index[pairs.same], pairs.weight[pairs.same]
    apart = (codes[link[:, 0]] - codes[link[:, 1]]) * np.sqrt(weight / (2 * weight.sum()))[:, None]
    within = apart.T @ apart  # (d, d)
    shrinkage = n_dims / (n_dims + 2 * len(link))
    spread = np.trace(within) / n_dims or 1.0  # must-linked points that all coincide say nothing of scale
    within = (1 - shrinkage) * within + shrinkage * spread * np.eye(n_dims)
    total = codes.T @ codes / len(codes)
    return last_eigenvectors(total, n_directions, within)


def agreement(labels: Array, pairs: Pairs) -> float:
    """Mean of the share of must-links kept and the share of cannot-links kept.

    Fewer than ``FEW`` of a kind count as so many, of which the others are kept: one answer is no more than a tenth.
    """
    together = labels[pairs.index[:, 0]] == labels[pairs.index[:, 1]]
    kept = together == pairs.same
    shares = []
    for kind in (pairs.same, ~pairs.same):
        if kind.any():
            given = min(kind.sum() / FEW, 1)
            shares.append(given * np.average(kept[kind], weights=pairs.weight[kind]) + (1 - given))
    return float(np.mean(shares)) if shares else 0.0


def nearest_mean_head(codes: Array, labels: Array) -> tuple[Array, Array]:
    """The linear scores whose best cluster is the one with the nearest mean, with a median margin of 1.

    A label that nobody has gets no row.
    """
    _, labels, counts = np.unique(labels, return_inverse=True, return_counts=True)
    members = sp.csr_array((np.ones(len(codes)), (labels, np.arange(len(codes)))))  # (k, n)
    means = (members @ codes) / counts[:, None]  # (k, d)
    return _unit_margin(codes, means, -0.5 * (means**2).sum(1))  # argmin ‖h − m‖² = argmax h·m − ‖m‖²/2


def _unit_margin(codes: Array, head: Array, bias: Array) -> tuple[Array, Array]:
    """Scale the head so that half of the points have a margin of at least 1: the hinges' own unit.

    Points that are undecided but for rounding, such as copies of one point in two clusters, do not count.
    """
    if len(head) < 2:
        return head, bias
    scores = codes @ head.T + bias  # (n, K)
    best = np.partition(scores, -2, axis=1)[:, -2:]
    margin = best[:, 1] - best[:, 0]
    decided = margin[margin > ROUNDING * np.abs(scores).max(initial=0)]
    unit = float(np.median(decided)) if len(decided) else 1.0
    return head / unit, bias / unit
