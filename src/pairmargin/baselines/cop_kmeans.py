"""COP-k-means: k-means that breaks no answer.

Points that "same" answers join are one *group* from the start; a "different" answer keeps two groups apart.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..exceptions import InvalidPairsError
from ..pairs import Pairs
from ..pairs.arithmetic import link_graph
from ..validation import NOT_NEGATIVE, Rules, integer, one_of, validated, validated_fit
from .linked_kmeans import Array, cluster_means, group_means, nearest, paid, spread_out, squared_distances

N_STARTS = 10  # how many starts a run may try to find one from which all groups can be placed

RULES: Rules = {
    "n_clusters": integer(1),
    "n_init": integer(1),
    "max_iter": integer(1),
    "tol": NOT_NEGATIVE,
    "on_infeasible": one_of("raise", "violate"),
    "on_conflict": one_of("raise", "drop"),
}


class Groups(NamedTuple):
    """Points joined by "same" answers; most groups are single points."""

    means: Array  # (G, d)
    size: Array  # (G,)
    different: sp.csr_array[Any]  # (G, G), which groups must not be in one cluster

    @classmethod
    def build(cls, points: Array, component: Array, cannot_link: Array) -> Groups:
        means, size = group_means(points, component)
        links = np.unique(np.sort(component[cannot_link], axis=1), axis=0)
        return cls(means, size, link_graph(links, len(size)))

    def cost(self, centres: Array) -> Array:
        """Squared distances of all points of a group from the centres, but for those from the group's mean, (G, K)."""
        return np.asarray(self.size[:, None] * squared_distances(self.means, centres))


class Fit(NamedTuple):
    """Where a run ended; compares by what matters."""

    n_homeless: int  # points that found no cluster without breaking an answer
    cost: float
    labels: Array  # (G,)
    n_iter: int
    centres: Array  # (K, d)


def place(cost: Array, different: sp.csr_array[Any]) -> tuple[Array, Array]:
    """The cluster of each group (G,), and which groups found none without breaking an answer (G,).

    The group that has the fewest clusters left chooses next, of these the one with the most answers: what is hard to
    place is placed while there is room. It takes the nearest cluster of those where it breaks no answer or, if there
    are none, the fewest.
    """
    n_answers = np.diff(different.indptr)
    urgency = np.where(n_answers > 0, n_answers, -1)  # −1 has no say, or has had it
    step = n_answers.max() + 1  # a cluster less weighs more than any number of answers
    broken = np.zeros(cost.shape, dtype=np.intp)  # by a group in a cluster
    labels, homeless = cost.argmin(axis=1), np.zeros(len(cost), dtype=bool)
    for _ in range(np.count_nonzero(n_answers)):
        group = int(urgency.argmax())
        fewest = broken[group].min()
        labels[group] = cluster = np.where(broken[group] == fewest, cost[group], np.inf).argmin()
        homeless[group] = fewest > 0
        urgency[group] = -1
        others = different.indices[different.indptr[group] : different.indptr[group + 1]]
        waiting = others[urgency[others] >= 0]
        urgency[waiting] += step * (broken[waiting, cluster] == 0)
        broken[waiting, cluster] += 1
    return labels, homeless


class COPKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Constrained k-means: every answer is kept.

    Every group of points that "same" answers join goes to the nearest cluster that its "different" answers leave to
    it, and the centres follow, until the squared distances no longer fall.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.
    n_init : int, default=10
        Number of runs; the one with the lowest inertia is kept.
    max_iter : int, default=300
        Largest number of iterations of a run.
    tol : float, default=1e-4
        A run stops when the inertia falls by no more than this share of what one cluster would have.
    on_infeasible : {"raise", "violate"}, default="raise"
        If no run finds a place for every point: refuse, or break as few answers as each such point can.
    on_conflict : {"raise", "drop"}, default="raise"
        What to do with pairs that contradict each other.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every point.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the clusters.
    inertia_ : float
        Sum of the squared distances of the points from their centres.
    n_iter_ : int
        Iterations of the kept run.

    Notes
    -----
    Whether K clusters can keep all answers is a colouring problem, which no quick method always solves. Differs from
    the paper: not the points' own order but DSATUR's (Brélaz 1979) is used, which seldom runs into a dead end and
    never does if two clusters are enough; each run may try ten starts.

    References
    ----------
    Kiri Wagstaff, Claire Cardie, Seth Rogers, Stefan Schroedl (2001). Constrained K-means Clustering with Background
    Knowledge. International Conference on Machine Learning.

    Examples
    --------
    >>> from pairmargin import COPKMeans, Pairs
    >>> X = [[0.0], [1.0], [4.0], [5.0]]
    >>> pairs = Pairs.from_lists(must_link=[(1, 2)], cannot_link=[(2, 3)])
    >>> COPKMeans(2, random_state=0).fit(X, pairs=pairs).labels_.tolist() in ([0, 0, 0, 1], [1, 1, 1, 0])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        on_infeasible: str = "raise",
        on_conflict: str = "raise",
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.on_infeasible = on_infeasible
        self.on_conflict = on_conflict
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None) -> COPKMeans:
        """Cluster the rows of X so that every answer in ``pairs`` is kept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        y : ignored
            Here because scikit-learn expects it; labels are never looked at.
        pairs : Pairs, optional
            The answers; their weights play a part only where contradictions are dropped. Without any, this is k-means.

        Returns
        -------
        self : COPKMeans

        Raises
        ------
        InvalidPairsError
            If some points found no cluster, see ``on_infeasible``.
        """
        data, pairs = validated_fit(self, X, pairs, RULES)
        rng = check_random_state(self.random_state)

        mean = data.mean(axis=0, dtype=np.float64)
        points = data - mean  # (n, d)
        component = pairs.components(len(points))
        groups = Groups.build(points, component, pairs.cannot_link)
        least_fall = self.tol * float(np.vdot(points, points))
        starts = (self._start(points, groups, rng) for _ in range(self.n_init))
        best = min((self._run(groups, centres, least_fall) for centres in starts), key=lambda fit: fit[:2])
        if best.n_homeless and self.on_infeasible == "raise":
            self._refuse(best.n_homeless, len(points))
        self.labels_, self.n_iter_ = best.labels[component], best.n_iter
        self.inertia_ = float(((points - best.centres[self.labels_]) ** 2).sum())
        self.cluster_centers_ = (best.centres + mean).astype(data.dtype)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The cluster of the nearest centre for every row of X; pairs play no part."""
        check_is_fitted(self)
        return nearest(validated(self, X, reset=False), self.cluster_centers_)

    def _run(self, groups: Groups, centres: Array, least_fall: float) -> Fit:
        """Groups are placed, then the centres follow, in turn until the cost falls by less."""
        best = Fit(int(groups.size.sum()), np.inf, np.zeros(len(groups.size), dtype=np.intp), 0, centres)
        for n_iter in range(1, self.max_iter + 1):
            cost = groups.cost(centres)
            labels, homeless = place(cost, groups.different)
            fit = Fit(int(groups.size[homeless].sum()), float(paid(cost, labels).sum()), labels, n_iter, centres)
            if fit[:2] >= (best.n_homeless, best.cost - least_fall):
                break
            best = fit
            centres = cluster_means(groups.means, groups.size, labels, cost)
        return best

    def _start(self, points: Array, groups: Groups, rng: RandomState) -> Array:
        """Centres from which every group can be placed, if some tries find any.

        Single points, not means of groups, which are closer to all others than a single point is.
        """
        tried: list[tuple[int, Array]] = []
        while len(tried) < N_STARTS:
            centres = spread_out(points, np.ones(len(points)), self.n_clusters, rng)
            n_homeless = int(place(groups.cost(centres), groups.different)[1].sum())
            tried.append((n_homeless, centres))
            if not n_homeless:
                break
        return min(tried, key=lambda one: one[0])[1]

    def _refuse(self, n_homeless: int, n: int) -> None:
        raise InvalidPairsError(
            f"{n_homeless} of {n} points found none of n_clusters={self.n_clusters} clusters without breaking a "
            f'"different" answer, in {self.n_init} runs of up to {N_STARTS} starts; ask for more clusters, raise '
            'n_init, leave out answers that may be wrong, or pass on_infeasible="violate"'
        )
