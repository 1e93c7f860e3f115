"""CMMC: maximum margin clustering from pairs, with a linear head, by the concave-convex procedure.

======  ===================  =====================================================================
symbol  name here            meaning
======  ===================  =====================================================================
W       head                 one weight vector for each cluster, its bias in the last column
S       scores               [x, 1] Wᵀ, one row a point, one column a cluster
λ       weight_penalty       price of the squared norm of W
β       free_weight          price of the points in no pair
G, H                         convex, piecewise linear in W; the losses are G − H
∂G      Place.slope          a subgradient of G
∂H      tangent              a subgradient of H
α       shares               weights of the planes whose highest is a model of G
======  ===================  =====================================================================

The objective is λ/2 ‖W‖² + G(W) − H(W). A round replaces H by its tangent at the present W, which can only raise the
sum elsewhere, and minimises what is then convex; so the objective falls from round to round. Equation numbers are those
of Chen (2015), whose (8a) to (8c) are these losses for a head on learned codes.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..objective import assignments, best_two, pair_margins
from ..pairs import Pairs
from ..start import code_spread, start_head
from ..validation import NOT_NEGATIVE, POSITIVE, Rules, integer, one_of, validated, validated_fit

logger = logging.getLogger("pairmargin")
Array = NDArray[Any]
History = list[dict[str, Any]]

RULES: Rules = {
    "n_clusters": integer(1),
    "init": one_of("pairs", "k-means", "random"),
    "weight_penalty": POSITIVE,
    "free_weight": NOT_NEGATIVE,
    "max_iter": integer(0),
    "tol": POSITIVE,
    "on_conflict": one_of("raise", "drop", "keep"),
}

LOSSES = ("must_link", "cannot_link", "free")
MAX_PLANES = 200  # that a model of G holds before it forgets the half that carries least
MAX_STEPS = 500  # planes that one round may add
CAUTION = 0.3  # a plane is added this far on the way from the best head to the lowest point of the model


class CMMC(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Constrained maximum margin clustering: linear scores whose margins respect "same" and "different" answers.

    Parameters
    ----------
    n_clusters : int, default=8
        Largest number of clusters K. Fewer are used where there are fewer distinct points or the answers call for it.
    init : {"pairs", "k-means", "random"}, default="pairs"
        Where the head starts: k-means in a space shaped by the must-links, k-means on the points, or at random.
    weight_penalty : float, default=0.02
        Price λ of the squared norm of the head, biases included.
    free_weight : float, default=1.0
        Price β of points in no pair that lie close to the border of two clusters.
    max_iter : int, default=50
        Largest number of rounds of the concave-convex procedure. 0 stays at the start.
    tol : float, default=1e-3
        Every convex problem is solved to within this, and the rounds end when one lowers the objective by no more.
        The objective of a head of zeros, for comparison, is a little above 2.
    on_conflict : {"raise", "drop", "keep"}, default="raise"
        What to do with pairs that contradict each other.
    random_state : int, RandomState instance or None, default=None
        Same seed, same bits.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every point.
    coef_, intercept_ : ndarray of shape (k, n_features), (k,)
        ``scores = X @ coef_.T + intercept_``.
    objective_ : float
        The objective at the end; its norm is of the head for points of mean 0 and root mean square length 2.
    history_ : list of dict
        A row for the start and for every round: ``iteration``, ``objective`` and its terms ``must_link``,
        ``cannot_link``, ``free`` and ``norm``. The objective never rises.
    n_iter_ : int
        Number of rounds.

    Notes
    -----
    The pair losses and the concave-convex procedure are Zeng and Cheung's. The price of free points is the one that
    Chen (2015) gives, who writes the same method with a deep network below. Each convex problem is solved by cutting
    planes to a certified accuracy instead of by subgradient steps. Why, and what else was filled in:
    ``docs/design/cmmc.md``.

    References
    ----------
    Hong Zeng and Yiu-Ming Cheung (2012). Semi-supervised maximum margin clustering with pairwise constraints.
    IEEE Transactions on Knowledge and Data Engineering 24(5), 926-939.

    Gang Chen (2015). Deep Transductive Semi-supervised Maximum Margin Clustering.

    Alan Yuille and Anand Rangarajan (2003). The concave-convex procedure. Neural Computation 15(4), 915-936.

    Choon Hui Teo, S. V. N. Vishwanathan, Alex Smola and Quoc Le (2010). Bundle methods for regularized risk
    minimization. Journal of Machine Learning Research 11, 311-365.

    Examples
    --------
    >>> from pairmargin import CMMC, clustering_accuracy, sample_pairs
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CMMC(n_clusters=3, random_state=0).fit(X, pairs=sample_pairs(y, 60, random_state=0))
    >>> clustering_accuracy(y, model.labels_) > 0.9
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str = "pairs",
        weight_penalty: float = 0.02,
        free_weight: float = 1.0,
        max_iter: int = 50,
        tol: float = 1e-3,
        on_conflict: str = "raise",
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.weight_penalty = weight_penalty
        self.free_weight = free_weight
        self.max_iter = max_iter
        self.tol = tol
        self.on_conflict = on_conflict
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None) -> Self:
        """Cluster the rows of X so that the answers in ``pairs`` hold.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points. Columns should have comparable units: standardise them first.
        y : ignored
            Here because scikit-learn expects it; labels are never looked at.
        pairs : Pairs, optional
            The answers. Without any, the clustering comes from k-means and the margins of the free points.

        Returns
        -------
        self : CMMC
        """
        data, pairs = validated_fit(self, X, pairs, RULES)
        mean = data.mean(0, dtype=np.float64)
        points = data - mean
        spread = code_spread(points, rounding=float(np.finfo(data.dtype).eps * np.abs(data).max()))
        points /= spread
        rng = check_random_state(self.random_state)
        head = np.column_stack(start_head(points, self.n_clusters, pairs, self.init, rng))
        points = points.astype(data.dtype, copy=False)
        objective = Objective(points, pairs, len(head), self.free_weight, self.weight_penalty)
        head, self.history_ = concave_convex(objective, head, max_iter=self.max_iter, tol=self.tol)
        self.coef_ = (head[:, :-1] / spread).astype(data.dtype)
        self.intercept_ = (head[:, -1] - head[:, :-1] @ mean / spread).astype(data.dtype)
        self.n_iter_, self.objective_ = self.history_[-1]["iteration"], self.history_[-1]["objective"]
        logger.info("CMMC: objective %.6g after %d rounds", self.objective_, self.n_iter_)
        self.labels_ = self._scores(data).argmax(1)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The best cluster of every row of X."""
        return np.asarray(self.decision_function(X).argmax(1))

    def decision_function(self, X: ArrayLike) -> Array:
        """Scores of shape (n_samples, k), one column for each of the k ≤ n_clusters clusters that are in use."""
        check_is_fitted(self)
        return self._scores(validated(self, X, reset=False))

    def pair_score(self, X: ArrayLike, index: ArrayLike | Pairs) -> Array:
        """By how much "same" beats "different" for pairs of rows of X; positive means same.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points.
        index : Pairs or array-like of shape (m, 2)
            Row numbers of the pairs; answers in `Pairs` are not looked at.

        Returns
        -------
        score : ndarray of shape (m,)
        """
        scores = torch.from_numpy(self.decision_function(X))
        rows = torch.from_numpy(Pairs.check_rows(index, len(scores)))
        return pair_margins(scores, rows).numpy()

    def _scores(self, data: Array) -> Array:
        return np.asarray(data @ self.coef_.T.astype(data.dtype) + self.intercept_.astype(data.dtype))


class Place(NamedTuple):
    """A head, and what the objective is like there."""

    head: Array  # W (K, d + 1)
    height: float  # of the plane that touches G here, at W = 0
    slope: Array  # ∂G (K, d + 1), so that G = height + ⟨∂G, W⟩ here
    wanted: Array  # (h, 2) clusters of the scores that H sums up
    terms: dict[str, float]  # the losses of three kinds, whose sum is G − H, and the norm

    @property
    def objective(self) -> float:
        return sum(self.terms.values())


class Objective:
    """λ/2 ‖W‖² and the hinges of the pairs and of the free points, as functions of the head.

    A hinge [1 − (wanted − rival)]₊ of two convex functions is max(1 + rival, wanted) − wanted, a difference of convex
    functions. Of a must-link, "same" is wanted and "different" the rival; of a cannot-link the other way round. Of a
    free point, its best score twice is wanted and the sum of its two best the rival, for the second best alone is not
    convex. So every hinge is about two scores wanted and two rivals, a free point standing twice.
    """

    def __init__(self, points: Array, pairs: Pairs, n_clusters: int, free_weight: float, penalty: float) -> None:
        is_free = np.ones(len(points), dtype=bool)
        is_free[pairs.index] = False
        free = np.flatnonzero(is_free & (free_weight > 0))
        hinges = np.concatenate((pairs.index, np.column_stack((free, free))))  # (h, 2)
        used, rows = np.unique(hinges, return_inverse=True)
        self.rows = rows.reshape(hinges.shape)  # (h, 2) the two points of every hinge
        self.points = np.column_stack((points[used], np.ones(len(used), points.dtype)))  # [x, 1] of those in any hinge
        self.same, self.n_clusters, self.penalty = pairs.same, n_clusters, penalty
        price_of_free = np.full(len(free), free_weight / (max(len(free), 1) * n_clusters))  # β/(UK) of eq. (8c)
        self.price = np.concatenate((_shares(pairs), price_of_free)).astype(points.dtype)  # (h,)

    def at(self, head: Array) -> Place:
        """What G, H and the objective are like at a head."""
        scores = self.points @ head.T.astype(self.points.dtype)  # S (·, K)
        wanted, rival = self._clusters(scores)  # (h, 2) each
        want, other = (scores[self.rows, clusters].sum(1) for clusters in (wanted, rival))  # (h,) each
        loss = self.price * np.maximum(1 + other - want, 0)
        violated = loss > 0
        of_pairs, of_free = np.split(loss, [len(self.same)])
        return Place(
            head=head,
            height=float(self.price[violated].sum()),
            slope=self.slope(np.where(violated[:, None], rival, wanted)),
            wanted=wanted,
            terms={
                "must_link": float(of_pairs[self.same].sum()),  # eq. (8a)
                "cannot_link": float(of_pairs[~self.same].sum()),  # eq. (8b)
                "free": float(of_free.sum()),  # eq. (8c)
                "norm": _norm(head, self.penalty),
            },
        )

    def _clusters(self, scores: Array) -> tuple[Array, Array]:
        """The clusters of the wanted and of the rival scores of every hinge, (h, 2) each."""
        tensor, same = torch.from_numpy(scores), self.same[:, None]
        best = best_two(tensor)
        found = assignments(tensor, torch.from_numpy(self.rows[: len(same)]), best)
        together, apart = found.same_cluster.numpy()[:, None], found.different_clusters.numpy()
        free = best[1].numpy()[self.rows[len(same) :, 0]]  # (U, 2) their best and second best clusters
        wanted = np.concatenate((np.where(same, together, apart), free[:, [0, 0]]))
        return wanted, np.concatenate((np.where(same, apart, together), free))

    def slope(self, clusters: Array) -> Array:
        """Derivative (K, d + 1) of the priced sum of the scores of these clusters, (h, 2)."""
        place = (clusters.ravel(), self.rows.ravel())
        counts = sp.csr_array((np.repeat(self.price, 2), place), shape=(self.n_clusters, len(self.points)))
        return np.asarray(counts @ self.points)


def _shares(pairs: Pairs) -> Array:
    """Weights that sum to 1 over the must-links and over the cannot-links: 1/n⁺ and 1/n⁻ of eq. (8)."""
    total = np.where(pairs.same, pairs.weight[pairs.same].sum(), pairs.weight[~pairs.same].sum())
    return np.asarray(pairs.weight / total)


def _norm(head: Array, penalty: float) -> float:
    """λ/2 ‖W‖²"""
    return 0.5 * penalty * float((head**2).sum())


def concave_convex(objective: Objective, head: Array, *, max_iter: int, tol: float) -> tuple[Array, History]:
    """Lower the objective from a head on, round by round; the head it ends with and the history."""
    if objective.n_clusters < 2 or not len(objective.rows):  # nothing to choose or nothing said: stay at the start
        norm = _norm(head, objective.penalty)
        return head, [{"iteration": 0, "objective": norm, **dict.fromkeys(LOSSES, 0.0), "norm": norm}]
    place = objective.at(_within_reach(head, objective))
    planes = Planes(head.shape, objective)
    planes.add(place)
    history = [{"iteration": 0, "objective": place.objective, **place.terms}]
    for iteration in range(1, max_iter + 1):
        before, place = place, lowest_convex(objective, planes, place, tol)
        history.append({"iteration": iteration, "objective": place.objective, **place.terms})
        if before.objective - place.objective <= tol:
            break
    return place.head, history


def _within_reach(head: Array, objective: Objective) -> Array:
    """Shrink a head so large that its norm alone costs more than W = 0 does; every point keeps its cluster."""
    allowed = objective.price.sum()  # at W = 0 every hinge costs its price
    return head * min(1.0, float(np.sqrt(allowed / max(_norm(head, objective.penalty), allowed))))


def lowest_convex(objective: Objective, planes: Planes, here: Place, tol: float) -> Place:
    """Minimise λ/2 ‖W‖² + G − ⟨∂H, W⟩, with ∂H as it is here, to within ``tol``.

    Here, this is the objective itself: H has no constant, so H = ⟨∂H, W⟩.
    """
    tangent = objective.slope(here.wanted)  # ∂H
    planes.tilt(tangent)

    def value(place: Place) -> float:
        return place.terms["norm"] + place.height + float(np.vdot(place.slope - tangent, place.head))

    best, lowest = here, value(here)
    for _ in range(MAX_STEPS):
        candidate, bound = planes.minimise(tol / 100)
        place = objective.at(best.head + CAUTION * (candidate - best.head))
        planes.add(place)
        if (found := value(place)) < lowest:
            best, lowest = place, found
        if lowest - bound <= tol:
            break
    return best


class Planes:
    """A model of G from below: the highest of the planes that touch it at the heads visited so far.

    G is the same in every round, only the tangent of H changes; so no plane is ever out of date.
    """

    def __init__(self, shape: tuple[int, ...], objective: Objective) -> None:
        self.shape, self.penalty, self.n = shape, objective.penalty, 0
        self.slopes = np.empty((MAX_PLANES, int(np.prod(shape))), objective.points.dtype)  # ∂G of each
        self.heights = np.empty(MAX_PLANES)
        self.gram = np.empty((MAX_PLANES, MAX_PLANES))  # ⟨∂G, ∂G⟩
        self.along = np.empty(MAX_PLANES)  # ⟨∂G, ∂H⟩
        self.shares = np.zeros(MAX_PLANES)  # α, of the last minimum
        self.tangent = np.zeros_like(self.slopes[0])  # ∂H

    def add(self, place: Place) -> None:
        """Add the plane that touches G at a place."""
        if self.n == MAX_PLANES:
            self._forget()
        n, slope = self.n, place.slope.ravel()
        self.slopes[n], self.heights[n] = slope, place.height
        self.gram[n, : n + 1] = self.gram[: n + 1, n] = self.slopes[: n + 1] @ slope
        self.along[n] = slope @ self.tangent
        self.shares[n] = float(n == 0)
        self.n += 1

    def tilt(self, tangent: Array) -> None:
        """Take the tangent of H for the round that begins."""
        self.tangent = tangent.ravel()
        self.along[: self.n] = self.slopes[: self.n] @ self.tangent

    def minimise(self, tol: float) -> tuple[Array, float]:
        """Where λ/2 ‖W‖² + model − ⟨∂H, W⟩ is lowest to within ``tol``, and a bound for how low G itself allows.

        The dual: W = (∂H − Σ α ∂G)/λ, with the shares α of the planes that maximise Σ α height − λ/2 ‖W‖².
        """
        n = self.n
        gain = self.heights[:n] + self.along[:n] / self.penalty
        self.shares[:n] = simplex_minimum(self.gram[:n, :n] / self.penalty, gain, self.shares[:n], tol)
        on = np.flatnonzero(self.shares[:n])
        head = ((self.tangent - self.shares[on] @ self.slopes[on]) / self.penalty).reshape(self.shape)
        return head, float(self.heights[on] @ self.shares[on]) - _norm(head, self.penalty)

    def _forget(self) -> None:
        """Keep the half that carries most."""
        kept = np.sort(np.argsort(-self.shares, kind="stable")[: MAX_PLANES // 2])
        n = self.n = len(kept)
        for array in (self.slopes, self.heights, self.along):
            array[:n] = array[kept]
        self.gram[:n, :n] = self.gram[np.ix_(kept, kept)]
        self.shares[:n] = self.shares[kept] / self.shares[kept].sum()


def simplex_minimum(gram: Array, gain: Array, start: Array, tol: float) -> Array:
    """The shares α ≥ 0, Σα = 1, with the least ½ αᵀ gram α − gain·α, by the active set method from ``start`` on.

    It ends when no exchange of shares has a slope beyond ``tol``: by convexity the least is then no farther off.
    """
    shares, support = start.copy(), start > 0
    for _ in range(10 * len(gain)):  # far more than it takes: only rounding could make it go in circles
        on = np.flatnonzero(support)
        target, level = _unsigned_minimum(gram[np.ix_(on, on)], gain[on])
        negative = target < 0
        if negative.any():  # go there until the first share is used up, and leave that one out
            reach = shares[on][negative] / (shares[on] - target)[negative]
            if reach.min() == 0:  # the newest would be the first to go: it was rounding that let it in
                break
            shares[on] += reach.min() * (target - shares[on])
            first = on[negative][reach.argmin()]
            shares[first], support[first] = 0, False
            continue
        shares[on] = target
        slope = gram @ shares - gain  # equal to level on the support
        steepest = slope.argmin()
        if slope[steepest] >= level - tol:
            break
        support[steepest] = True
    return shares


def _unsigned_minimum(gram: Array, gain: Array) -> tuple[Array, float]:
    """As `simplex_minimum` but shares may be negative; also the slope that is common to all of them there."""
    n = len(gain)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = gram + 1e-12 * gram.trace() * np.eye(n)  # two planes may be parallel
    system[n, n] = 0
    solution = np.linalg.solve(system, np.append(gain, 1))
    return solution[:n], -float(solution[n])
