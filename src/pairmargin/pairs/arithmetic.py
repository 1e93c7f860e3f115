"""The counting and sorting under `Pairs`: canonical order, graphs, pairs by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]
    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]


def canonical(
    index: IntArray, same: BoolArray, weight: FloatArray, first: IntArray
) -> tuple[IntArray, BoolArray, FloatArray, IntArray]:
    """The smaller row first, rows sorted, repeated answers merged."""
    index = np.sort(index, axis=1)
    i, j = index.T
    if ((i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))).all():
        return index, same, weight, first  # already so, as after `closure`: sorting is what takes the time
    # Equal answers are sorted by weight, so that the rounding of their sum does not depend on the order they came in.
    order = np.lexsort((weight, same, index[:, 1], index[:, 0]))
    index, same, weight, first = index[order], same[order], weight[order], first[order]
    new = np.ones(len(index), dtype=bool)
    new[1:] = (index[1:] != index[:-1]).any(axis=1) | (same[1:] != same[:-1])
    start = np.flatnonzero(new)
    return index[start], same[start], np.add.reduceat(weight, start), np.minimum.reduceat(first, start)


def link_graph(edges: IntArray, n: int, weight: FloatArray | None = None) -> csr_array[np.float64]:
    """The undirected graph with these edges, each of weight 1 if nothing is said; the weights of equal ones add up."""
    row, column = np.concatenate((edges, edges[:, ::-1])).T
    weight = np.ones(len(edges)) if weight is None else weight
    return csr_array((np.tile(weight, 2), (row, column)), shape=(n, n))


def places_within(rank: IntArray, size: IntArray) -> IntArray:
    """Two places a < b for each rank: the pairs inside groups that lie one after another, (2, ·)."""
    count = size * (size - 1) // 2
    end = np.cumsum(count)
    group = np.searchsorted(end, rank, side="right")
    rank = rank - (end - count)[group]
    # Inside a group, b comes with b(b − 1)/2 pairs before it; rounding the root may go one too far.
    b = ((1 + np.sqrt(1 + 8 * rank)) // 2).astype(np.int64)
    b -= b * (b - 1) // 2 > rank
    start = (np.cumsum(size) - size)[group]
    return np.stack((start + rank - b * (b - 1) // 2, start + b))


def places_between(
    rank: IntArray, start_a: IntArray, size_a: IntArray, start_b: IntArray, size_b: IntArray
) -> IntArray:
    """Two places for each rank: the pairs of one point of group a and one of group b, for each (a, b), (2, ·)."""
    count = size_a * size_b
    end = np.cumsum(count)
    block = np.searchsorted(end, rank, side="right")
    a, b = np.divmod(rank - (end - count)[block], size_b[block])
    return np.stack((start_a[block] + a, start_b[block] + b))
