"""MPCK-means: PCK-means that also learns how to measure distances, in each cluster anew.

=========  ====================  ======================================================================
symbol     name                  meaning
=========  ====================  ======================================================================
x_i        ``points``            the points, (n, d)
μ_h        ``centres``           the centres of the clusters, (K, d)
l_i        ``labels``            the cluster of each point, (n,)
A_h        ``metrics``           the metric of each cluster, (K, d) or (K, d, d)
w_ij       ``weight``            weight of the answer about i and j times the penalty, (m, 1)
f_M, f_C   ``broken``            what broken "same" and "different" answers cost by their length, (m, K)
x′, x″     ``far``               differences of points that lie far apart, (·, d)
γ          ``prior``             how many points of ordinary spread each metric is made to have seen
=========  ====================  ======================================================================

With ‖v‖²_A = vᵀAv, the paper's objective is J_mpckm = Σ_i (‖x_i − μ_{l_i}‖²_{A_{l_i}} − log det A_{l_i})
+ Σ_{same} w_ij f_M(i, j) [l_i ≠ l_j] + Σ_{different} w_ij f_C(i, j) [l_i = l_j].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..pairs import Pairs
from ..validation import NOT_NEGATIVE, POSITIVE, Rules, integer, one_of, validated, validated_fit
from .linked_kmeans import Array, Fit, Prices, cluster_means, descend, linked_start, membership, squared_distances

LEAST = 1e-7  # share of its largest eigenvalue, below which a matrix has no inverse that is positive definite too
N_FAR = 20  # points that lie far apart, among whose pairs the longest is looked for

RULES: Rules = {
    "n_clusters": integer(1),
    "metric": one_of("diagonal", "full"),
    "shared": ("True or False", lambda v: isinstance(v, (bool, np.bool_))),
    "penalty": NOT_NEGATIVE,
    "regularization": POSITIVE,
    "n_init": integer(1),
    "max_iter": integer(1),
    "tol": NOT_NEGATIVE,
    "on_conflict": one_of("raise", "drop", "keep"),
}


@dataclass(frozen=True)
class DiagonalMetrics:
    """One weight for each feature and cluster."""

    matrix: Array  # (K, d)

    @classmethod
    def fitting(cls, scatter: Array, count: Array) -> DiagonalMetrics:
        return cls(count[:, None] / scatter)

    @staticmethod
    def scatter(differences: Array, weight: sp.csr_array[Any]) -> Array:
        """Σ w v² of the differences v (m, d) for each row of weights (K, m), (K, d)."""
        return np.asarray(weight @ differences**2)

    @staticmethod
    def lifted(scatter: Array, by: float) -> Array:
        """The scatter without its negative part, and something added in all directions."""
        return np.maximum(scatter, 0) + by

    @property
    def log_det(self) -> Array:  # (K,)
        return np.asarray(np.log(self.matrix).sum(axis=1))

    @property
    def trace(self) -> Array:  # (K,)
        return np.asarray(self.matrix.sum(axis=1))

    def squared_lengths(self, differences: Array) -> Array:
        """In every metric, (m, K)."""
        return np.asarray(differences**2 @ self.matrix.T)

    def squared_distances(self, points: Array, centres: Array) -> Array:
        """From every centre in its own metric, (n, K)."""
        scaled = self.matrix * centres
        distance = points**2 @ self.matrix.T - 2 * points @ scaled.T + (scaled * centres).sum(axis=1)
        return np.asarray(np.maximum(distance, 0))


@dataclass(frozen=True)
class FullMetrics:
    """One positive definite matrix for each cluster; the methods are those of `DiagonalMetrics`."""

    matrix: Array  # (K, d, d)

    @classmethod
    def fitting(cls, scatter: Array, count: Array) -> FullMetrics:
        return cls(count[:, None, None] * np.linalg.inv(scatter))

    @staticmethod
    def scatter(differences: Array, weight: sp.csr_array[Any]) -> Array:
        rows = [weight[[h]] for h in range(weight.shape[0])]
        return np.stack([(differences[row.indices].T * row.data) @ differences[row.indices] for row in rows])

    @staticmethod
    def lifted(scatter: Array, by: float) -> Array:
        value, vector = np.linalg.eigh(scatter)
        value = np.maximum(value, 0) + by
        value = np.maximum(value, LEAST * value.max(axis=1, keepdims=True))
        return np.asarray((vector * value[:, None]) @ vector.transpose(0, 2, 1))

    @cached_property
    def _factor(self) -> Array:  # (K, d, d)
        return np.asarray(np.linalg.cholesky(self.matrix))

    @property
    def log_det(self) -> Array:
        return np.asarray(2 * np.log(np.diagonal(self._factor, axis1=1, axis2=2)).sum(axis=1))

    @property
    def trace(self) -> Array:
        return np.asarray(np.trace(self.matrix, axis1=1, axis2=2))

    def squared_lengths(self, differences: Array) -> Array:
        return np.stack([((differences @ factor) ** 2).sum(axis=1) for factor in self._factor], axis=1)

    def squared_distances(self, points: Array, centres: Array) -> Array:
        both = zip(self._factor, centres, strict=True)
        return np.stack([(((points - centre) @ factor) ** 2).sum(axis=1) for factor, centre in both], axis=1)


Metrics = DiagonalMetrics | FullMetrics


@dataclass(frozen=True)
class _Task:
    """What stays the same while the clusters change."""

    points: Array  # (n, d), of mean 0
    pairs: Pairs
    weight: Array  # (m, 1)
    apart: Array  # (m, d), x_i − x_j of every pair
    far: Array  # (·, d)
    prior: float
    spread: float  # variance of an ordinary cluster in one feature
    shared: bool


@dataclass(frozen=True)
class _Clusters:
    """Centres and metrics."""

    task: _Task
    centres: Array  # (K, d)
    metrics: Metrics

    def prices(self) -> Prices:
        """J_mpckm, and the prior's part in it."""
        task, log_det = self.task, self.metrics.log_det
        distance = self.metrics.squared_distances(task.points, self.centres) - log_det  # (n, K)
        length = self.metrics.squared_lengths(task.apart)  # (m, K)
        longest = self.metrics.squared_lengths(task.far).max(axis=0)  # (K,)
        broken = task.weight * np.where(task.pairs.same[:, None], length, longest - length)  # f_M, f_C
        prior = task.prior * (task.spread * self.metrics.trace - log_det)  # (K,)
        return Prices.of_answers(distance, broken, task.pairs, prior.mean() if task.shared else prior.sum())

    def update(self, labels: Array, prices: Prices) -> _Clusters:
        """The best centres for these labels, then the best metrics for these centres."""
        task, n_clusters = self.task, len(self.centres)
        centres = cluster_means(task.points, np.ones(len(labels)), labels, prices.cost)
        scatter = self._scatter(labels, centres)
        count = np.bincount(labels, minlength=n_clusters)
        if task.shared:
            scatter = np.broadcast_to(scatter.sum(axis=0), scatter.shape)
            count = np.full(n_clusters, len(labels))
        lifted = self.metrics.lifted(scatter, task.prior * task.spread)
        return replace(self, centres=centres, metrics=self.metrics.fitting(lifted, count + task.prior))  # A_h

    def _scatter(self, labels: Array, centres: Array) -> Array:
        """The sums in A_h: of the points about their centres, and of the answers that are broken."""
        task, kind, n_clusters = self.task, type(self.metrics), len(self.centres)
        around = kind.scatter(task.points - centres[labels], membership(labels, n_clusters))
        broken, n_longest = broken_answers(task.pairs, task.weight[:, 0], labels, n_clusters)
        longest = task.far[self.metrics.squared_lengths(task.far).argmax(axis=0)]  # x′ − x″ of each cluster
        answers = kind.scatter(task.apart, broken) + kind.scatter(longest, sp.diags_array(n_longest).tocsr())
        return np.asarray(around + answers)


def broken_answers(pairs: Pairs, weight: Array, labels: Array, n_clusters: int) -> tuple[sp.csr_array[Any], Array]:
    """How much the length of each broken answer counts in each cluster (K, m), and the longest length (K,)."""
    first, second = labels[pairs.index].T
    split = np.flatnonzero(pairs.same & (first != second))
    merged = np.flatnonzero(~pairs.same & (first == second))
    cluster = np.concatenate([first[split], second[split], first[merged]])
    pair = np.concatenate([split, split, merged])
    share = np.concatenate([weight[split] / 2, weight[split] / 2, -weight[merged]])
    lengths = sp.csr_array((share, (cluster, pair)), shape=(n_clusters, len(pairs)))
    return lengths, np.asarray(-lengths.minimum(0).sum(axis=1))


def far_apart(points: Array, n_far: int) -> Array:
    """Differences (·, d) of a few points, each of which is the farthest from all before it."""
    chosen = [int((points**2).sum(axis=1).argmax())]
    gap = np.full(len(points), np.inf)
    for _ in range(n_far - 1):
        gap = np.minimum(gap, squared_distances(points, points[chosen[-1:]])[:, 0])
        chosen.append(int(gap.argmax()))
    i, j = np.triu_indices(len(chosen))  # each with itself too, as there may be but one
    return points[chosen][i] - points[chosen][j]


class MPCKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Metric pairwise constrained k-means: broken answers have a price and shape the distances.

    Like `PCKMeans`, but every cluster measures distances by its own metric, which follows from the spread of its
    points and the answers that are broken in it: a broken "same" answer costs more the farther its points are apart,
    a broken "different" answer the closer they are.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.
    metric : {"diagonal", "full"}, default="diagonal"
        A weight for each feature, or a whole matrix. The latter is for some tens of features.
    shared : bool, default=False
        One metric for all clusters instead of one for each.
    penalty : float, default=1.0
        Factor of the price of broken answers.
    regularization : float, default=30.0
        How many points of ordinary spread each metric is made to have seen, for each feature. Small values let few
        points, or features that hardly vary, decide the metric.
    n_init : int, default=10
        Number of runs; the one with the lowest objective is kept.
    max_iter : int, default=300
        Largest number of iterations of a run.
    tol : float, default=1e-4
        A run stops when the objective, for each point and feature, falls by no more than this.
    on_conflict : {"raise", "drop", "keep"}, default="raise"
        What to do with pairs that contradict each other.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every point.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the clusters.
    metrics_ : ndarray of shape (n_clusters, n_features) or (n_clusters, n_features, n_features)
        The metric of every cluster: weights, or matrices.
    objective_ : float
        Distances from the centres, log-determinants of the metrics and prices of broken answers; may be negative.
    n_iter_ : int
        Iterations of the kept run.

    Notes
    -----
    Differs from the paper:

    - For singular sums the paper adds a fraction of the trace. Here every metric has seen some points of ordinary
      spread, as a part of the objective, which therefore still falls. The spread is that of must-linked points.
    - The two points that lie farthest apart are looked for among a few that do, and among the "different" pairs.
      They depend on the metric, so that a new metric may raise the objective: the run then ends with the old one.
    - The start is that of `PCKMeans`, whole neighbourhoods choose first and no answers are added, as there.

    References
    ----------
    Mikhail Bilenko, Sugato Basu, Raymond J. Mooney (2004). Integrating Constraints and Metric Learning in
    Semi-Supervised Clustering. International Conference on Machine Learning.

    Examples
    --------
    >>> from pairmargin import MPCKMeans, clustering_accuracy, sample_pairs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MPCKMeans(3, random_state=0).fit(X, pairs=sample_pairs(y, 100, random_state=0))
    >>> clustering_accuracy(y, model.labels_) > 0.9
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str = "diagonal",
        shared: bool = False,
        penalty: float = 1.0,
        regularization: float = 30.0,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        on_conflict: str = "raise",
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.shared = shared
        self.penalty = penalty
        self.regularization = regularization
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.on_conflict = on_conflict
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None) -> MPCKMeans:
        """Cluster the rows of X and learn the metrics, paying for answers in ``pairs`` that are broken.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : ignored
            Here because scikit-learn expects it; labels are never looked at.
        pairs : Pairs, optional
            The answers; their weights multiply ``penalty``. Without any, this is k-means with metrics.

        Returns
        -------
        self : MPCKMeans
        """
        data, pairs = validated_fit(self, X, pairs, RULES)
        rng = check_random_state(self.random_state)

        mean = data.mean(axis=0, dtype=np.float64)
        task = self._task(data - mean, pairs)
        best = min((self._run(task, rng) for _ in range(self.n_init)), key=lambda fit: fit.objective)
        self.labels_, self.objective_, self.n_iter_ = best.labels, best.objective, best.n_iter
        self.cluster_centers_ = (best.model.centres + mean).astype(data.dtype)
        self.metrics_ = best.model.metrics.matrix
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The cluster of the nearest centre in that cluster's metric for every row of X; pairs play no part."""
        check_is_fitted(self)
        data = validated(self, X, reset=False)
        metrics = (DiagonalMetrics if self.metrics_.ndim == 2 else FullMetrics)(self.metrics_)
        origin = self.cluster_centers_.mean(axis=0, dtype=np.float64)
        distance = metrics.squared_distances(data - origin, self.cluster_centers_ - origin)
        return np.asarray((distance - metrics.log_det).argmin(axis=1))

    def _task(self, points: Array, pairs: Pairs) -> _Task:
        """What all runs work on."""
        apart = points[pairs.index[:, 0]] - points[pairs.index[:, 1]]
        far = np.vstack([far_apart(points, min(N_FAR, len(points))), apart[~pairs.same]])
        linked = apart[pairs.same] / np.sqrt(2) if pairs.same.any() else points
        return _Task(
            points=points,
            pairs=pairs,
            weight=self.penalty * pairs.weight[:, None],
            apart=apart,
            far=far,
            prior=self.regularization * points.shape[1],
            spread=float((linked**2).mean()) or 1.0,  # points that all coincide say nothing of scale
            shared=bool(self.shared),
        )

    def _run(self, task: _Task, rng: RandomState) -> Fit:
        """One descent, from metrics that weigh all features alike."""
        n, n_features = task.points.shape
        centres = linked_start(task.points, task.pairs, self.n_clusters, rng)
        equal = np.ones((self.n_clusters, n_features)) / task.spread
        metrics: Metrics = DiagonalMetrics(equal)
        if self.metric == "full":
            metrics = FullMetrics(equal[:, :, None] * np.eye(n_features))
        clusters = _Clusters(task, centres, metrics)
        least_fall = self.tol * n * n_features
        return descend(clusters, task.pairs, max_iter=self.max_iter, least_fall=least_fall, rng=rng)
