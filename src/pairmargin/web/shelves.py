"""Clusters as a person looks at them: what is sure, what is not, and where one could be two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InvalidParameterError
from .learning import Clustering

Array = NDArray[Any]
UNSURE_BELOW = 0.6  # the chance of its cluster, below which an item is shown as uncertain


def confidence(clustering: Clustering) -> Array:
    """The chance of every item's cluster, (n,)."""
    return np.asarray(clustering.chances[np.arange(len(clustering.cluster)), clustering.cluster])


def sureness(clustering: Clustering) -> float:
    """The mean chance of the items' clusters."""
    return float(confidence(clustering).mean())


def members(clustering: Clustering, cluster: int) -> Array:
    """The items of a cluster, the surest first."""
    rows = np.flatnonzero(clustering.cluster == cluster)
    return rows[np.argsort(-clustering.chances[rows, cluster], kind="stable")]


def surest(clustering: Clustering, cluster: int, but: int | None = None) -> int | None:
    """The surest item of a cluster other than a certain one."""
    rows = members(clustering, cluster)
    rows = rows[rows != but]
    return int(rows[0]) if len(rows) else None


def halves(clustering: Clustering, cluster: int) -> tuple[int, int]:
    """An item from each end of a cluster: those that lie furthest apart along its longest direction on the map.

    Not the outermost ones, which may belong nowhere, but the tenth from each end in a hundred.
    """
    rows = members(clustering, cluster)
    if len(rows) < 2:
        raise InvalidParameterError(f"cluster {cluster} has {len(rows)} items; only one with two or more can be split")
    places = np.asarray(clustering.places[rows], dtype=np.float64)
    centred = places - places.mean(0)
    direction = np.linalg.svd(centred, full_matrices=False)[2][0]
    order = np.argsort(centred @ direction, kind="stable")
    low, high = order[len(order) // 10], order[-1 - len(order) // 10]
    i, j = sorted((int(rows[low]), int(rows[high])))
    return i, j


def carried(names: dict[int, str], before: Array, after: Array) -> dict[int, str]:
    """The names of clusters after a refit: each goes where most of its items went; if two meet, the larger stays."""
    claims = []
    for k, name in names.items():
        went = np.bincount(after[before == k])
        if len(went):
            claims.append((int(went.max()), int(went.argmax()), name))
    return {k: name for _, k, name in sorted(claims)}
