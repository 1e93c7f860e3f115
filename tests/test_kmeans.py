"""k-means: first centres for several seeds at once, and samples of many points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import RandomState
from sklearn.cluster import KMeans, kmeans_plusplus

from pairmargin import kmeans as home
from pairmargin.kmeans import first_centres, kmeans, kmeans_runs


def points(n: int = 300, n_dims: int = 4, seed: int = 0) -> Any:
    return RandomState(seed).normal(size=(n, n_dims)) + 3 * RandomState(seed).randint(3, size=(n, 1))


@pytest.fixture
def fitted_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many points each run of k-means looked at."""
    sizes = []

    class WatchedKMeans(KMeans):  # type: ignore[misc]
        def fit(self, points: Any) -> WatchedKMeans:
            sizes.append(len(points))
            super().fit(points)
            return self

    monkeypatch.setattr(home, "KMeans", WatchedKMeans)
    monkeypatch.setattr(home, "SAMPLE", 50)
    return sizes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_centres", [1, 2, 7, 20])
def test_first_centres_are_those_of_scikit_learn(n_centres: int, dtype: type) -> None:
    data = points().astype(dtype)
    seeds = range(5)
    found = first_centres(data, n_centres, [RandomState(seed) for seed in seeds])
    for rows, seed in zip(found, seeds, strict=True):
        assert rows.tolist() == kmeans_plusplus(data, n_centres, random_state=RandomState(seed))[1].tolist()


def test_runs_are_those_of_scikit_learn() -> None:
    data = points()
    for run, seed in zip(kmeans_runs(data, 4, np.arange(3)), range(3), strict=True):
        theirs = KMeans(4, n_init=1, random_state=RandomState(seed)).fit(data)
        assert run.labels.tolist() == theirs.labels_.tolist()
        assert run.inertia == pytest.approx(theirs.inertia_)


def test_far_from_zero_single_precision_is_enough() -> None:
    near, far = points().astype(np.float32), (points() + 10_000).astype(np.float32)
    rngs = [[RandomState(seed) for seed in range(3)] for _ in range(2)]
    assert first_centres(near, 5, rngs[0]).tolist() == first_centres(far, 5, rngs[1]).tolist()


def test_fewer_distinct_points_than_clusters() -> None:
    (run,) = kmeans_runs(np.repeat(np.eye(2), 5, axis=0), 4, np.arange(1))
    assert len(np.unique(run.labels)) == 2


@pytest.mark.parametrize(("n", "n_clusters", "size"), [(40, 3, 40), (50, 3, 50), (51, 3, 50), (600, 8, 80)])
def test_the_sample_grows_with_the_number_of_clusters(
    n: int, n_clusters: int, size: int, fitted_sizes: list[int]
) -> None:
    data = points(n)
    assert kmeans(data, n_clusters, RandomState(0), n_init=1).labels.shape == (n,)
    assert [run.labels.shape for run in kmeans_runs(data, n_clusters, np.arange(2))] == [(n,)] * 2
    assert fitted_sizes == [size] * 3


def test_every_point_of_a_sampled_clustering_goes_to_its_nearest_centre(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home, "SAMPLE", 60)
    data = RandomState(0).normal(size=(500, 2))
    for labels in (kmeans(data, 3, RandomState(0), n_init=3).labels, kmeans_runs(data, 3, np.arange(1))[0].labels):
        whole = np.array([data[labels == k].mean(0) for k in range(3)])
        nearest = ((data[:, None] - whole[None]) ** 2).sum(2).argmin(1)
        assert np.mean(nearest == labels) > 0.8  # the sample's centres are near those of all the points
