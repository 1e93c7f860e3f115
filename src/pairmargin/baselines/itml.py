"""Information-theoretic metric learning: the metric nearest to a prior one under which the answers hold.

symbol   name        meaning
──────   ────────    ─────────────────────────────────────────────────────────────────
A, A₀    metric      the metric and the prior one, (d, d)
u, l     bounds      must-links have p ≤ u, cannot-links p ≥ l
γ        gamma       price of moving a bound
p        squared     (x − y)ᵀ A (x − y), the squared distance of a pair
δ        sign        +1 for a must-link, −1 for a cannot-link
ξ        slack       the bound of each pair, as far as it has been moved
λ, α     dual, step  multiplier of each pair, and what is taken off it
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsymv, dsyr
from scipy.spatial.distance import pdist

from ..pairs import Pairs
from ..validation import NOT_NEGATIVE, POSITIVE, Rules, check_rules, integer, one_of
from .mahalanobis import Array, MahalanobisMetric, differences, not_coincident, power

ROUNDING = float(np.finfo(np.float64).eps)
SAMPLE = 1_000  # the bounds are read off the distances of no more points than this


def _are_bounds(value: Any) -> bool:
    return value is None or (np.shape(value) == (2,) and all(POSITIVE[1](bound) for bound in value))


RULES: Rules = {
    "gamma": POSITIVE,
    "bounds": ("two numbers above 0, or None to read them off the data", _are_bounds),
    "prior": one_of("identity", "covariance"),
    "max_iter": integer(1),
    "tol": NOT_NEGATIVE,
}


class ITML(MahalanobisMetric):
    """The metric nearest to a prior one in LogDet divergence, with must-links close and cannot-links far.

    Parameters
    ----------
    gamma : float, default=1.0
        Price γ of moving the bounds: the larger, the more the answers count against the prior.
    bounds : (float, float), optional
        Largest squared distance u of a must-link and smallest l of a cannot-link. If not given, the 5th and the 95th
        percentile of the squared distances between points, under the prior metric.
    prior : {"identity", "covariance"}, default="identity"
        The metric A₀ to stay near to: the Euclidean one, or the (pseudo-)inverse of the covariance of X.
    max_iter : int, default=1000
        Largest number of sweeps over the pairs.
    tol : float, default=0.001
        Training stops when a sweep changes the multipliers by less than this share of them.

    Attributes
    ----------
    components_ : ndarray of shape (rank, n_features)
        L with A = LᵀL, its longest direction first.
    bounds_ : ndarray of shape (2,)
        The bounds u and l that were used.
    n_iter_ : int
        Sweeps that were run; ``max_iter`` if the last one still changed more than ``tol``.
    n_features_in_ : int

    Notes
    -----
    Without pairs the metric is the prior one. Pairs of points that coincide have the distance 0 under any metric and
    are left out.

    Differs from the paper: line 3.4 of its algorithm reads δ/2 (1/p − γ/ξ). The step after which p and ξ meet is
    δ γ/(γ + 1) (1/p − 1/ξ), which is the same for γ = 1; the authors' own code takes it too. That
    code reads the bounds off a histogram of 100 random squared distances; here they are percentiles of all distances
    among at most 1000 points, evenly spaced in X, and no chance is involved.

    References
    ----------
    J. V. Davis, B. Kulis, P. Jain, S. Sra, I. S. Dhillon (2007). Information-theoretic metric learning. ICML.

    Examples
    --------
    >>> from pairmargin import ITML, pair_roc, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_wine(return_X_y=True)
    >>> known, unseen = sample_pairs(y, 200, random_state=0).split(100, random_state=0)
    >>> metric = ITML().fit(scale(X), pairs=known)
    >>> pair_roc(unseen, metric.pair_score(scale(X), unseen)).auc > 0.95
    True
    """

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        bounds: tuple[float, float] | None = None,
        prior: str = "identity",
        max_iter: int = 1000,
        tol: float = 1e-3,
    ) -> None:
        self.gamma = gamma
        self.bounds = bounds
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol

    def _learn(self, X: Array, pairs: Pairs) -> Array:
        check_rules(RULES, self.get_params(deep=False))
        root = _prior_root(X, self.prior)  # (d, d); where points are X @ root, the prior metric is the identity
        X = X @ root
        self.bounds_ = _percentiles(X) if self.bounds is None else np.asarray(self.bounds, dtype=np.float64)
        order = np.argsort(~pairs.same, kind="stable")  # all must-links come before all cannot-links
        apart, same, weight = differences(X, pairs.index[order]), pairs.same[order], pairs.weight[order]
        told = not_coincident(apart)
        metric, self.n_iter_ = self._project(apart[told], same[told], weight[told])
        return root @ metric @ root

    def _project(self, apart: Array, same: Array, weight: Array) -> tuple[Array, int]:
        """Algorithm 1 from the identity, inside the span of the differences; outside of it nothing changes."""
        basis, inside = np.linalg.qr(apart.T)  # (d, r), (r, m)
        constraints = Constraints(
            apart=np.ascontiguousarray(inside.T),
            sign=np.where(same, 1.0, -1.0),
            gamma=self.gamma * weight,
            slack=np.where(same, *self.bounds_),
            dual=np.zeros(len(apart)),
        )
        learned, n_iter = meet(constraints, self.max_iter, self.tol)
        return np.eye(len(basis)) + basis @ (learned - np.eye(len(learned))) @ basis.T, n_iter


class Constraints(NamedTuple):
    """One entry a pair; the slack and the dual change as the metric is learned."""

    apart: Array  # (m, r)
    sign: Array
    gamma: Array
    slack: Array
    dual: Array


def meet(constraints: Constraints, max_iter: int, tol: float) -> tuple[Array, int]:
    """The metric (r, r) nearest to the identity that meets the constraints, and the sweeps it took."""
    metric = np.eye(constraints.apart.shape[1], order="F")
    dual = constraints.dual
    for n_iter in range(1, max_iter + 1):
        before = dual.copy()
        metric = _sweep(metric, *constraints)
        change, size = np.abs(dual - before).sum(), np.linalg.norm(dual) + np.linalg.norm(before)
        if n_iter == max_iter or change <= tol * size:
            break
    return np.triu(metric) + np.triu(metric, 1).T, n_iter


def _sweep(metric: Array, apart: Array, sign: Array, gamma: Array, slack: Array, dual: Array) -> Array:
    """Algorithm 1, lines 3.1 to 3.8, for one pair after the other; slack and dual change in place.

    BLAS's products for symmetric matrices read and write the upper triangle alone, which is what the time goes into.
    """
    for k, difference in enumerate(apart):
        image = dsymv(1.0, metric, difference)
        squared = difference @ image  # line 3.2
        if squared <= 0:  # but for rounding it is not: must-links have made this direction as short as can be told
            continue
        wanted = sign[k] * gamma[k] / (gamma[k] + 1) * (1 / squared - 1 / slack[k])
        step = min(dual[k], wanted)  # line 3.4
        if step == 0:  # this one holds with room to spare
            continue
        signed = sign[k] * step
        left = max(1 - signed * squared, ROUNDING)  # above 0 but for rounding, as what slack is divided by
        metric = dsyr(signed / left, image, a=metric, overwrite_a=True)  # lines 3.5, 3.8
        slack[k] *= gamma[k] / max(gamma[k] + signed * slack[k], ROUNDING * gamma[k])  # line 3.6
        dual[k] -= step  # line 3.7
    return metric


def _prior_root(X: Array, prior: str) -> Array:
    """The symmetric square root (d, d) of the prior metric; directions without variance have no part in it."""
    if prior == "identity" or not np.ptp(X, axis=0).any():
        return np.eye(X.shape[1])
    return power(np.atleast_2d(np.cov(X, rowvar=False)), -0.5)


def _percentiles(X: Array) -> Array:
    """The 5th and the 95th percentile of squared distances, those of points that coincide left out."""
    squared = pdist(X[:: -(-len(X) // SAMPLE)], "sqeuclidean")
    apart = squared[squared > 0]
    return np.percentile(apart, (5, 95)) if len(apart) else np.ones(2)
