"""PCK-means: k-means that pays for broken answers.

=========  ====================  ==================================================================
symbol     name                  meaning
=========  ====================  ==================================================================
x_i        ``points``            the points, (n, d)
μ_h        ``centres``           the centres of the clusters, (K, d)
l_i        ``labels``            the cluster of each point, (n,)
w_ij       ``price``             what the answer about i and j costs if it is broken, (m, 1)
N_p        neighbourhoods        groups of points joined by "same" answers, see `linked_kmeans`
=========  ====================  ==================================================================

The paper's objective is J_pckm = ½ Σ_i ‖x_i − μ_{l_i}‖² + Σ_{same} w_ij [l_i ≠ l_j] + Σ_{different} w_ij [l_i = l_j].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..pairs import Pairs
from ..validation import NOT_NEGATIVE, Rules, integer, one_of, validated, validated_fit
from .linked_kmeans import Array, Prices, cluster_means, descend, linked_start, nearest, squared_distances

RULES: Rules = {
    "n_clusters": integer(1),
    "penalty": NOT_NEGATIVE,
    "n_init": integer(1),
    "max_iter": integer(1),
    "tol": NOT_NEGATIVE,
    "on_conflict": one_of("raise", "drop", "keep"),
}


class _Clusters(NamedTuple):
    """Centres, and what they are the centres of."""

    points: Array  # (n, d), of mean 0
    pairs: Pairs
    price: Array  # (m, 1)
    centres: Array  # (K, d)

    def prices(self) -> Prices:
        half_distance = squared_distances(self.points, self.centres) / 2  # (n, K)
        broken = np.broadcast_to(self.price, (len(self.price), len(self.centres)))  # (m, K)
        return Prices.of_answers(half_distance, broken, self.pairs)  # J_pckm

    def update(self, labels: Array, prices: Prices) -> _Clusters:
        return self._replace(centres=cluster_means(self.points, np.ones(len(labels)), labels, prices.cost))


class PCKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Pairwise constrained k-means: an answer may be broken, at a price.

    Starts from groups that the "same" answers make; then each point takes the cluster that is cheapest for it,
    given those of the points it is linked with, and the centres follow, until the objective is flat.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.
    penalty : float, default=1.0
        Price of a broken answer of weight 1, in units of the points' mean squared distance from their mean.
    n_init : int, default=10
        Number of runs; the one with the lowest objective is kept.
    max_iter : int, default=300
        Largest number of iterations of a run.
    tol : float, default=1e-4
        A run stops when the objective falls by no more than this share of what one cluster would cost.
    on_conflict : {"raise", "drop", "keep"}, default="raise"
        What to do with pairs that contradict each other.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every point.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the clusters.
    objective_ : float
        Half the squared distances of the points from their centres, and the prices of the answers that are broken.
    inertia_ : float
        The squared distances alone.
    n_iter_ : int
        Iterations of the kept run.

    Notes
    -----
    Differs from the paper: answers that follow from others are not added, as they may be millions; to have them, pass
    ``pairs.closure()``. Neighbourhoods to start from are drawn, not taken farthest first, and left alone if they are
    fewer than the clusters; `linked_kmeans` says why. Before single points choose, whole neighbourhoods do: a point
    seldom leaves a cluster without those it is linked with.

    References
    ----------
    Sugato Basu, Arindam Banerjee, Raymond J. Mooney (2004). Active Semi-Supervision for Pairwise Constrained
    Clustering. SIAM International Conference on Data Mining.

    Examples
    --------
    >>> from pairmargin import PCKMeans, Pairs
    >>> X = [[0.0], [1.0], [4.0], [5.0]]
    >>> PCKMeans(2, random_state=0).fit(X).labels_.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    >>> pairs = Pairs.from_lists(must_link=[(1, 2)], cannot_link=[(2, 3)])
    >>> PCKMeans(2, random_state=0).fit(X, pairs=pairs).labels_.tolist() in ([0, 0, 0, 1], [1, 1, 1, 0])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        penalty: float = 1.0,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        on_conflict: str = "raise",
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.on_conflict = on_conflict
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None) -> PCKMeans:
        """Cluster the rows of X, paying for answers in ``pairs`` that are broken.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : ignored
            Here because scikit-learn expects it; labels are never looked at.
        pairs : Pairs, optional
            The answers; their weights multiply ``penalty``. Without any, this is k-means.

        Returns
        -------
        self : PCKMeans
        """
        data, pairs = validated_fit(self, X, pairs, RULES)
        rng = check_random_state(self.random_state)

        mean = data.mean(axis=0, dtype=np.float64)
        points = data - mean  # (n, d)
        scatter = float(np.vdot(points, points))
        price = self.penalty * scatter / len(points) * pairs.weight[:, None]  # w_ij
        fits = []
        for _ in range(self.n_init):
            clusters = _Clusters(points, pairs, price, linked_start(points, pairs, self.n_clusters, rng))
            least_fall = self.tol * scatter / 2
            fits.append(descend(clusters, pairs, max_iter=self.max_iter, least_fall=least_fall, rng=rng))
        best = min(fits, key=lambda fit: fit.objective)
        self.labels_, self.objective_, self.n_iter_ = best.labels, best.objective, best.n_iter
        self.inertia_ = float(((points - best.model.centres[best.labels]) ** 2).sum())
        self.cluster_centers_ = (best.model.centres + mean).astype(data.dtype)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The cluster of the nearest centre for every row of X; pairs play no part."""
        check_is_fitted(self)
        return nearest(validated(self, X, reset=False), self.cluster_centers_)
