"""Nearest neighbours, exact and by an index."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from pairmargin import neighbours
from pairmargin.neighbours import KnownLinks, nearest_neighbours, neighbour_links, side_by_side


def written_out(points: np.ndarray, k: int) -> np.ndarray:
    """Distances to the k nearest others."""
    distance = np.sqrt(((points[:, None] - points) ** 2).sum(2))
    np.fill_diagonal(distance, np.inf)
    return np.sort(distance, axis=1)[:, :k]


@pytest.mark.parametrize("exact", [True, False])
def test_neighbours_are_the_nearest_others(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(200, 5))
    if not exact:
        monkeypatch.setattr(neighbours, "EXACT_UP_TO", 0)

    distance, neighbour = nearest_neighbours(points, 7)

    assert distance.shape == neighbour.shape == (200, 7)
    assert (neighbour != np.arange(200)[:, None]).all()
    assert (np.diff(distance, axis=1) >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(points[neighbour] - points[:, None], axis=2), distance, atol=1e-5)
    found = np.isclose(distance, written_out(points, 7), atol=1e-5)
    assert found.all() if exact else found.mean() > 0.95


@pytest.mark.parametrize("exact", [True, False])
def test_a_point_among_copies_is_never_its_own_neighbour(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exact:
        monkeypatch.setattr(neighbours, "EXACT_UP_TO", 0)
    points = np.repeat(np.eye(3), 20, axis=0)

    distance, neighbour = nearest_neighbours(points, 5)

    assert (neighbour != np.arange(60)[:, None]).all()
    assert neighbour.shape == (60, 5)
    if exact:
        np.testing.assert_allclose(distance, 0, atol=1e-12)


@pytest.mark.parametrize(("n", "k"), [(1, 0), (2, 1), (4, 3)])
def test_no_more_neighbours_than_there_are_others(n: int, k: int) -> None:
    assert nearest_neighbours(np.arange(n, dtype=float)[:, None], 10)[1].shape == (n, k)


def test_sparse_points_have_the_neighbours_of_dense_ones() -> None:
    points = np.random.default_rng(1).normal(size=(50, 8)) * (np.random.default_rng(2).random((50, 8)) < 0.4)
    np.testing.assert_array_equal(nearest_neighbours(sp.csr_array(points), 4)[1], nearest_neighbours(points, 4)[1])


def test_links_about_points_that_lie_close_stand_together() -> None:
    """Points on a line, in a random order: a run of links is about a few more points than it has links."""
    place = np.random.default_rng(0).permutation(2000)
    links = neighbour_links(nearest_neighbours(place[:, None].astype(float), 4)[1])
    ordered = side_by_side(links, 2000)
    assert sorted(map(tuple, ordered)) == sorted(map(tuple, links))

    def n_points(some: np.ndarray) -> float:
        return float(np.mean([len(np.unique(some[start : start + 200])) for start in range(0, len(some), 200)]))

    assert 2 * n_points(ordered) < n_points(links)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_links_of_the_same_points_are_looked_for_once(form: type, monkeypatch: pytest.MonkeyPatch) -> None:
    points, searches = np.random.default_rng(0).normal(size=(30, 4)), []

    def counted(points: np.ndarray, n_neighbors: int) -> tuple[np.ndarray, np.ndarray]:
        searches.append(n_neighbors)
        return nearest_neighbours(points, n_neighbors)

    monkeypatch.setattr(neighbours, "nearest_neighbours", counted)
    known = KnownLinks()
    first = known.among(form(points), 3)
    np.testing.assert_array_equal(known.among(form(points.copy()), 3), first)
    assert len(searches) == 1
    np.testing.assert_array_equal(first, neighbour_links(nearest_neighbours(points, 3)[1]))

    points[7] *= -1  # in place, as a user may
    np.testing.assert_array_equal(known.among(form(points), 3), neighbour_links(nearest_neighbours(points, 3)[1]))
    assert known.among(form(points), 5).shape[0] > len(first)
    assert len(searches) == 3
