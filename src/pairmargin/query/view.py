"""How a model sees the points, or, before there is one, how the data alone look."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from ..graph import neighbour_graph
from ..inputs import Input, Scaling
from ..kmeans import kmeans
from ..start import code_spread, nearest_mean_head
from ..trust import USUAL_SHARPNESS, chances
from ..validation import checked_points

Array = NDArray[Any]

USUAL_CLUSTERS = 8  # as `MaxMarginClustering` has it
N_NEIGHBORS = 30  # that a point is compared with
N_TREES = 50  # of the forest
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
    n_clusters : int
        How many clusters there may be, at least K.
    """

    codes: Array
    scores: Array
    chances: Array
    n_clusters: int

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
        wanted = getattr(model, "n_clusters", None)
        if not hasattr(model, "head_coef_"):
            return cls.of_data(X, int(wanted) if isinstance(wanted, Integral) else USUAL_CLUSTERS, random_state)
        scores = model.decision_function(X) / model.score_unit_
        n_clusters = int(wanted) if isinstance(wanted, Integral) else scores.shape[1]
        return cls(model.transform(X), scores, chances(scores, model.sharpness_), n_clusters)

    @classmethod
    def of_data(cls, X: ArrayLike, n_clusters: int, random_state: int | RandomState | None = None) -> View:
        """What k-means makes of X."""
        data = checked_points(X)
        rng = check_random_state(random_state)
        scaled = cast(Input, Scaling.learn(data, "auto").apply(data, torch.device("cpu")))
        codes = np.asarray(scaled.points(), dtype=np.float64)
        codes = codes - codes.mean(0)
        codes /= code_spread(codes)
        if codes.shape[1] > WIDEST:
            codes = codes @ randomized_svd(codes, min(WIDEST, len(codes)), random_state=0)[2].T
        with threadpool_limits(1):
            labels = kmeans(codes, min(n_clusters, len(np.unique(codes, axis=0))), rng, n_init=3).labels
        head, bias = nearest_mean_head(codes, labels)
        scores = codes @ head.T + bias  # in units of their median margin, as such a head is
        return cls(codes, scores, chances(scores, USUAL_SHARPNESS), n_clusters)

    @cached_property
    def likeness(self) -> sp.csr_array:
        """How much neighbours resemble each other, from 0 to 1, which is for a point and itself, (n, n)."""
        n = len(self.codes)
        graph = neighbour_graph(self.codes, N_NEIGHBORS) if n > 1 else sp.csr_array((n, n))
        return sp.csr_array(graph + sp.eye_array(n))

    @cached_property
    def typicality(self) -> Array:
        """How much likeness there is around a point, where the clusters are sure, (n,)."""
        return np.asarray(self.likeness @ self.chances.max(1))

    @cached_property
    def forest_leaves(self) -> sp.csr_array:
        """The leaves that points reach in trees that tell the clusters apart, so that products are similarities.

        Two points are as similar as the share of the trees in which they reach the same leaf (Xiong, Azimi, Fern 2014).
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)  # few points, many clusters
            forest = RandomForestClassifier(N_TREES, random_state=0).fit(self.codes, self.scores.argmax(1))
        leaf = forest.apply(self.codes) + np.arange(N_TREES) * 2 * len(self.codes)  # a tree has fewer nodes than 2n
        column = np.unique(leaf, return_inverse=True)[1].ravel()
        row = np.repeat(np.arange(len(leaf)), N_TREES)
        return sp.csr_array((np.full(len(row), N_TREES**-0.5), (row, column)))
