"""Weighted kernel k-means of Dhillon, Guan and Kulis (2004): k-means in the space where a kernel is the dot product.

======================  ============  =================================================
symbol                  name here     meaning
======================  ============  =================================================
φ(a)·φ(b)               gram          the kernel of all the points with each other, n × n
w(a)                    weight        how much a point counts
π_j                     labels == j   a cluster
w(a) if a ∈ π_j else 0  members       K × n, sparse: one entry a point
s_j = Σ_b w(b)          mass          weight of a cluster
m_j                     centre        Σ_b w(b) φ(b) / s_j, never written out
======================  ============  =================================================

The squared distance needs nothing but the kernel, all sums over π_j:
‖φ(a) − m_j‖² = φ(a)·φ(a) − 2 Σ_b w(b) φ(a)·φ(b) / s_j + Σ_b Σ_c w(b) w(c) φ(b)·φ(c) / s_j².
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from ..exceptions import InvalidDataError, InvalidParameterError
from ..pairs import Pairs
from ..validation import (
    NOT_NEGATIVE,
    POSITIVE,
    Rules,
    check_n_clusters,
    check_rules,
    integer,
    one_of,
    validated,
    warn_if_few_distinct,
)

logger = logging.getLogger("pairmargin")
Array = NDArray[Any]
Kernel = str | Callable[[Array, Array], float]

ROOM = 1e-6  # share of the largest number there is that a kernel may have: they are added up
BLOCK = 512  # rows of the kernel that are worked out at a time
KERNELS = ("precomputed", *kernel_metrics())

RULES: Rules = {
    "n_clusters": integer(1),
    "kernel": (f"callable or one of {', '.join(KERNELS)}", lambda v: callable(v) or one_of(*KERNELS)[1](v)),
    "gamma": ("a number above 0, or None for 1 / n_features", lambda v: v is None or POSITIVE[1](v)),
    "degree": POSITIVE,
    "coef0": ("a number", lambda v: isinstance(v, Real) and NOT_NEGATIVE[1](abs(v))),
    "kernel_params": ("a dict or None", lambda v: v is None or isinstance(v, dict)),
    "init": ("'k-means++', 'random' or labels", lambda v: not isinstance(v, str) or v in ("k-means++", "random")),
    "n_init": integer(1),
    "max_iter": integer(1),
    "tol": NOT_NEGATIVE,
}


class KernelKMeans(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Weighted kernel k-means.

    A cluster that loses all its points takes the point that lies farthest from its own centre, so that none is empty
    in the end unless there are fewer distinct points than clusters. The objective never rises.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.
    kernel : str or callable, default="linear"
        A name that `sklearn.metrics.pairwise.pairwise_kernels` knows, "precomputed" for X that is the kernel itself
        (symmetric, positive semi-definite), or a function of two points. "linear" is ordinary k-means, and works on
        the points themselves: no n × n matrix is made.
    gamma : float, optional
        Of the kernels that have one; 1 / n_features if not given.
    degree, coef0 : float, default=3, 1
        Of the polynomial kernel; the sigmoid kernel has ``coef0`` too.
    kernel_params : dict, optional
        Further arguments for a callable kernel.
    init : {"k-means++", "random"} or array-like of shape (n_samples,), default="k-means++"
        Points far from one another as first centres, any points, or the clusters to start from, numbered from 0.
    n_init : int, default=10
        Number of starts; the result with the lowest objective is kept. Given labels are one start.
    max_iter : int, default=100
        Largest number of iterations of each start.
    tol : float, default=1e-4
        An iteration that lowers the objective by no more than this share of it is the last. 0 goes on until no point
        moves.
    random_state : int, RandomState instance or None, default=None
        Same seed, same bits.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of every point.
    inertia_ : float
        Weighted sum of the squared distances of the points from their centres.
    n_iter_ : int
        Iterations of the start that was kept.
    X_fit_ : ndarray or sparse matrix
        The points, which `predict` needs. None for a precomputed kernel.
    dual_coef_ : sparse array of shape (n_clusters, n_samples)
        Every centre as a mean of points: ``dual_coef_ @ φ(X_fit_)``.

    References
    ----------
    Inderjit Dhillon, Yuqiang Guan, Brian Kulis (2004). Kernel k-means, spectral clustering and normalized cuts. KDD.
    David Arthur, Sergei Vassilvitskii (2007). k-means++: the advantages of careful seeding. SODA.

    Examples
    --------
    >>> from pairmargin import KernelKMeans
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(100, factor=0.3, random_state=0)  # a ring within a ring
    >>> def squared_radii(a, b):
    ...     return (a @ a) * (b @ b)
    >>> model = KernelKMeans(n_clusters=2, kernel=squared_radii, random_state=0).fit(X)
    >>> inner, outer = model.predict([[0.3, 0], [0, 1]])
    >>> bool((model.labels_ == outer).sum() == 50), bool(inner == outer)
    (True, False)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: Kernel = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        init: str | ArrayLike = "k-means++",
        n_init: int = 10,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(
        self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None, sample_weight: ArrayLike | None = None
    ) -> KernelKMeans:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or (n_samples, n_samples) if precomputed
            The points, or their kernel.
        y : ignored
            Here because scikit-learn expects it.
        pairs : Pairs, optional
            Checked and then ignored, so that this method can stand in one line with those that use them.
        sample_weight : array-like of shape (n_samples,), optional
            How much every point counts: a weight of 2 is the point twice, 0 a point that only follows.

        Returns
        -------
        self : KernelKMeans
        """
        data = validated(self, X, reset=True, accept_sparse=self._accept_sparse)
        check_rules(RULES, self.get_params(deep=False))
        check_n_clusters(self.n_clusters, data.shape[0])
        Pairs.check(pairs, data.shape[0])
        weight = _checked_weight(sample_weight, data.shape[0])
        warn_if_few_distinct(data, self.n_clusters)
        gram = self._gram(data)
        starts = self._starts(gram, weight, check_random_state(self.random_state))
        runs = (_lloyd(gram, weight, start, self.n_clusters, self.max_iter, self.tol) for start in starts)
        self._store(min(runs, key=lambda run: run.inertia), data)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The cluster with the nearest centre for every row of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or (n, n_samples) if precomputed
            New points, or their kernel with the points of `fit`.

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        check_is_fitted(self)
        data = validated(self, X, reset=False, accept_sparse=self._accept_sparse)
        if self.kernel == "linear":
            return np.asarray(pairwise_distances_argmin(data, self.dual_coef_ @ self.X_fit_))
        labels = np.empty(data.shape[0], dtype=np.intp)
        for rows in gen_batches(len(labels), BLOCK):
            with_centres = self.dual_coef_ @ self._kernel(data[rows], self.X_fit_).T  # (K, rows)
            labels[rows] = (self._centre_norms[:, None] - 2 * with_centres).argmin(0)
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def _accept_sparse(self) -> str | bool:
        return False if self.kernel == "precomputed" else "csr"

    def _kernel(self, a: Any, b: Any) -> Array:
        """The kernel between rows of two sets of points."""
        if self.kernel == "precomputed":
            return np.asarray(a)
        own = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        params = (self.kernel_params or {}) if callable(self.kernel) else own
        with np.errstate(over="ignore", invalid="ignore"):
            found = pairwise_kernels(a, b, metric=self.kernel, filter_params=True, **params)
            kernel = np.asarray(found, dtype=a.dtype)
            largest = np.abs(kernel).max()
        if not largest < ROOM * np.finfo(a.dtype).max:
            raise InvalidDataError(
                f"the kernel {self.kernel!r} has numbers up to {largest:g}, too large to calculate with; "
                "divide X by its standard deviation"
            )
        return kernel

    def _gram(self, data: Any) -> _Gram:
        """What the iterations need to know of the points."""
        if self.kernel == "linear":
            return _LinearGram(data)
        if self.kernel == "precomputed":
            _check_kernel(data)
            return _MatrixGram(data)
        matrix = np.empty((data.shape[0],) * 2, dtype=data.dtype)
        for rows in gen_batches(len(matrix), BLOCK):  # some kernels make copies of what they return
            matrix[rows] = self._kernel(data[rows], data)
        return _MatrixGram(matrix)

    def _starts(self, gram: _Gram, weight: Array, rng: RandomState) -> list[Array]:
        """Labels to start from."""
        if not isinstance(self.init, str):
            return [_checked_labels(self.init, len(weight), self.n_clusters)]
        seeds = _spread_seeds if self.init == "k-means++" else _random_seeds
        chosen = [seeds(gram, weight, self.n_clusters, rng) for _ in range(self.n_init)]
        return [_between(gram, seed).argmin(0) for seed in chosen]

    def _store(self, run: _Run, data: Any) -> None:
        self.labels_, self.inertia_, self.n_iter_ = run.labels, run.inertia, run.n_iter
        self.X_fit_: Any = None if self.kernel == "precomputed" else data
        self.dual_coef_, self._centre_norms = run.dual_coef, run.centre_norms


class _Gram(Protocol):
    """The kernel of all points with each other, as far as it is needed."""

    diagonal: Array  # (n,)
    dtype: Any

    def rows(self, index: Array) -> Array:
        """Some rows, (·, n)."""

    def combine(self, coefficients: sp.csr_array) -> Array:
        """Sums of rows: coefficients (K, n) times the kernel (n, n), which is (K, n)."""


class _MatrixGram:
    """A kernel that is held in memory."""

    def __init__(self, matrix: Array) -> None:
        # It is symmetric, and the sparse product would copy a matrix whose rows are not stored one after the other.
        self.matrix = matrix.T if matrix.flags.f_contiguous else np.ascontiguousarray(matrix)
        self.diagonal, self.dtype = matrix.diagonal().astype(np.float64), matrix.dtype

    def rows(self, index: Array) -> Array:
        return self.matrix[index]

    def combine(self, coefficients: sp.csr_array) -> Array:
        return np.asarray(coefficients @ self.matrix)


class _LinearGram:
    """The kernel X Xᵀ, held as X."""

    def __init__(self, points: Any) -> None:
        # Distances do not change when all points move together, and near the origin they lose fewer digits.
        self.points: Any = points if sp.issparse(points) else points - points.mean(0)
        self.diagonal, self.dtype = row_norms(self.points, squared=True).astype(np.float64), points.dtype

    def rows(self, index: Array) -> Array:
        return np.asarray(safe_sparse_dot(self.points[index], self.points.T, dense_output=True))

    def combine(self, coefficients: sp.csr_array) -> Array:
        return np.asarray(safe_sparse_dot(coefficients @ self.points, self.points.T, dense_output=True))


class _Run(NamedTuple):
    """Where one start ended."""

    labels: Array  # (n,)
    inertia: float
    n_iter: int
    dual_coef: sp.csr_array  # (K, n)
    centre_norms: Array  # (K,) squared


def _lloyd(gram: _Gram, weight: Array, labels: Array, n_clusters: int, max_iter: int, tol: float) -> _Run:
    """Centres from labels, labels from centres, until little changes."""
    points = np.arange(len(labels))
    members = sp.csr_array((n_clusters, len(labels)), dtype=gram.dtype)
    sums, inertia = np.zeros(members.shape), np.inf
    for n_iter in range(1, max_iter + 1):
        before, earlier, members = inertia, members, _members(labels, weight, n_clusters, gram.dtype)
        sums += gram.combine(members - earlier)  # Σ_b w(b) φ(a)·φ(b); points that stayed cost nothing
        distance, norms = _distances(gram.diagonal, sums, labels, weight)
        nearest = distance.argmin(0)
        away = distance[nearest, points].clip(min=0)  # rounding can bring a point at its centre below 0
        inertia = float(weight @ away)
        logger.debug("iteration %d: objective %g", n_iter, inertia)
        refilled = _refill(nearest, away, weight, n_clusters, _rounding(gram))
        settled = np.array_equal(nearest, labels) or (not refilled and before - inertia <= tol * inertia)
        labels = nearest
        if settled:
            break
    return _Run(labels, inertia, n_iter, sp.csr_array(members.multiply(1 / _divisor(members.sum(1))[:, None])), norms)


def _distances(diagonal: Array, sums: Array, labels: Array, weight: Array) -> tuple[Array, Array]:
    """Squared distances of all points from the centres of labelled clusters (K, n), and those of the origin (K,)."""
    n_clusters, n = sums.shape
    mass = np.bincount(labels, weight, n_clusters)
    norms = np.bincount(labels, weight * sums[labels, np.arange(n)], n_clusters) / _divisor(mass) ** 2  # ‖m_j‖²
    distance = diagonal - 2 * sums / _divisor(mass)[:, None] + norms[:, None]
    distance[mass == 0] = np.inf
    return distance, norms


def _members(labels: Array, weight: Array, n_clusters: int, dtype: Any) -> sp.csr_array:
    """The weight of every point in the row of its cluster, (K, n)."""
    shape = (n_clusters, len(labels))
    return sp.csr_array((weight.astype(dtype), (labels, np.arange(len(labels)))), shape=shape)


def _divisor(mass: Array) -> Array:
    """The mass of clusters, 1 for empty ones."""
    return np.where(mass > 0, mass, 1)


def _rounding(gram: _Gram) -> float:
    """A squared distance that is nothing but rounding."""
    return float(16 * np.finfo(gram.dtype).eps * np.abs(gram.diagonal).max())


def _refill(labels: Array, away: Array, weight: Array, n_clusters: int, rounding: float) -> bool:
    """Give every empty cluster the point farthest from its centre, in place; say whether any took one."""
    refilled = False
    for empty in np.flatnonzero(np.bincount(labels, weight, n_clusters) == 0):
        sizes = np.bincount(labels[weight > 0], minlength=n_clusters)
        free = (weight > 0) & (sizes[labels] > 1)  # taking the only point of a cluster would empty that one
        farthest = np.where(free, away, -1).argmax()
        if not free.any() or away[farthest] <= rounding:
            break  # all points are at their centres: there are not enough distinct ones
        labels[farthest], away[farthest], refilled = empty, 0, True
    return refilled


def _between(gram: _Gram, index: Array) -> Array:
    """Squared distances from some points to all, (·, n)."""
    return np.asarray(np.maximum(gram.diagonal[index, None] - 2 * gram.rows(index) + gram.diagonal, 0))


def _spread_seeds(gram: _Gram, weight: Array, n_clusters: int, rng: RandomState) -> Array:
    """k-means++: every next seed by its squared distance from those before, the best of some that are drawn."""
    n_tried = 2 + int(np.log(n_clusters))
    seeds = _draw(weight, 1, rng)
    nearest = _between(gram, seeds)[0]  # (n,)
    while len(seeds) < n_clusters:
        tried = _draw(weight * nearest, n_tried, rng)
        left = np.minimum(nearest, _between(gram, tried))  # (tried, n)
        best = (left @ weight).argmin()
        seeds, nearest = np.append(seeds, tried[best]), left[best]
    return seeds


def _random_seeds(gram: _Gram, weight: Array, n_clusters: int, rng: RandomState) -> Array:
    """Distinct points, the heavier the likelier."""
    size = min(n_clusters, int(np.count_nonzero(weight)))
    return rng.choice(len(weight), size, replace=False, p=weight / weight.sum())


def _draw(mass: Array, size: int, rng: RandomState) -> Array:
    """Points with a probability in proportion to their mass."""
    reached = np.cumsum(mass)
    drawn = np.searchsorted(reached, rng.uniform(size=size) * reached[-1], side="right")
    return np.asarray(np.minimum(drawn, len(mass) - 1))


def _checked_weight(sample_weight: ArrayLike | None, n_samples: int) -> Array:
    """One number a point, none negative and some positive."""
    if sample_weight is None:
        return np.ones(n_samples)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_samples,):
        raise InvalidDataError(
            f"sample_weight has shape {weight.shape} but there are {n_samples} points; give one number for each"
        )
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        k = int(bad.argmax())
        raise InvalidDataError(f"sample_weight[{k}] is {weight[k]}; weights should be finite numbers, 0 or more")
    if not weight.any():
        raise InvalidDataError("every sample_weight is zero; let some point count")
    return weight


def _checked_labels(init: ArrayLike, n_samples: int, n_clusters: int) -> Array:
    """Labels that a user starts from."""
    labels = np.asarray(init)
    if labels.shape != (n_samples,) or labels.dtype.kind not in "iu":
        raise InvalidParameterError(
            f"init is {labels.dtype} of shape {labels.shape}; give one integer for each of the {n_samples} points, "
            "or 'k-means++' or 'random'"
        )
    bad = (labels < 0) | (labels >= n_clusters)
    if bad.any():
        k = int(bad.argmax())
        raise InvalidParameterError(f"init[{k}] is {labels[k]}; clusters are numbered from 0 to {n_clusters - 1}")
    return labels.astype(np.intp)


def _check_kernel(matrix: Array) -> None:
    """Refuse what cannot be the kernel of the points with each other."""
    n = len(matrix)
    if matrix.shape != (n, n):
        raise InvalidDataError(f'X has shape {matrix.shape}; with kernel="precomputed" it should be square')
    most = 1e-4 * np.abs(matrix.diagonal()).max()
    for rows in gen_batches(n, BLOCK):
        off = np.abs(matrix[rows] - matrix[:, rows].T)
        if off.max() > most:
            i, j = np.unravel_index(off.argmax(), off.shape)
            i += rows.start
            raise InvalidDataError(
                f"the kernel is not symmetric: X[{i}, {j}] = {matrix[i, j]} but X[{j}, {i}] = {matrix[j, i]}; "
                "give (X + X.T) / 2 if that is rounding"
            )
