"""`ClusterMapDisplay`: the clusters in two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..exceptions import InvalidDataError
from ..looks import cluster_look
from ..model_selection import before_last, cluster_labels, last_step
from ..pairs import Pairs
from .flat_points import drawn_rows, flat_points
from .graph_layout import moved_apart
from .parts import axes_for, draw_links, haloed, link_legend, need_matplotlib, note

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.text import Text

Array = NDArray[Any]

SMALL = 0.014  # the spread of a cluster, as a share of the map, below which its number would hide it
RASTER_FROM = 2000  # points; beyond, they are pixels also in a PDF, whose size then does not grow with them


class ClusterMapDisplay:
    """A map of the points in two dimensions, coloured by cluster, with the answers as lines if wanted.

    Every cluster has its number at its middle. Up to ten clusters have a colour each; the next ten have the same
    colours and other markers, and so on. An answer "same" is a solid line and "different" a dashed one; those that the
    clusters do not keep are red. Make one with `from_estimator` or `from_predictions`.

    Parameters
    ----------
    points : ndarray of shape (n_shown, 2)
        Where the points are.
    labels : ndarray of shape (n_shown,)
        Their clusters.
    rows : ndarray of shape (n_shown,), optional
        Their row numbers, rising; 0, 1, … if not given.
    n_samples : int, optional
        How many points there are, shown or not.
    pairs : Pairs, optional
        The answers to draw.
    axis_names : tuple of str, default=("", "")
        What the two directions are.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    points_ : dict of matplotlib PathCollection
        The points, by cluster.
    lines_ : dict of matplotlib LineCollection
        The answers: "same", "different", "broken same" and "broken different".
    texts_ : list of matplotlib Text
        The numbers of the clusters.
    note_ : matplotlib Text or None
        How many points are shown, if not all are.

    Examples
    --------
    >>> from pairmargin import ClusterMapDisplay
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> display = ClusterMapDisplay.from_predictions(X, y)
    >>> display.ax_.get_xlabel()
    'component 1 (100% of the variance)'
    """

    def __init__(
        self,
        *,
        points: Array,
        labels: Array,
        rows: Array | None = None,
        n_samples: int | None = None,
        pairs: Pairs | None = None,
        axis_names: tuple[str, str] = ("", ""),
    ) -> None:
        self.points, self.labels = points, labels
        self.rows = np.arange(len(points)) if rows is None else rows
        self.n_samples = len(points) if n_samples is None else n_samples
        self.pairs, self.axis_names = pairs, axis_names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        pairs: Pairs | None = None,
        method: Any = "pca",
        max_points: int = 5000,
        random_state: int | RandomState | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ClusterMapDisplay:
        """Map what a fitted model makes of X: its codes if it is one of ours that has them, else what it was given.

        Parameters
        ----------
        estimator : estimator
            A fitted model or pipeline with clusters, which are those of ``predict`` if it has that. ``labels_`` may
            differ, where answers count for the points they are about (`MaxMarginClustering`, `PCKMeans`): for these see
            `from_predictions`.
        X : array-like of shape (n_samples, n_features)
            The points.
        pairs : Pairs, optional
            Answers to draw as lines.
        method : {"pca", "tsne", "umap"} or transformer, default="pca"
            How to come to two dimensions. "umap" needs the package umap-learn. Anything with ``fit_transform`` that
            gives two columns will do.
        max_points : int, default=5000
            If there are more, so many are drawn at random, and the map says so. Rows in ``pairs`` are always among
            them. PCA looks at all rows all the same; the others at those that are drawn.
        random_state : int, RandomState instance or None, default=None
            For t-SNE, UMAP and the drawing of points.
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        **kwargs
            For `plot`.

        Returns
        -------
        display : ClusterMapDisplay
        """
        last = last_step(estimator)
        has_codes = hasattr(last, "transform") and hasattr(last, "pair_score")  # k-means transforms into distances
        codes = estimator.transform(X) if has_codes else before_last(estimator, X)
        settings = {"pairs": pairs, "method": method, "max_points": max_points, "random_state": random_state}
        return cls.from_predictions(codes, cluster_labels(estimator, X), ax=ax, **settings, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        X: Any,
        labels: ArrayLike,
        *,
        pairs: Pairs | None = None,
        method: Any = "pca",
        max_points: int = 5000,
        random_state: int | RandomState | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ClusterMapDisplay:
        """Map points whose clusters are known.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The points, or codes of them.
        labels : array-like of shape (n_samples,)
            Their clusters; numbers or names.
        pairs, method, max_points, random_state, ax, **kwargs
            As in `from_estimator`.

        Returns
        -------
        display : ClusterMapDisplay
        """
        need_matplotlib()
        data = X if hasattr(X, "toarray") else np.asarray(X)
        clusters = np.asarray(labels)
        if data.ndim != 2 or clusters.shape != (data.shape[0],):
            raise InvalidDataError(
                f"X has shape {data.shape} and labels {clusters.shape}; give rows of numbers and a label for each"
            )
        pairs = None if pairs is None else Pairs.check(pairs, data.shape[0])
        rng = check_random_state(random_state)
        rows = drawn_rows(data.shape[0], max_points, pairs, rng)
        points, names = flat_points(data, rows, method, rng)
        display = cls(
            points=points,
            labels=clusters[rows],
            rows=rows,
            n_samples=data.shape[0],
            pairs=pairs,
            axis_names=names,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, *, numbers: bool = True, **kwargs: Any) -> ClusterMapDisplay:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure if not given.
        numbers : bool, default=True
            Whether every cluster has its number at its middle.
        **kwargs
            Settings of the points, for ``Axes.scatter``.

        Returns
        -------
        self : ClusterMapDisplay
        """
        self.ax_, self.figure_ = axes_for(ax)
        if ax is None:
            self.ax_.spines[:].set_visible(False)
        size = float(np.clip(9000 / len(self.points), 8, 36)) if len(self.points) else 36.0
        look = {"s": size, "alpha": 0.75, "linewidths": 0, "rasterized": len(self.points) > RASTER_FROM} | kwargs
        self.points_: dict[Any, PathCollection] = {}
        for k, cluster in enumerate(np.unique(self.labels).tolist()):
            x, y = self.points[self.labels == cluster].T
            settings: dict[str, Any] = cluster_look(k) | look
            self.points_[cluster] = self.ax_.scatter(x, y, label=f"{cluster}", **settings)
        self.lines_ = self._draw_pairs()
        self.ax_.set(xticks=[], yticks=[], xlabel=self.axis_names[0], ylabel=self.axis_names[1])
        self.ax_.set_aspect("equal", adjustable="datalim")
        self.texts_ = self._draw_numbers() if numbers else []
        self.note_ = None
        if len(self.points) < self.n_samples:
            self.note_ = note(self.ax_, f"{len(self.points):,} of {self.n_samples:,} points shown")
        return self

    def _draw_pairs(self) -> dict[str, LineCollection]:
        """The answers as lines, those that the clusters do not keep in red."""
        if self.pairs is None or not len(self.pairs):
            return {}
        places = np.searchsorted(self.rows, self.pairs.index)  # (m, 2)
        ends = self.labels[places]
        broken = (ends[:, 0] == ends[:, 1]) != self.pairs.same
        lines = draw_links(self.ax_, self.points[places], self.pairs.same, broken, many=40)
        link_legend(self.ax_, lines, "not kept")
        return lines

    def _draw_numbers(self) -> list[Text]:
        """The number of every cluster at its middle, or above it where it would hide it; none covers another."""
        extent = float(np.ptp(self.points, axis=0).max()) or 1.0
        places = np.empty((len(self.points_), 2))
        for place, cluster in zip(places, self.points_, strict=True):
            own = self.points[self.labels == cluster]
            place[:] = np.median(own, axis=0)
            if np.median(np.abs(own - place)) < SMALL * extent:
                place[1] = np.quantile(own[:, 1], 0.9) + 2 * SMALL * extent
        places = moved_apart(places, np.full(len(places), 0.024 * extent))
        return [
            haloed(self.ax_, place, f"{cluster}", fontsize=10, fontweight="bold")
            for cluster, place in zip(self.points_, places, strict=True)
        ]
