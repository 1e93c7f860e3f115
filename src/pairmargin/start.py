"""Where W starts. The paper says only "as in Zeng & Cheung 2012"; here the codes are clustered first, and the
head is the nearest-mean rule of that clustering.

Nothing in the objective keeps K clusters alive (a cannot-link needs only two), so a start without them is lost.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from .cluster_count import clusters_to_use, joined
from .graph import TELEPORT, LinkedGraph, embedding, neighbour_graph
from .inputs import Input, SparseInput
from .pairs import Pairs

Array = NDArray[Any]

N_RUNS = 20  # k-means runs, of which the one that agrees best with the pairs is kept
N_TRIALS = 5  # of them, to see how many clusters the pairs call for
SAMPLE = 10_000  # k-means looks at no more points than this
FAR = 100.0  # in median margins, so that training cannot wake an empty cluster, nor a new point fall into it
LENGTH = 2.0  # of the codes that the head sees; docs/design/start-and-scale.md
WIDEST = 1_000  # codes wider than this are first reduced to half as many principal components


class Clustering(NamedTuple):
    """One k-means result."""

    labels: Array  # (n,)
    inertia: float


def code_spread(codes: Array) -> float:
    """What to divide codes of mean 0 by, for a root mean square length of ``LENGTH``."""
    length = float(np.sqrt((codes**2).sum(1).mean()))
    return length / LENGTH if length > 1e-8 else 1.0  # shorter ones are all rounding


def start_head(codes: Array, n_clusters: int, pairs: Pairs, init: str, rng: RandomState) -> tuple[Array, Array]:
    """The head's weights (K, d) and biases (K,) for codes of mean 0, as ``init`` asks."""
    if init == "random":
        return _unit_margin(codes, rng.standard_normal((n_clusters, codes.shape[1])), np.zeros(n_clusters))
    with threadpool_limits(1):  # k-means on several threads adds up in an order that changes from run to run
        if init == "pairs" and pairs.same.any():
            return pair_shaped_head(codes, n_clusters, pairs, rng)
        return nearest_mean_head(codes, _kmeans(codes, n_clusters, rng, n_init=10).labels, n_clusters)


class Start(NamedTuple):
    """Clusters of some points, for the network to learn before anything else."""

    rows: Array  # (s,)
    labels: Array  # (s,)


def graph_start(codes: Array, x: Input, n_clusters: int, pairs: Pairs, rng: RandomState) -> Start:
    """Cluster where all that is known meets: codes shaped by the pairs, and two graphs with the answers in them.

    k-means in the shaped codes is good with few answers and blind to clusters that are not round. The eigenvectors of
    a graph with the answers in it are good with many, and follow neighbours where there are few. Side by side, each
    of the same length, they did better on average than any of them, or than the one that the answers like best.
    """
    with threadpool_limits(1):
        rows = _rows_to_look_at(len(codes), pairs, rng)
        codes, inputs, pairs = codes[rows], _inputs(x, rows), _among(pairs, rows, len(codes))
        seeds = rng.randint(np.iinfo(np.int32).max, size=N_RUNS)
        directions = pair_shaped_directions(codes, pairs, _n_directions(n_clusters))

        def simple_runs(k: int) -> list[Array]:
            shaped = codes @ directions[:, -_n_directions(k) :]
            return [_kmeans(shaped, k, RandomState(seed), n_init=1).labels for seed in seeds[:N_TRIALS]]

        n_used = clusters_to_use(n_clusters, pairs, simple_runs)
        together = views(codes, inputs, pairs, n_used)
        runs = [_kmeans(together, n_used, RandomState(seed), n_init=1) for seed in seeds]
        return Start(rows, best_run(runs, pairs, join=n_used < n_clusters))


def views(codes: Array, inputs: Array, pairs: Pairs, n_clusters: int) -> Array:
    """The shaped codes and the eigenvectors of both graphs, each of mean 0 and mean square length 1, side by side."""
    shaped = [z @ pair_shaped_directions(z, pairs, _n_directions(n_clusters)) for z in (codes, inputs)]
    graphs = [LinkedGraph.build(neighbour_graph(z), pairs) for z in shaped]
    vectors = [embedding(graph, graph.degree, n_clusters, TELEPORT * graph.tie) for graph in graphs]
    return np.hstack([_of_length_1(view) for view in (shaped[0], *vectors)])


def best_run(runs: Sequence[Clustering], pairs: Pairs, join: bool) -> Array:
    """The labels of the run that agrees best with the pairs, or, if clusters are to be joined, of the most compact."""
    if join:  # the pairs say what to join, and so have no say in which run is best
        return joined(min(runs, key=lambda run: run.inertia).labels, pairs)
    return max(runs, key=lambda run: (agreement(run.labels, pairs), -run.inertia)).labels


def _inputs(x: Input, rows: Array) -> Array:
    """The inputs of some rows, of mean 0; of sparse ones, which stay sparse, the main components."""
    if isinstance(x, SparseInput):
        scaled = x.x[rows] @ sp.diags_array(1 / x.scale.cpu().numpy())
        left, size, _ = randomized_svd(scaled, min(WIDEST // 10, *scaled.shape), random_state=0)
        dense = left * size
    else:
        dense = x.rows(torch.from_numpy(rows)).cpu().numpy().astype(np.float64)
    return np.asarray(dense - dense.mean(0))


def _of_length_1(points: Array) -> Array:
    centred = points - points.mean(0)
    length = np.sqrt((centred**2).sum(1).mean())
    return np.asarray(centred / length if length > 0 else centred)


def _rows_to_look_at(n: int, pairs: Pairs, rng: RandomState) -> Array:
    """All rows, or where there are very many, a sample that begins with those in pairs."""
    if n <= SAMPLE:
        return np.arange(n)
    asked = pairs.points if len(pairs.points) <= SAMPLE // 2 else rng.choice(pairs.points, SAMPLE // 2, replace=False)
    others = rng.choice(np.setdiff1d(np.arange(n), asked), SAMPLE - len(asked), replace=False)
    return np.sort(np.concatenate([asked, others]))


def _among(pairs: Pairs, rows: Array, n: int) -> Pairs:
    """The pairs of which both points are among some rows, by their places there."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    index = place[pairs.index]
    kept = (index >= 0).all(1)
    return Pairs(index[kept], pairs.same[kept], pairs.weight[kept])


def pair_shaped_head(codes: Array, n_clusters: int, pairs: Pairs, rng: RandomState) -> tuple[Array, Array]:
    """Cluster where must-linked points are close and all others far; keep the run that the pairs like best.

    The nearest mean in that space is a linear rule in the codes too, so the head starts with the very same clusters.
    """
    directions = pair_shaped_directions(codes, pairs, n_directions=_n_directions(n_clusters))  # (d, ·)
    seeds = rng.randint(np.iinfo(np.int32).max, size=N_RUNS)

    def runs_for(k: int, seeds: Array) -> list[Clustering]:
        shaped = codes @ directions[:, -_n_directions(k) :]  # the most telling directions come last
        return [_kmeans(shaped, k, RandomState(seed), n_init=1) for seed in seeds]

    n_used = clusters_to_use(n_clusters, pairs, lambda k: [run.labels for run in runs_for(k, seeds[:N_TRIALS])])
    labels = best_run(runs_for(n_used, seeds), pairs, join=n_used < n_clusters)
    directions = directions[:, -_n_directions(n_used) :]
    head, bias = nearest_mean_head(codes @ directions, labels, n_clusters)
    return head @ directions.T, bias


def _n_directions(n_clusters: int) -> int:
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
    n_directions = min(n_directions, n_dims)
    directions: Array = scipy.linalg.eigh(total, within, subset_by_index=(n_dims - n_directions, n_dims - 1))[1]
    return directions


def agreement(labels: Array, pairs: Pairs) -> float:
    """Mean of the share of must-links kept and the share of cannot-links kept."""
    together = labels[pairs.index[:, 0]] == labels[pairs.index[:, 1]]
    kept = together == pairs.same
    if not len(kept):
        return 0.0
    return float(np.mean([np.average(kept[k], weights=pairs.weight[k]) for k in (pairs.same, ~pairs.same) if k.any()]))


def nearest_mean_head(codes: Array, labels: Array, n_clusters: int) -> tuple[Array, Array]:
    """The linear scores whose best cluster is the one with the nearest mean, with a median margin of 1."""
    n = len(codes)
    counts = np.bincount(labels, minlength=n_clusters)
    members = sp.csr_array((np.ones(n), (labels, np.arange(n))), shape=(n_clusters, n))
    means = (members @ codes) / np.maximum(counts, 1)[:, None]  # (K, d)
    bias = -0.5 * (means**2).sum(1)  # argmin ‖h − m‖² = argmax h·m − ‖m‖²/2
    used = counts > 0
    means[used], bias[used] = _unit_margin(codes, means[used], bias[used])
    bias[~used] = (codes @ means[used].T + bias[used]).max(1).min() - FAR  # an empty cluster wins nowhere, ever
    return means, bias


def _unit_margin(codes: Array, head: Array, bias: Array) -> tuple[Array, Array]:
    """Scale the head so that half of the points have a margin of at least 1: the hinges' own unit."""
    if len(head) < 2:
        return head, bias
    scores = codes @ head.T + bias  # (n, K)
    best = np.partition(scores, -2, axis=1)[:, -2:]
    median = float(np.median(best[:, 1] - best[:, 0]))
    return (head / median, bias / median) if median > np.finfo(codes.dtype).tiny else (head, bias)


def _kmeans(points: Array, n_clusters: int, rng: RandomState, n_init: int) -> Clustering:
    """k-means on a sample where there are very many points; every point goes to its nearest centre."""
    size = max(SAMPLE, 10 * n_clusters)
    sample = points if len(points) <= size else points[rng.choice(len(points), size, replace=False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters: `fit` says so
        kmeans = KMeans(n_clusters, n_init=n_init, random_state=rng).fit(sample)
    return Clustering(kmeans.labels_ if sample is points else kmeans.predict(points), kmeans.inertia_)
