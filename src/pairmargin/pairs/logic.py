"""What follows from answers, and where they disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from .arithmetic import link_graph, places_between, places_within
from .checks import check_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    IntArray = NDArray[np.int64]
    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Conflict:
    """A "different" answer whose two rows are joined by "same" answers.

    Attributes
    ----------
    different : int
        The place of the "different" answer in the `Pairs`.
    chain : tuple of int
        The places of the "same" answers of a shortest chain, in order from the smaller row to the larger.
    message : str
        The contradiction in words, in the numbering of what the user gave; also ``str(conflict)``.
    """

    different: int
    chain: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        return self.message


def closure(index: IntArray, same: BoolArray, weight: FloatArray) -> tuple[IntArray, BoolArray, FloatArray]:
    """All answers that follow from sorted answers without a contradiction, sorted; new ones have weight 1."""
    points, local = _local(index)
    component = connected_components(link_graph(local[same], len(points)), directed=False)[1]
    members = np.argsort(component, kind="stable")  # the points, component by component
    size = np.bincount(component).astype(np.int64)
    start = np.cumsum(size) - size
    differ = np.sort(component[local[~same]], axis=1).astype(np.int64) @ (len(size), 1)
    a, b = np.divmod(np.unique(differ), len(size))  # the components that are different

    n_same, n_different = int((size * (size - 1) // 2).sum()), int((size[a] * size[b]).sum())
    check_size(n_same + n_different, "the closure has", "give fewer, or do without it")
    within = places_within(np.arange(n_same), size)
    between = places_between(np.arange(n_different), start[a], size[a], start[b], size[b])

    # A number for each answer that sorts in canonical order is much cheaper to sort than rows.
    i, j = np.sort(members[np.concatenate((within, between), axis=1)], axis=0)
    code = np.sort(2 * (i * len(points) + j) + (np.arange(len(i)) < n_same))
    counts = np.ones(len(code))
    counts[np.searchsorted(code, 2 * (local @ (len(points), 1)) + same)] = weight
    return points[np.column_stack(np.divmod(code // 2, len(points)))], code % 2 == 1, counts


def contradictions(index: IntArray, same: BoolArray) -> Iterator[tuple[int, list[int]]]:
    """Of sorted answers, each contradicted "different" one, with a shortest chain of "same" ones between its rows."""
    points, local = _local(index)
    base = (len(points), 1)
    graph = link_graph(local[same], len(points))
    component = connected_components(graph, directed=False)[1][local]
    same_rows = np.flatnonzero(same)
    same_codes = local[same_rows] @ base  # sorted, because the pairs are
    source = -1
    for row in np.flatnonzero((component[:, 0] == component[:, 1]) & ~same).tolist():
        if local[row, 0] != source:  # pairs are sorted, so one search serves all that start at this point
            source = local[row, 0]
            predecessors = breadth_first_order(graph, source, return_predecessors=True)[1]
        path = [local[row, 1]]
        while path[-1] != source:
            path.append(predecessors[path[-1]])
        links = np.sort(np.column_stack((path[:0:-1], path[-2::-1])), axis=1) @ base
        yield row, same_rows[np.searchsorted(same_codes, links)].tolist()


def confirmed(index: IntArray, same: BoolArray) -> BoolArray:
    """Of sorted answers, those whose opposite would contradict the others; of contradicted ones, none is.

    "Different" is confirmed by another "different" between the same groups, "same" by another way from row to row.
    """
    points, local = _local(index)
    n_groups, found_groups = connected_components(link_graph(local[same], len(points)), directed=False)
    group = found_groups.astype(np.int64)
    ends = np.sort(group[local], axis=1)
    is_within = ends[:, 0] == ends[:, 1]
    is_sound = np.ones(n_groups, dtype=bool)
    is_sound[ends[is_within & ~same, 0]] = False
    found: BoolArray = is_sound[ends[:, 0]] & is_sound[ends[:, 1]]
    _, kind, count = np.unique(ends @ (n_groups, 1), return_inverse=True, return_counts=True)
    found[~same] &= count[kind[~same]] > 1
    found[same] &= ~_bridges(local[same], group, len(points))
    return found


def _bridges(edges: IntArray, group: IntArray, n: int) -> BoolArray:
    """Which edges of a graph with these groups are the only way between their ends.

    Every edge outside a tree that spans the graph closes a circle. It is given a random number, which all edges of its
    circle are told; the numbers are combined by exclusive or. An edge that was told nothing is in no circle.
    """
    leaders = np.unique(group, return_index=True)[1]
    rooted = np.concatenate((edges, np.column_stack((np.full(len(leaders), n), leaders))))
    order, above = breadth_first_order(link_graph(rooted, n + 1), n, directed=False)
    a, b = edges.T
    below = np.where(above[b] == a, b, np.where(above[a] == b, a, n))  # the lower end, of edges in the tree
    outside = below == n
    number = np.random.default_rng(0).integers(1, 2**63, size=outside.sum(), dtype=np.uint64)
    told = np.zeros(n + 1, dtype=np.uint64)
    for ends in (a[outside], b[outside]):
        np.bitwise_xor.at(told, ends, number)
    for point in order[:0:-1].tolist():  # from the leaves to the root
        told[above[point]] ^= told[point]
    return np.asarray(~outside & (told[below] == 0))


def hitting_set(sets: Sequence[Sequence[int]], weight: FloatArray, same: BoolArray) -> BoolArray:
    """Answers of which every set holds one, chosen greedily: the one in the most sets per unit of weight first."""
    # In this order the first of equals is the lighter, then the "different", then the earlier.
    order = np.lexsort((same, weight))
    weight = weight[order]
    place = np.argsort(order)
    columns = place[np.concatenate(sets)]
    ends = np.cumsum([len(members) for members in sets])
    holds = csr_array(
        (np.ones(len(columns), dtype=np.int64), columns, np.append(0, ends)), shape=(len(sets), len(order))
    )
    held_by = holds.tocsc()
    open_sets = np.ones(len(sets), dtype=bool)
    count = np.bincount(columns, minlength=len(order))
    chosen = np.zeros(len(order), dtype=bool)
    while open_sets.any():
        best = int(np.argmax(count / weight))
        chosen[best] = True
        hit = held_by.indices[held_by.indptr[best] : held_by.indptr[best + 1]]
        hit = hit[open_sets[hit]]
        open_sets[hit] = False
        count -= np.bincount(holds[hit].indices, minlength=len(order))
    return chosen[place]


def _local(index: IntArray) -> tuple[IntArray, IntArray]:
    """The rows that answers are about, sorted, and the answers in places among them."""
    points, places = np.unique(index, return_inverse=True)
    return points, places.reshape(-1, 2)
