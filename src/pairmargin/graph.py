"""Graphs of neighbours, the answers in them, and their first eigenvectors.

======  =========  =============================================================================================
symbol  name here  meaning
======  =========  =============================================================================================
A       affinity   n × n; how strongly points are tied, negative where a cannot-link pushes them apart
σ_i     scale      distance of point i from its 7th neighbour (Zelnik-Manor, Perona 2004)
D       degree     row sums of |A| (Kunegis et al. 2010)
τ       teleport   weight that every point shares out evenly to all (Amini, Chen, Bickel, Levina 2013)
======  =========  =============================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.metrics import pairwise_distances_argmin_min

from .eigen import last_eigenvectors
from .kmeans import two_parts
from .neighbours import nearest_neighbours
from .pairs import Pairs
from .pairs.arithmetic import link_graph

Array = NDArray[Any]

N_NEIGHBORS = 10
SCALE_NEIGHBOUR = 7  # whose distance is the scale of a point
TELEPORT = 0.001  # τ as a share of the mean degree; much more hides which parts of a graph lie close
BRIDGE = 0.1  # largest affinity between parts that were apart; a strong one pulls its ends over
DENSE_UP_TO = 500  # points for which all eigenvectors at once are as quick as a few one by one
LOUDEST = 3.0  # what all the must-links of a point weigh together at most, and all its cannot-links


# Neighbours


def neighbour_graph(points: Any, n_neighbors: int = N_NEIGHBORS, gamma: float | None = None) -> sp.csr_array:
    """Gaussian affinities of points one of which is a neighbour of the other, in one piece, (n, n)."""
    return _in_one_piece(_affinities(points, n_neighbors, gamma), points)


def _affinities(points: Any, n_neighbors: int, gamma: float | None) -> sp.csr_array:
    n = points.shape[0]
    distance, neighbour = nearest_neighbours(points, n_neighbors)  # (n, k) both
    k = distance.shape[1]
    if k == 0:
        return sp.csr_array((n, n))  # one point alone
    scale = scales(distance[:, min(SCALE_NEIGHBOUR, k) - 1])
    squared = distance.astype(np.float64) ** 2
    weight = np.exp(-squared / (scale[:, None] * scale[neighbour]) if gamma is None else -gamma * squared)
    graph = sp.csr_array((weight.ravel(), neighbour.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return sp.csr_array(graph.maximum(graph.T))


def scales(distance: Array) -> Array:
    """The scale of every point; one with many copies has none of its own and takes the median."""
    return np.where(distance > 0, distance, _typical(distance)).astype(np.float64)


def _typical(distance: Array) -> float:
    """The median distance, of those that are not 0."""
    positive = distance[distance > 0]
    return float(np.median(positive)) if len(positive) else 1.0


def _in_one_piece(graph: sp.csr_array, points: Any) -> sp.csr_array:
    """Tie each part of a graph that falls apart to the nearest other part, until all hang together."""
    while True:
        n_parts, part = connected_components(graph, directed=False)
        if n_parts == 1:
            return graph
        largest = np.bincount(part).argmax()  # the others reach it, so it need not reach out
        ties = [_shortest_way_out(points, part == p) for p in range(n_parts) if p != largest]
        here, there, distance = map(np.array, zip(*ties, strict=True))
        weight = BRIDGE / (1 + (distance / _typical(distance)) ** 2)  # never 0, however long
        bridges = sp.csr_array((weight, (here, there)), shape=graph.shape)
        graph = sp.csr_array(graph.maximum(bridges).maximum(bridges.T))


def _shortest_way_out(points: Any, inside: Array) -> tuple[int, int, float]:
    """The closest two points of which one is inside, and their distance."""
    own, other = np.flatnonzero(inside), np.flatnonzero(~inside)
    nearest, distance = pairwise_distances_argmin_min(points[own], points[other])
    here = distance.argmin()
    return int(own[here]), int(other[nearest[here]]), float(distance[here])


# Answers


@dataclass(frozen=True)
class LinkedGraph:
    """A graph of neighbours in which must-links pull and cannot-links push, with all that follows from them.

    Must-links make components; within one, all pull each other, and a cannot-link between two components holds for all
    their points. That may be half of n² answers, so they are never written out: a product costs no more than the
    graph's own edges, the points and the answers that were given.
    """

    graph: sp.csr_array  # (n, n) neighbours of which nothing is known
    component: Array  # (n,)
    pull: Array  # (C,) between any two points of a component
    push: sp.csr_array  # (C, C) between any point of one component and any of the other
    tie: float  # mean degree before the answers, which may be very many

    @classmethod
    def build(cls, graph: sp.csr_array, pairs: Pairs) -> LinkedGraph:
        """Put the answers in the place of what the distances say."""
        n = graph.shape[0]
        component, links = trusted_components(pairs, n)
        size = np.bincount(component).astype(np.float64)  # (C,)
        pull = np.where(size > 1, np.minimum(1, LOUDEST / np.maximum(size - 1, 1)), 0)
        ends = component[pairs.cannot_link]  # (·, 2)
        push = _symmetric(ends, len(size))
        reach = np.maximum(push @ size, 1)  # points that a component must not be with
        row, column = push.nonzero()
        push = sp.csr_array(
            (np.minimum(1, LOUDEST / np.sqrt(reach[row] * reach[column])), (row, column)), shape=push.shape
        )
        return cls(_unknown_only(graph, component, push) + links, component, pull, push, float(graph.sum() / n) or 1.0)

    @property
    def degree(self) -> Array:
        """Row sums of |A|, (n,)."""
        size = np.bincount(self.component).astype(np.float64)
        answers = self.pull * (size - 1) + self.push @ size
        return np.asarray(self.graph.sum(1).ravel() + answers[self.component])

    def __matmul__(self, v: Array) -> Array:
        """A·v for v (n,)."""
        sums = np.bincount(self.component, v, len(self.pull))
        answers = self.pull * sums - self.push @ sums
        return np.asarray(self.graph @ v + answers[self.component] - self.pull[self.component] * v)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return len(self.component), len(self.component)


def trusted_components(pairs: Pairs, n: int) -> tuple[Array, sp.csr_array]:
    """Components of the must-links, (n,), and the must-links that are no proof of more than themselves, (n, n).

    A component with a cannot-link inside has a wrong answer somewhere, so its must-links are believed only one by one.
    """
    component = pairs.components(n)
    ends = component[pairs.cannot_link]
    torn = np.unique(ends[ends[:, 0] == ends[:, 1], 0])
    is_torn = np.isin(component, torn)
    component = np.unique(
        np.where(is_torn, component.max(initial=0) + 1 + np.arange(n), component), return_inverse=True
    )[1]
    return component, _symmetric(pairs.must_link[is_torn[pairs.must_link[:, 0]]], n)


def _unknown_only(graph: sp.csr_array, component: Array, push: sp.csr_array) -> sp.csr_array:
    """The ties between points of which the answers say nothing."""
    if not graph.nnz:
        return graph
    ties = graph.tocoo()
    one, other = component[ties.row], component[ties.col]
    known = (one == other) | (np.asarray(push[one, other]).ravel() > 0)
    return sp.csr_array((ties.data[~known], (ties.row[~known], ties.col[~known])), shape=graph.shape)


def _symmetric(index: Array, n: int) -> sp.csr_array:
    """1 where a pair is, both ways round, (n, n)."""
    graph = link_graph(index, n)
    graph.data[:] = 1  # also where two pairs say the same
    return graph


# Eigenvectors


def halves_of_graph(points: Any, pairs: Pairs, seeds: Array) -> Array:
    """The two parts, 0 or 1 (n,), that points fall into by their neighbours and by the answers about them."""
    graph = LinkedGraph.build(neighbour_graph(points), pairs)
    vectors = rows_of_length_1(eigenvectors(graph, graph.degree, 2, TELEPORT * graph.tie))
    return two_parts(vectors.astype(np.float32), seeds)


def eigenvectors(affinity: Any, degree: Array, n_components: int, teleport: float) -> Array:
    """First eigenvectors of D^-½ (A + τ/n) D^-½, the first one last, (n, n_components).

    ``affinity`` is an array, a sparse array or a `LinkedGraph`.
    """
    root = 1 / np.sqrt(degree + teleport)  # D^-½
    few = affinity.shape[0] <= max(DENSE_UP_TO, 4 * n_components)
    return (_all_at_once if few else _one_by_one)(affinity, root, n_components, teleport)


def rows_of_length_1(vectors: Array) -> Array:
    """Every row divided by its length, as Ng, Jordan, Weiss (2001) do with eigenvectors; one of length 0 stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1))


def _all_at_once(affinity: Any, root: Array, n_components: int, teleport: float) -> Array:
    """The first eigenvectors by the dense method, which takes n³ steps."""
    n = len(root)
    written_out = affinity if isinstance(affinity, np.ndarray) else np.column_stack([affinity @ e for e in np.eye(n)])
    normalised = root[:, None] * (written_out + teleport / n) * root
    return last_eigenvectors(normalised, n_components)


def _one_by_one(affinity: Any, root: Array, n_components: int, teleport: float) -> Array:
    """The first eigenvectors by the Lanczos method; A + τ/n, which is not sparse, is never written out."""
    n = len(root)

    def product(v: Array) -> Array:
        v = root * v.ravel()
        return np.asarray(root * (affinity @ v + teleport * v.mean()))

    operator = LinearOperator((n, n), matvec=product, dtype=np.float64)
    start = RandomState(0).uniform(-1, 1, n)  # the same for every seed, so that the eigenvectors are too
    return np.asarray(eigsh(operator, n_components, which="LA", v0=start)[1])
