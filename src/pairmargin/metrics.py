"""How good a clustering is, and how well a score tells same from different.

The rest is in `sklearn.metrics`: `adjusted_rand_score`, `normalized_mutual_info_score` and others take the same labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, auc, normalized_mutual_info_score, roc_curve
from sklearn.metrics.cluster import contingency_matrix

from .exceptions import InvalidDataError, InvalidPairsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .pairs import Pairs

__all__ = ["PairRoc", "clustering_accuracy", "pair_roc"]


def clustering_accuracy(labels_true: ArrayLike, labels_pred: ArrayLike) -> float:
    """The share of points that are right when clusters are matched with classes as well as can be.

    Each cluster stands for at most one class and each class for at most one cluster; the matching with the most points
    is found by the Hungarian method. Cluster numbers need not mean anything, and there may be more clusters than
    classes or fewer.

    Parameters
    ----------
    labels_true : array-like of shape (n_samples,)
        The classes.
    labels_pred : array-like of shape (n_samples,)
        The clusters.

    Returns
    -------
    accuracy : float
        Above 0, at most 1.

    Examples
    --------
    >>> from pairmargin import clustering_accuracy
    >>> clustering_accuracy(["a", "a", "b", "b"], [1, 1, 0, 1])
    0.75
    """
    true, pred = _labels(labels_true, "labels_true"), _labels(labels_pred, "labels_pred")
    if len(true) != len(pred):
        raise InvalidDataError(
            f"labels_true has {len(true)} labels but labels_pred has {len(pred)}; give one of each for every point"
        )
    counts = contingency_matrix(true, pred)  # (classes, clusters)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(true))


def _labels(labels: ArrayLike, name: str) -> NDArray[Any]:
    """Labels of any kind, at least one."""
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) == 0:
        raise InvalidDataError(f"{name} has shape {array.shape}; give one label for each of at least one point")
    return array


def truth_scores(truth: NDArray[Any], cluster: NDArray[Any]) -> dict[str, float]:
    """How well clusters agree with the labels of those points that have one, not None; nothing if none has."""
    known = np.array([name is not None for name in truth], dtype=bool)
    names, found = truth[known].astype(str), cluster[known]
    if not len(names):
        return {}
    return {
        "accuracy": clustering_accuracy(names, found),
        "adjusted_rand": float(adjusted_rand_score(names, found)),
        "normalized_mutual_information": float(normalized_mutual_info_score(names, found)),
    }


class PairRoc(NamedTuple):
    """The ROC curve of a pair score, "same" being the positive answer.

    Attributes
    ----------
    fpr : ndarray
        The share of "different" pairs that score at least the threshold.
    tpr : ndarray
        The share of "same" pairs that score at least the threshold.
    thresholds : ndarray
        Falling; the first is infinite, where nothing is called same.
    auc : float
        The area under the curve: the chance that a "same" pair scores higher than a "different" one.
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    auc: float


def pair_roc(pairs: Pairs | ArrayLike, score: ArrayLike) -> PairRoc:
    """How well a score tells "same" pairs from "different" ones, over all thresholds.

    Parameters
    ----------
    pairs : Pairs or array-like of bool of shape (m,)
        The answers. The weights of `Pairs` count.
    score : array-like of shape (m,)
        Larger for pairs that are more likely the same; for `Pairs`, in the order of ``pairs.index``, as
        ``model.pair_score(X, pairs.index)`` gives it. Of distances, give the negative.

    Returns
    -------
    roc : PairRoc

    Examples
    --------
    >>> from pairmargin import pair_roc
    >>> pair_roc([True, True, False, False], score=[0.9, 0.4, 0.5, 0.1]).auc
    0.75
    """
    # By their attributes: this module needs no `Pairs`.
    same, weight = np.asarray(getattr(pairs, "same", pairs)), getattr(pairs, "weight", None)
    _check_same(same)
    values = _check_score(score, len(same))
    fpr, tpr, thresholds = roc_curve(same.astype(bool), values, sample_weight=weight)
    return PairRoc(fpr, tpr, thresholds, float(auc(fpr, tpr)))


def _check_same(same: NDArray[Any]) -> None:
    """One answer a pair, and some of both kinds."""
    if same.ndim != 1 or same.dtype.kind not in "biuf" or not np.isin(same, (0, 1)).all():
        raise InvalidPairsError(
            f"the answers are {same.dtype} of shape {same.shape}; give Pairs, or True or False for each pair"
        )
    n_same = int(same.sum())
    if n_same in (0, len(same)):
        raise InvalidPairsError(
            f"an ROC curve needs both kinds of pairs, but {n_same} of {len(same)} are same; add some of the other kind"
        )


def _check_score(score: ArrayLike, n_pairs: int) -> NDArray[np.float64]:
    """One finite number a pair."""
    values = np.asarray(score, dtype=np.float64)
    if values.shape != (n_pairs,):
        raise InvalidDataError(f"score has shape {values.shape} but there are {n_pairs} pairs; give one score for each")
    bad = ~np.isfinite(values)
    if bad.any():
        k = int(np.argmax(bad))
        raise InvalidDataError(f"score[{k}] is {values[k]}; scores should be finite numbers")
    return values


class Bin(NamedTuple):
    """The answers whose chance of "same" is between two numbers."""

    low: float
    high: float
    answers: int
    chance: float  # their mean
    same: float  # the share that is the same


def reliability(same: ArrayLike, chance: ArrayLike, n_bins: int = 10) -> list[Bin]:
    """How often answers are "same" where a model gives them a certain chance; bins without answers are left out.

    Parameters
    ----------
    same : array-like of bool of shape (m,)
        The answers.
    chance : array-like of shape (m,)
        Of "same", from 0 to 1.
    n_bins : int, default=10
        Equal parts of the chances from 0 to 1.

    Returns
    -------
    bins : list of Bin
    """
    answer, told = np.asarray(same, dtype=bool), np.asarray(chance, dtype=np.float64)
    place = np.minimum((told * n_bins).astype(int), n_bins - 1)
    return [
        Bin(b / n_bins, (b + 1) / n_bins, len(own), float(told[own].mean()), float(answer[own].mean()))
        for b in range(n_bins)
        if len(own := np.flatnonzero(place == b))
    ]
