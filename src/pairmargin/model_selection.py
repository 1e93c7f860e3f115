"""Choosing models by held-out answers: rows are never left out, so that row numbers keep their meaning.

scikit-learn's cross-validation leaves out samples. To `PairClassifier` the samples are the answers and the points a
setting, so that `GridSearchCV`, `cross_validate` and every splitter hold out answers. Why it is done in this way:
``docs/design/pair-split.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .exceptions import InvalidPairsError, InvalidParameterError
from .metrics import pair_roc
from .pairs import Pairs

Array = NDArray[Any]


class PairClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Same or different? A model that learns from pairs, as a classifier whose samples are the pairs.

    Where other classifiers take features, this one takes pairs of row numbers. Whatever scikit-learn does to samples
    (folds, scorers, searches) it then does to answers, while the model is always fitted on all the points.

    Parameters
    ----------
    estimator : estimator
        What learns: `MaxMarginClustering`, a baseline, or a `Pipeline`, of which every step that takes pairs gets them.
        Its settings are called ``estimator__…`` in a search.
    data : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The points that row numbers refer to. Clones share it.

    Attributes
    ----------
    estimator_ : estimator
        A clone of ``estimator``, fitted; its ``labels_`` are the clusters of all points.
    threshold_ : float
        From which ``pair_score`` on a pair is called same. Where there are clusters, two points of one cluster are the
        same; a metric has none and gets the threshold that tells the answers it was fitted on apart best.
    classes_ : ndarray of shape (2,)
        False and True.

    Examples
    --------
    >>> from pairmargin import MaxMarginClustering, PairClassifier, PairSplit, sample_pairs
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import GridSearchCV
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = sample_pairs(y, 120, random_state=0)
    >>> model = MaxMarginClustering(hidden_layer_sizes=(), random_state=0)
    >>> grid = {"estimator__n_clusters": [2, 3]}
    >>> search = GridSearchCV(PairClassifier(model, X), grid, cv=PairSplit(3, random_state=0), scoring="roc_auc")
    >>> search.fit(pairs.index, pairs.same).best_params_
    {'estimator__n_clusters': 3}
    >>> search.best_estimator_.estimator_.labels_.shape
    (178,)
    """

    def __init__(self, estimator: Any, data: Any) -> None:
        self.estimator = estimator
        self.data = data

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> PairClassifier:
        """Fit the model on all points and on these answers.

        Parameters
        ----------
        X : array-like of shape (m, 2)
            Row numbers, such as ``pairs.index``.
        y : array-like of shape (m,)
            True where the two rows are the same, such as ``pairs.same``.
        sample_weight : array-like of shape (m,), optional
            How much each answer counts, such as ``pairs.weight``.

        Returns
        -------
        self : PairClassifier
        """
        pairs = Pairs(X, y, sample_weight)
        self.estimator_ = fit_with_pairs(clone(self.estimator), self.data, pairs)
        self.threshold_ = self._threshold(pairs)
        self.classes_ = np.array([False, True])
        return self

    def decision_function(self, X: ArrayLike) -> Array:
        """By how much the model's score of these pairs of rows is above the threshold, (m,)."""
        check_is_fitted(self)
        return score_pairs(self.estimator_, self.data, X, known=True) - self.threshold_

    def predict(self, X: ArrayLike) -> Array:
        """True for pairs of rows that are called same, (m,)."""
        return np.asarray(self.decision_function(X) > 0)

    def _threshold(self, pairs: Pairs) -> float:
        """The score that separates same from different."""
        last = last_step(self.estimator_)
        if hasattr(last, "labels_"):
            return 0.0 if hasattr(last, "pair_score") else 0.5
        roc = pair_roc(pairs, score_pairs(self.estimator_, self.data, pairs))
        best = max(1, int(np.argmax(roc.tpr - roc.fpr)))  # the first threshold is infinite
        ends = roc.thresholds[[best, min(best + 1, len(roc.thresholds) - 1)]]
        return float(ends.mean())

    def __sklearn_clone__(self) -> PairClassifier:
        # A search clones for every fit; scikit-learn's own way would copy the points each time.
        twin = type(self)(clone(self.estimator), self.data)
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = deepcopy(self._metadata_request)
        return twin


class PairSplit(BaseCrossValidator):  # type: ignore[misc]
    """Folds of answers, with "same" and "different" in the same proportion in each.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    implied : {"drop", "keep"}, default="drop"
        What to do with held-out answers that follow from those trained on, by chains such as *0 is 1, 1 is 2, so 0 is
        2*. They say nothing about pairs nobody was asked about, so they are not scored unless kept.
    random_state : int, RandomState instance or None, default=None

    Examples
    --------
    >>> from pairmargin import Pairs, PairSplit
    >>> pairs = Pairs.from_lists([(0, 1), (2, 3), (4, 5)], [(0, 2), (1, 4), (3, 5)])
    >>> [(len(train), len(test)) for train, test in PairSplit(3, random_state=0).split(pairs.index, pairs.same)]
    [(4, 2), (4, 2), (4, 2)]
    """

    def __init__(
        self, n_splits: int = 5, *, implied: str = "drop", random_state: int | RandomState | None = None
    ) -> None:
        self.n_splits = n_splits
        self.implied = implied
        self.random_state = random_state

    def split(
        self, X: ArrayLike | Pairs, y: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[tuple[Array, Array]]:
        """Places of the answers to train on and to score on, fold by fold.

        Parameters
        ----------
        X : Pairs or array-like of shape (m, 2)
            The answers, or their row numbers.
        y : array-like of shape (m,)
            True where the two rows are the same; not needed for `Pairs`.
        groups : ignored
            Here because scikit-learn expects it.

        Yields
        ------
        train, test : ndarray
        """
        index, same = self._checked(X, y)
        folds = StratifiedKFold(self.n_splits, shuffle=True, random_state=self.random_state)
        for number, (train, test) in enumerate(folds.split(index, same)):
            kept = test if self.implied == "keep" else test[~follows(index, same, train, test)]
            if len(np.unique(same[kept])) < 2:
                raise InvalidPairsError(
                    f"fold {number} of {self.n_splits} holds out {len(test)} answers, but once those that follow from "
                    f"the others are left out, {same[kept].sum()} same and {(~same[kept]).sum()} different remain; "
                    'give more answers, take fewer folds, or pass implied="keep"'
                )
            yield train, kept

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def _checked(self, X: ArrayLike | Pairs, y: ArrayLike | None) -> tuple[Array, Array]:
        """Row numbers and answers, enough of both kinds."""
        if self.implied not in ("drop", "keep"):
            raise InvalidParameterError(f'implied should be "drop" or "keep", not {self.implied!r}')
        if isinstance(X, Pairs):
            index, same = X.index, X.same
        elif y is None:
            raise InvalidPairsError("y is None; give the answers: split(pairs.index, pairs.same)")
        else:
            index, same = np.asarray(X), np.asarray(y).astype(bool)
            Pairs(index, np.asarray(y))  # for its checks
        fewest = min(int(same.sum()), int((~same).sum()))
        if not isinstance(self.n_splits, Integral) or not 2 <= self.n_splits <= fewest:
            raise InvalidParameterError(
                f"n_splits={self.n_splits!r} should be a whole number from 2 up to the number of answers of the rarer "
                f"kind, of which there are {fewest}"
            )
        return index, same


def follows(index: Array, same: Array, train: Array, test: Array) -> Array:
    """Which of the answers at `test` follow from those at `train`, as a mask over `test`."""
    points, local = np.unique(index, return_inverse=True)
    local = local.reshape(-1, 2)
    known = Pairs(local[train], same[train])
    component = known.components(len(points))
    ends = np.sort(component[local[test]], axis=1)  # (t, 2)
    is_joined = ends[:, 0] == ends[:, 1]
    number = (len(points), 1)  # makes one number of two components
    is_apart = np.isin(ends @ number, np.sort(component[known.cannot_link], axis=1) @ number)
    return np.asarray(np.where(same[test], is_joined, is_apart & ~is_joined))


# Models and pipelines alike


def fit_with_pairs(estimator: Any, X: Any, pairs: Pairs | None) -> Any:
    """Fit a model, or a pipeline of which every step that takes pairs gets them."""
    if isinstance(estimator, Pipeline):
        if get_config()["enable_metadata_routing"]:  # then the requests of the steps say who gets them
            return estimator.fit(X, pairs=pairs)
        takers = list(_takers(estimator))
    else:
        takers = ["pairs"] if has_fit_parameter(estimator, "pairs") else []
    if not takers:
        raise InvalidParameterError(
            f"{type(estimator).__name__} has no step that takes pairs; use MaxMarginClustering or a baseline"
        )
    return estimator.fit(X, **dict.fromkeys(takers, pairs))


def _takers(pipeline: Pipeline) -> Iterator[str]:
    """What the pairs are called in `fit` of a pipeline: ``step__pairs`` for every step that takes them."""
    for name, step in pipeline.steps:
        if isinstance(step, Pipeline):
            yield from (f"{name}__{taker}" for taker in _takers(step))
        elif hasattr(step, "fit") and has_fit_parameter(step, "pairs"):
            yield f"{name}__pairs"


def score_pairs(estimator: Any, X: Any, index: ArrayLike | Pairs, *, known: bool = False) -> Array:
    """How sure a fitted model or pipeline is that pairs of rows are the same; 1 or 0 if it has clusters alone."""
    last, X = last_step(estimator), before_last(estimator, X)
    if hasattr(last, "pair_score"):
        return np.asarray(last.pair_score(X, index))
    labels = cluster_labels(last, X, known=known)
    i, j = Pairs.check_rows(index, len(labels)).T
    return np.asarray(labels[i] == labels[j], dtype=np.float64)


def cluster_labels(estimator: Any, X: Any, *, known: bool = False) -> Array:
    """The cluster of every row of X, by a fitted model or pipeline; `known` says that it was fitted on X.

    The two differ where answers count for the points that they are about: ``predict`` knows of no answers.
    """
    last, X = last_step(estimator), before_last(estimator, X)
    has_labels = hasattr(last, "labels_") and len(last.labels_) == X.shape[0]
    if has_labels and (known or not hasattr(last, "predict")):
        return np.asarray(last.labels_)
    if hasattr(last, "predict"):
        return np.asarray(last.predict(X))
    raise InvalidParameterError(
        f"{type(last).__name__} has no clusters for these {X.shape[0]} rows; fit it on them, or choose a model with "
        "predict"
    )


def before_last(estimator: Any, X: Any) -> Any:
    """What the last step of a fitted pipeline sees of X; X itself for a model that is no pipeline."""
    return estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X


def last_step(estimator: Any) -> Any:
    """The model at the end of a pipeline, or a model that is no pipeline."""
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator
