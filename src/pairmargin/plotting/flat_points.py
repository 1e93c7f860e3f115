"""From many dimensions to two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from ..exceptions import InvalidParameterError, unknown_name
from ..extras import need
from ..pairs import Pairs
from ..validation import check_rules, integer

Array = NDArray[Any]

TSNE_ITERATIONS = 500  # enough from the main directions
MAPS = ("pca", "tsne", "umap")


def drawn_rows(n: int, max_points: int, pairs: Pairs | None, rng: RandomState) -> Array:
    """The rows to draw, rising: all, or those in pairs and a random choice of the others."""
    check_rules({"max_points": integer(1)}, {"max_points": max_points})
    if n <= max_points:
        return np.arange(n)
    asked = np.empty(0, dtype=int) if pairs is None else pairs.points
    others = np.setdiff1d(np.arange(n), asked)
    chosen = rng.choice(others, size=min(len(others), max(max_points - len(asked), 0)), replace=False)
    return np.sort(np.concatenate((asked, chosen)))


def flat_points(X: Any, rows: Array, method: Any, rng: RandomState) -> tuple[Array, tuple[str, str]]:
    """Places (·, 2) of the rows, and what the two directions are."""
    if isinstance(method, str) and method == "pca":
        return _principal(X, rows, rng)
    shown = X[rows]
    if isinstance(method, str):
        transformer, name = _neighbour_map(method, shown, int(rng.randint(2**31 - 1)))
    else:
        transformer, name = method, type(method).__name__
    with threadpool_limits(1):  # at this size more threads cost more than they give
        points = np.asarray(transformer.fit_transform(shown))
    if points.shape != (len(rows), 2):
        raise InvalidParameterError(f"{name} gives shape {points.shape}; a map needs 2 columns, such as n_components=2")
    return points, (f"{name}: only neighbourhoods mean something", "") if isinstance(method, str) else (name, "")


def _principal(X: Any, rows: Array, rng: RandomState) -> tuple[Array, tuple[str, str]]:
    """The two directions of most variance; one column is drawn as a line."""
    n_components = min(2, *X.shape)
    if hasattr(X, "toarray"):
        pca: Any = TruncatedSVD(n_components, random_state=rng)
    else:
        pca = PCA(n_components, random_state=rng)
    with np.errstate(divide="ignore", invalid="ignore"):  # points that are all the same have no variance to share
        points = pca.fit_transform(X)[rows]
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    names = [f"component {k} ({share:.0%} of the variance)" for k, share in enumerate(shares, start=1)]
    return np.pad(points, ((0, 0), (0, 2 - n_components))), (names[0], names[1] if n_components == 2 else "")


def _neighbour_map(method: str, shown: Any, seed: int) -> tuple[Any, str]:
    """A method that keeps neighbourhoods, and its name."""
    n = shown.shape[0]
    if method == "tsne":
        start = _tsne_start(shown, seed)
        perplexity = min(30.0, max((n - 1) / 3, 1.0))
        return TSNE(perplexity=perplexity, init=start, max_iter=TSNE_ITERATIONS, random_state=seed), "t-SNE"
    if method != "umap":
        raise InvalidParameterError(unknown_name("method", method, MAPS))
    return need("umap", 'method="umap"').UMAP(n_neighbors=min(15, n - 1), random_state=seed, n_jobs=1), "UMAP"


def _tsne_start(shown: Any, seed: int) -> Any:
    """The main directions, very small: far groups then lie as they did; at random if there are no two of them."""
    points = _principal(shown, np.arange(shown.shape[0]), RandomState(seed))[0].astype(np.float32)
    spread = points.std(0)
    return points / spread[0] * np.float32(1e-4) if spread.all() else "random"
