"""What the metric learners share: distances ‖L(x − y)‖, and covariances that few pairs can bear.

symbol   name             meaning
──────   ────────────     ───────────────────────────────────────────────────────────
M        matrix           the metric, (d, d), positive semi-definite
L        components       M = LᵀL, so that ‖L(x − y)‖² = (x − y)ᵀ M (x − y), (rank, d)
S        covariance       mean of the outer products of differences, which have mean 0
ρ        shrinkage        share of the scaled identity in a shrunk covariance
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..pairs import Pairs
from ..validation import NOT_NEGATIVE, Rule, validated

Array = NDArray[Any]

SHRINKAGE: Rule = (
    "'auto' or a number from 0 to 1",
    lambda v: v == "auto" if isinstance(v, str) else NOT_NEGATIVE[1](v) and v <= 1,
)


class MahalanobisMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A metric (x − y)ᵀ M (x − y) that is learned from pairs; a subclass says how.

    Every answer is evidence, so answers that contradict each other may stand side by side. A weight of 2 is the same as
    saying it twice.
    """

    components_: Array

    def fit(self, X: ArrayLike, y: Any = None, *, pairs: Pairs | None = None) -> Self:
        """Learn the metric.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The points. Columns should have comparable units: standardise them first.
        y : ignored
            Here because scikit-learn expects it; labels are never looked at.
        pairs : Pairs, optional
            The answers.

        Returns
        -------
        self : MahalanobisMetric
        """
        data = validated(self, X, reset=True).astype(np.float64, copy=False)
        self.components_ = components(self._learn(data, Pairs.check(pairs, len(data))))
        return self

    @abstractmethod
    def _learn(self, X: Array, pairs: Pairs) -> Array:
        """The matrix M (d, d); its negative eigenvalues count as 0."""

    def transform(self, X: ArrayLike) -> Array:
        """X Lᵀ of shape (n_samples, rank): the points where the Euclidean distance is the learned one."""
        data = self._known(X)
        return np.asarray(data @ self.components_.T.astype(data.dtype))

    def pair_score(self, X: ArrayLike, index: ArrayLike | Pairs) -> Array:
        """Minus the squared distance of pairs of rows of X: the larger, the more likely the same.

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
        data = self._known(X)
        apart = differences(data, Pairs.check_rows(index, len(data))) @ self.components_.T.astype(
            data.dtype
        )  # (m, rank)
        return np.asarray(-np.einsum("ij,ij->i", apart, apart))

    def get_mahalanobis_matrix(self) -> Array:
        """The matrix M = LᵀL of shape (n_features, n_features)."""
        check_is_fitted(self)
        return np.asarray(self.components_.T @ self.components_)

    def _known(self, X: ArrayLike) -> Array:
        """The data that a fitted metric is asked about."""
        check_is_fitted(self)
        data: Array = validated(self, X, reset=False)
        return data

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def differences(X: Array, index: Array) -> Array:
    """x − y for pairs of rows, (m, d)."""
    return np.asarray(X[index[:, 0]] - X[index[:, 1]])


def not_coincident(apart: Array) -> Array:
    """Which differences (m, d) are of points that are not the same, as a mask (m,)."""
    return np.asarray(np.einsum("ij,ij->i", apart, apart) > np.finfo(apart.dtype).tiny)


def components(matrix: Array) -> Array:
    """L (rank, d) with M = LᵀL, the longest direction first; the identity if M has no positive eigenvalue."""
    values, vectors = _positive_part(matrix)
    longest_first = np.argsort(-values, kind="stable")  # equal ones stay in order: the identity's are the columns of X
    return np.asarray((vectors * np.sqrt(values)).T[longest_first]) if len(values) else np.eye(len(matrix))


def power(matrix: Array, exponent: float) -> Array:
    """A power of a positive semi-definite matrix; directions that it does not span stay 0."""
    values, vectors = _positive_part(matrix)
    return np.asarray((vectors * values**exponent) @ vectors.T)


def shrunk_covariance(apart: Array, weight: Array, shrinkage: float | str) -> Array:
    """Covariance (d, d) of differences (m, d), drawn towards a multiple of the identity.

    "auto" is the oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010), *Shrinkage algorithms for MMSE
    covariance estimation*, eq. (23), which approximates the share of least squared error for Gaussian rows of mean 0.
    It needs no choice and no labels, gives an invertible matrix from a single difference on, and fades out with many.
    """
    n_dims = apart.shape[1]
    covariance = (apart * (weight / weight.sum())[:, None]).T @ apart
    mean_variance = np.trace(covariance) / n_dims
    if isinstance(shrinkage, str):
        shrinkage = _oracle_approximating(covariance, n_answers=weight.sum() ** 2 / (weight**2).sum())
    return np.asarray((1 - shrinkage) * covariance + shrinkage * mean_variance * np.eye(n_dims))


def _oracle_approximating(covariance: Array, n_answers: float) -> float:
    """The ρ of shrunk_covariance; n_answers is Kish's effective number, which equal weights do not change."""
    n_dims = len(covariance)
    squares, square = np.sum(covariance**2), np.trace(covariance) ** 2  # tr(S²), tr²(S)
    surplus = (n_answers + 1 - 2 / n_dims) * (squares - square / n_dims)
    return min(1.0, float(((1 - 2 / n_dims) * squares + square) / surplus)) if surplus > 0 else 1.0


def _positive_part(matrix: Array) -> tuple[Array, Array]:
    """The positive eigenvalues, rising, and their eigenvectors (d, rank); what may be rounding is not counted."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > np.abs(values).max() * len(values) * np.finfo(values.dtype).eps
    return values[kept], vectors[:, kept]
