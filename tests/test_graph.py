"""Graphs of neighbours with the answers in them: true to a naive closure, in one piece, and quick."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from pairmargin import Pairs, sample_pairs
from pairmargin import graph as graphs
from pairmargin.graph import LOUDEST, LinkedGraph, eigenvectors, neighbour_graph, rows_of_length_1


def points(n: int = 60, seed: int = 0) -> np.ndarray:
    return np.random.RandomState(seed).standard_normal((n, 3))


def written_out(linked: LinkedGraph) -> np.ndarray:
    return np.column_stack([linked @ e for e in np.eye(linked.shape[0])])


def naive(points: np.ndarray, pairs: Pairs) -> np.ndarray:
    """The same by writing out every answer that follows from the pairs."""
    affinity = neighbour_graph(points).toarray()
    closed = pairs.closure()
    for index, sign in ((closed.must_link, 1), (closed.cannot_link, -1)):
        count = np.bincount(index.ravel(), minlength=len(points))
        for i, j in index:
            affinity[i, j] = affinity[j, i] = sign * min(1, LOUDEST / np.sqrt(count[i] * count[j]))
    return affinity


# Neighbours


def test_parts_are_joined_where_they_come_closest() -> None:
    X = np.array([0.0, 1, 2, 10, 11, 12, 50, 51, 52])[:, None]
    graph = graphs._affinities(X, 2, None)
    assert connected_components(graph)[0] == 3
    joined = neighbour_graph(X, 2)
    assert connected_components(joined)[0] == 1
    new = joined - graph
    assert sorted(zip(*new.nonzero(), strict=True)) == [(2, 3), (3, 2), (5, 6), (6, 5)]
    assert joined[2, 3] > joined[5, 6] > 0


def test_a_graph_that_hangs_together_is_left_as_it_is() -> None:
    graph = graphs._affinities(points(), 10, None)
    assert graphs._in_one_piece(graph, points()) is graph


# Answers


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(0, 200))
def test_a_product_is_that_of_the_closure_written_out(seed: int, n_classes: int, n_pairs: int) -> None:
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=40)
    index = rng.randint(40, size=(n_pairs, 2))
    index = index[index[:, 0] != index[:, 1]]
    pairs = Pairs(index, y[index[:, 0]] == y[index[:, 1]])
    X = points(40, seed)
    linked = LinkedGraph.build(neighbour_graph(X), pairs)
    expected = naive(X, pairs)
    np.testing.assert_allclose(written_out(linked), expected, atol=1e-12)
    np.testing.assert_allclose(linked.degree, np.abs(expected).sum(1), atol=1e-12)


def test_answers_that_contradict_each_other_count_only_for_themselves() -> None:
    pairs = Pairs.from_lists(must_link=[(0, 1), (1, 2), (5, 6), (6, 7)], cannot_link=[(0, 2), (5, 9)])
    affinity = written_out(LinkedGraph.build(neighbour_graph(points()), pairs))
    near = neighbour_graph(points()).toarray()
    assert affinity[0, 1] == near[0, 1] + 1
    assert affinity[0, 2] < 0
    assert affinity[5, 7] == 1
    assert affinity[7, 9] == affinity[6, 9] == affinity[5, 9] < 0


def test_no_answers_no_change() -> None:
    near = neighbour_graph(points())
    linked = LinkedGraph.build(near, Pairs.empty())
    np.testing.assert_array_equal(written_out(linked), near.toarray())


def test_a_hundred_thousand_answers_need_no_room_for_what_follows() -> None:
    y = np.arange(4000) % 4
    pairs = sample_pairs(y, 100_000, random_state=0)
    linked = LinkedGraph.build(neighbour_graph(points(4000)), pairs)
    assert linked.push.nnz <= 12  # four components, each of them of a thousand points
    assert (linked @ np.ones(4000)).shape == (4000,)


# Eigenvectors


@pytest.mark.parametrize("n_pairs", [0, 80])
def test_one_by_one_and_all_at_once_agree(n_pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.arange(300) % 3
    X = points(300) + 3 * np.eye(3)[y]
    linked = LinkedGraph.build(neighbour_graph(X), sample_pairs(y, n_pairs, random_state=0))
    found = []
    for limit in (0, 1000):
        monkeypatch.setattr(graphs, "DENSE_UP_TO", limit)
        found.append(rows_of_length_1(eigenvectors(linked, linked.degree, 3, 0.01)))
    np.testing.assert_allclose(*(rows @ rows.T for rows in found), atol=1e-6)


def test_eigenvectors_tell_the_clusters() -> None:
    y = np.arange(120) % 3
    X = points(120) + 12 * np.eye(3)[y]
    linked = LinkedGraph.build(neighbour_graph(X), Pairs.empty())
    rows = rows_of_length_1(eigenvectors(linked, linked.degree, 3, 0.001 * linked.tie))
    close = rows @ rows.T
    assert close[y[:, None] == y].min() > close[y[:, None] != y].max()
