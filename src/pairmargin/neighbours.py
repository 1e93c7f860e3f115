"""The nearest neighbours of every point: exact for thousands of points, by an index for more.

Of 60 000 × 784 pixels, faiss finds 10 neighbours in 24 s, 98.6 % of them the true ones; scikit-learn, which compares
all with all, takes 200 s (docs/design/neighbours-and-balance.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.neighbors import NearestNeighbors

from .inputs import fingerprint
from .pairs.arithmetic import link_graph

Array = NDArray[Any]

EXACT_UP_TO = 20_000  # points
LINKS = 16  # of every point in the index; more cost time and find a little more
EFFORT = 40, 32  # candidates to look at, when the index is built and when it is asked


def nearest_neighbours(points: Any, n_neighbors: int) -> tuple[Array, Array]:
    """Distances and rows of the neighbours of every point but itself, nearest first, both (n, ≤ n_neighbors)."""
    n = points.shape[0]
    k = min(n_neighbors, n - 1)
    if k <= 0:
        return np.empty((n, 0)), np.empty((n, 0), dtype=np.int64)
    if n <= EXACT_UP_TO or sp.issparse(points):
        distance, neighbour = NearestNeighbors(n_neighbors=k).fit(points).kneighbors()
        return distance, neighbour
    return _by_index(np.ascontiguousarray(points, dtype=np.float32), k)


class KnownLinks:
    """The links of the points that were looked at last: a fit that goes on with the same points need not search."""

    def __init__(self) -> None:
        self._of: tuple[bytes, int] | None = None
        self._links = np.empty((0, 2), dtype=np.int64)

    def among(self, points: Any, n_neighbors: int) -> Array:
        """Every point with each of its nearest neighbours, once, (≤ n·n_neighbors, 2)."""
        asked = fingerprint(points), n_neighbors
        if asked != self._of:
            self._of, self._links = asked, neighbour_links(nearest_neighbours(points, n_neighbors)[1])
        return self._links


def neighbour_links(neighbours: Array) -> Array:
    """Every point with each of its neighbours (n, k), once, (≤ n·k, 2)."""
    n, k = neighbours.shape
    one, other = np.repeat(np.arange(n), k), neighbours.ravel()
    key = np.unique(np.minimum(one, other) * n + np.maximum(one, other))
    return np.column_stack(np.divmod(key, max(n, 1)))


def side_by_side(links: Array, n: int) -> Array:
    """The links (l, 2) of n points in an order in which those about points that lie close stand together."""
    place = np.empty(n, dtype=np.int64)
    place[reverse_cuthill_mckee(link_graph(links, n), symmetric_mode=True)] = np.arange(n)
    return np.asarray(links[np.argsort(place[links].min(1), kind="stable")])


def _by_index(points: Array, k: int) -> tuple[Array, Array]:
    """A graph that leads from any point to the close ones (HNSW: Malkov, Yashunin 2020)."""
    import faiss  # here, since most data are small and need none of it

    index = faiss.IndexHNSWFlat(points.shape[1], LINKS)
    index.hnsw.efConstruction, index.hnsw.efSearch = EFFORT
    index.add(points)
    squared, found = index.search(points, k + 1)
    own = found == np.arange(len(points))[:, None]
    own[~own.any(1), -1] = True  # a point with many copies may not be among its own neighbours: the last one goes
    kept = ~own & (own.cumsum(1) <= 1)
    shape = len(points), k
    return np.sqrt(np.maximum(squared[kept].reshape(shape), 0)), found[kept].reshape(shape)
