"""How a model sees the points, or, before there is one, how the data alone look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from ..inputs import Scaling
from ..kmeans import kmeans
from ..start import code_spread, nearest_mean_head
from ..trust import USUAL_SHARPNESS, chances, median_margin

Array = NDArray[Any]

USUAL_CLUSTERS = 8  # as `MaxMarginClustering` has it
WIDEST = 50  # wider data are seen by so many principal components


@dataclass(frozen=True)
class View:
    """All that a strategy is told of the points. It stays the same until there is a new model.

    Attributes
    ----------
    codes : ndarray of shape (n, d)
        Where the points lie.
    scores : ndarray of shape (n, K)
        How much every cluster wants them, in units of their median margin.
    chances : ndarray of shape (n, K)
        The chance of every cluster.
    """

    codes: Array
    scores: Array
    chances: Array

    @classmethod
    def of(cls, model: Any, X: ArrayLike, random_state: int | RandomState | None = None) -> View:
        """What a fitted `MaxMarginClustering` thinks of X; one that is not fitted, or None, leaves it to k-means.

        Parameters
        ----------
        model : MaxMarginClustering or None
        X : array-like or sparse matrix of shape (n, n_features)
        random_state : int, RandomState instance or None, default=None
            For k-means.
        """
        if not hasattr(model, "head_coef_"):
            wanted = getattr(model, "n_clusters", USUAL_CLUSTERS)
            return cls.of_data(X, wanted if isinstance(wanted, int) else USUAL_CLUSTERS, random_state)
        scores = model.decision_function(X) / model.score_unit_
        return cls(model.transform(X), scores, chances(scores, model.sharpness_))

    @classmethod
    def of_data(cls, X: ArrayLike, n_clusters: int, random_state: int | RandomState | None = None) -> View:
        """What k-means makes of X."""
        data = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
        rng = check_random_state(random_state)
        points = Scaling.learn(data, "auto").apply(data, torch.device("cpu")).points()
        codes = np.asarray(points, dtype=np.float64)
        codes = codes - codes.mean(0)
        codes /= code_spread(codes)
        if codes.shape[1] > WIDEST:
            codes = codes @ randomized_svd(codes, min(WIDEST, len(codes)), random_state=0)[2].T
        with threadpool_limits(1):
            labels = kmeans(codes, min(n_clusters, len(np.unique(codes, axis=0))), rng, n_init=3).labels
        head, bias = nearest_mean_head(codes, labels)
        scores = codes @ head.T + bias
        scores /= median_margin(torch.from_numpy(scores))
        return cls(codes, scores, chances(scores, USUAL_SHARPNESS))
